// The numbers of one benchmark row, in the memory they are read from, and the right answer in f64.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cli/bench_machine.h"
#include "cli/bench_rows.h"
#include "glasshead/attention.h"

namespace glasshead::cli {

class BenchInputs {
 public:
  BenchInputs(const BenchRow& row, const Context& context);

  const BenchRow& row() const { return row_; }
  void run(const Context& context);
  double output_error() const;    // of sampled rows of out, as BenchCall::error says
  double gradient_error() const;  // of sampled rows of dq, dk, dv
  std::vector<MemoryRun> keys_and_values() const;

 private:
  Buffer& tensor(index_t heads, index_t length);  // zeros
  ConstTensor<4> view(const Buffer& buffer, index_t heads, index_t length) const;
  MutableTensor<4> writable(const Buffer& buffer, index_t heads, index_t length) const;
  void fill_mask();
  void fill_cache();
  // The options, for query rows [first, first + rows).
  AttentionOptions options(index_t first, index_t rows) const;
  // Row i of head h as f64, and what it may be compared with.
  std::vector<double> row_of(const Buffer& buffer, index_t heads, index_t length, index_t h,
                             index_t i) const;
  std::vector<double> head_of(const Buffer& buffer, index_t heads, index_t length, index_t h) const;

  BenchRow row_;
  std::vector<Buffer> buffers_;  // q, k, v, out, then d_out, dq, dk, dv of a backward row
  std::optional<KvCache> cache_;
  std::vector<std::uint8_t> allowed_;  // [q_len, kv_len]
  std::vector<float> bias_;            // [q_len, kv_len]
  std::vector<float> sums_, maxima_;   // [heads, q_len] of a backward row
};

}  // namespace glasshead::cli
