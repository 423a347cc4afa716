// What `glasshead bench` measures: one line of the table is one row of this.
#pragma once

#include <string>
#include <vector>

#include "glasshead/kv_cache.h"
#include "glasshead/tensor.h"

namespace glasshead::cli {

enum class BenchMask {
  none,
  causal,
  window,  // kWindow keys to the left, and causal
  half     // booleans: of the 128 x 128 tiles a random half hides a random half of its pairs
};
inline constexpr index_t kBenchWindow = 256;

enum class BenchKind {
  prefill,
  decode,        // one query against plain tensors
  decode_cache,  // the same from a KvCache
  backward
};

struct BenchRow {
  std::string group;  // heading: "prefill"
  std::string name;   // "causal-n2048-d64": what --rows looks for
  BenchKind kind = BenchKind::prefill;
  index_t heads = 12, kv_heads = 12, q_len = 0, kv_len = 0, d = 64;
  BenchMask mask = BenchMask::none;
  DType dtype = DType::f32;
  KvType cache = KvType::f32;
  bool has_bias = false;    // dense [1, 1, q_len, kv_len], shared by the heads
  bool is_strided = false;  // q, k, v [batch, length, heads, d] in memory
  std::string isa;          // a kernel set that rounds, whose own peak is the measure; empty: --isa

  double pairs() const;  // that masks leave, over all heads; of `half` those of visited tiles
  double flops() const;  // two products, five in backward
  double bytes() const;  // of keys and values, each once
};

// All rows, those of sets that round where the processor has them; `quick`: a few small ones.
std::vector<BenchRow> bench_rows(bool is_quick);

}  // namespace glasshead::cli
