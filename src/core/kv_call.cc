#include "core/kv_call.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "core/plan_of_batch.h"
#include "core/validate.h"

namespace glasshead {
namespace {

constexpr int kSequencesNamed = 4;

index_t start_of(const QueryStart& query_start, index_t q_len, index_t length) {
  if (std::holds_alternative<std::monostate>(query_start)) return length - q_len;
  return resolve_query_start(query_start, q_len, length);
}

KvCall call_of(const ConstTensor<4>& q, const KvInput::State& kv, const AttentionOptions& options) {
  KvCall call{q, kv};
  std::vector<index_t> lengths;
  for (const KeyRange& held : kv.held) {
    call.kv_len = std::max(call.kv_len, held.end);
    lengths.push_back(held.end);
    call.starts.push_back(start_of(options.query_start, q.shape[2], held.end));
  }
  call.options = options;
  const bool differ = std::any_of(lengths.begin(), lengths.end(),
                                  [&](index_t length) { return length != call.kv_len; });
  if (differ) call.options.mask = call.options.mask & Mask::key_lengths(std::move(lengths));
  return call;
}

// Everything that attend over tensors of these sizes would refuse, but where the queries stand.
void check_sizes(const KvCall& call, const AttentionOptions& given, const AttendResults* results,
                 Findings& findings) {
  static constexpr double kNoData = 0;  // never read: k and v are here for their sizes
  const KvSource& source = call.kv.source;
  const auto batch = static_cast<index_t>(call.kv.held.size());
  const DType dtype = call.q.dtype;
  const ConstTensor<4> k(&kNoData, dtype, {batch, source.kv_heads, call.kv_len, source.d_k}, {});
  const ConstTensor<4> v(&kNoData, dtype, {batch, source.kv_heads, call.kv_len, source.d_v}, {});
  AttentionOptions options = given;
  options.empty_row = EmptyRow::zero;  // of each sequence by itself, below
  if (!std::holds_alternative<index_t>(options.query_start)) options.query_start = index_t{0};
  const CallInputs inputs{&call.q, &k, &v};
  if (results != nullptr)
    check_attend(inputs, results->out, results->rows, options, findings);
  else
    check_call(inputs, options, findings);
  const bool is_wide = source.k.type == KvType::f64;
  if (is_floating(dtype) && (dtype == DType::f64) != is_wide)
    findings.option(
        "q", fmt::format("has dtype {} where the keys are {}; {} would be right", name(dtype),
                         name(source.k.type), is_wide ? "f64" : "f32, bf16 or f16"));
}

// Each query row must stand on a key that its sequence has, where a rule speaks of positions.
void check_starts(const KvCall& call, Findings& findings) {
  const std::string rules = positional_rules(call.options);
  const index_t q_len = call.q.shape[2];
  if (rules.empty() || q_len == 0) return;
  int wrong = 0;
  for (std::size_t b = 0; b < call.starts.size(); ++b) {
    const index_t start = call.starts[b];
    const index_t length = call.kv.held[b].end;
    if (start >= 0 && start <= length - q_len) continue;
    if (++wrong > kSequencesNamed) return;
    findings.option(
        "query_start",
        fmt::format("the {} query rows of sequence {} would stand at positions {} to {}, but it "
                    "holds {} keys and there are rules about positions ({}). Append the queries' "
                    "own keys first; left unset, the last row stands at the last key",
                    q_len, b, start, saturating_add(start, q_len - 1), length, rules));
  }
}

// A row must not be able to see a key that its sequence no longer holds.
void check_held(const KvCall& call, Findings& findings) {
  const RowIntervals intervals(call.options.mask, call.kv_len);
  int wrong = 0;
  for (index_t b = 0; b < call.q.shape[0]; ++b) {
    const index_t first = call.kv.held[static_cast<std::size_t>(b)].begin;
    for (index_t i = 0; first > 0 && i < call.q.shape[2]; ++i) {
      const index_t position = call.starts[static_cast<std::size_t>(b)] + i;
      const KeyRange keys = intervals.at(b, position);
      if (keys.begin >= first) break;  // later rows begin no earlier
      if (keys.is_empty()) continue;
      if (++wrong > kSequencesNamed) return;
      findings.option(
          "mask",
          fmt::format("query row {} of sequence {}, at position {}, may see keys from "
                      "{} on, but the keys before {} are gone. A window of at most {} "
                      "earlier keys, or a ring that keeps at least {} keys",
                      i, b, position, keys.begin, first, std::max<index_t>(0, position - first),
                      call.kv.held[static_cast<std::size_t>(b)].end - keys.begin));
      break;
    }
  }
}

void check_rows(const KvCall& call, Findings& findings) {
  if (call.options.empty_row != EmptyRow::error || !call.options.sinks.empty()) return;
  EmptyRows empty;
  for (index_t b = 0; b < call.q.shape[0]; ++b) {
    const BatchEntry entry =
        entry_of(call.options, call.shape(), b, call.starts[static_cast<std::size_t>(b)]);
    find_empty_rows(MaskPlan(entry.options, entry.shape), b, empty);
  }
  report_empty_rows(empty, "no allowed key", findings);
}

}  // namespace

KvCall check_kv_call(const char* function, const ConstTensor<4>& q, const KvInput::State& kv,
                     const AttentionOptions& options, const AttendResults* results) {
  Findings findings;
  if (kv.is_stale())
    findings.option("kv", "the cache has changed since input() was called; ask it again");
  refuse(function, findings);
  KvCall call = call_of(q, kv, options);
  check_sizes(call, options, results, findings);
  refuse(function, findings);
  check_starts(call, findings);
  check_held(call, findings);
  if (findings.is_empty()) check_rows(call, findings);
  refuse(function, findings);
  return call;
}

}  // namespace glasshead
