// The front door of core's public functions: collect every problem, then refuse once.
//
//   Findings findings;
//   check_call({&q, &k, &v}, options, findings);
//   check_writable("out", out, {batch, heads, q_len, d_v}, kOutAxes, findings);
//   refuse("attend", findings);
#pragma once

#include <array>
#include <string>
#include <vector>

#include "core/findings.h"
#include "core/mask_plan.h"
#include "glasshead/attention.h"

namespace glasshead {

// The tensors of one call; v is null where weights alone are asked for.
struct CallInputs {
  const ConstTensor<4>* q = nullptr;
  const ConstTensor<4>* k = nullptr;
  const ConstTensor<4>* v = nullptr;
};

inline constexpr std::array<const char*, 4> kQueryAxes{"batch", "heads", "q_len", "d_k"};
inline constexpr std::array<const char*, 4> kKeyAxes{"batch", "kv_heads", "kv_len", "d_k"};
inline constexpr std::array<const char*, 4> kValueAxes{"batch", "kv_heads", "kv_len", "d_v"};
inline constexpr std::array<const char*, 4> kOutAxes{"batch", "heads", "q_len", "d_v"};
inline constexpr std::array<const char*, 4> kPairAxes{"batch", "heads", "q_len", "kv_len"};

// Everything `check` promises. Rows without a key (EmptyRow::error) are looked for only when
// nothing else is wrong.
void check_call(const CallInputs& inputs, const AttentionOptions& options, Findings& findings);

// check_call and refuse in one: for functions that take nothing else.
void require_call(const char* function, const CallInputs& inputs, const AttentionOptions& options);

// Everything that attend refuses: check_call, and out and rows.
void check_attend(const CallInputs& inputs, const MutableTensor<4>& out, const RowState& rows,
                  const AttentionOptions& options, Findings& findings);

// Parts of check_call. `pairs` has only sizes that are not negative.
void check_mask(const Mask& mask, const PairShape& pairs, Findings& findings);
void check_bias(const Bias& bias, const PairShape& pairs, DType compute, Findings& findings);
void check_broadcast(const std::string& where, const Broadcast& values, const PairShape& pairs,
                     Findings& findings);

// The rules that speak of the query's position, by name: "causal, window"; empty if none does.
std::string positional_rules(const AttentionOptions& options);

// Names rows without a key under EmptyRow::error; `rows` are (batch, head, row), `count` how many
// there are in all.
struct EmptyRows {
  std::vector<std::array<index_t, 3>> rows;  // the first few
  index_t count = 0;
  void add(index_t b, index_t h, index_t i);
};
void find_empty_rows(const MaskPlan& plan, index_t b, EmptyRows& empty);  // of one batch entry
void report_empty_rows(const EmptyRows& empty, const char* why, Findings& findings);

// A tensor that will be written: shape, dtype, memory.
template <int Rank>
void check_writable(const std::string& where, const MutableTensor<Rank>& tensor,
                    const std::array<index_t, ConstTensor<Rank>::kRank>& shape,
                    const std::array<const char*, ConstTensor<Rank>::kRank>& axes,
                    Findings& findings);

// Where a tensor begins, under its name; null where there is none.
struct NamedData {
  const char* name;
  const void* data;
};
// Results must not begin where an input or an earlier result does: the slip that can be told for
// certain, since views may interleave in one buffer.
void check_apart(const std::vector<NamedData>& read, const std::vector<NamedData>& written,
                 Findings& findings);

// f64 computes in f64; f32, bf16 and f16 compute in f32.
inline DType compute_type(DType input) { return input == DType::f64 ? DType::f64 : DType::f32; }

inline bool is_floating(DType type) {
  return type == DType::f64 || type == DType::f32 || type == DType::bf16 || type == DType::f16;
}

// The largest distance in elements from data that an access can reach; nullopt on overflow of the
// distance in bytes. `shape` has no negative extent.
bool spans_memory(std::span<const index_t> shape, std::span<const index_t> strides, DType type);

}  // namespace glasshead
