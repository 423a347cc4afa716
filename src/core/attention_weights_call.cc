#include "core/attention_weights_call.h"

#include <algorithm>

#include <fmt/format.h>

namespace glasshead {
namespace {

void check_range(const char* axis, index_t begin, index_t end, index_t size, Findings& findings) {
  if (begin >= 0 && begin <= end && end <= size) return;
  findings.shape("range", fmt::format("{} [{}, {}) where there are {}; 0 <= begin <= end <= {}",
                                      axis, begin, end, size, size));
}

void check_state(const char* where, const MutableTensor<3>& tensor, const ConstTensor<4>& q,
                 Findings& findings) {
  check_writable<3>(where, tensor, {q.shape[0], q.shape[1], q.shape[2]},
                    {"batch", "heads", "q_len"}, findings);
  const DType compute = compute_type(q.dtype);
  if (tensor.data != nullptr && tensor.dtype != compute && tensor.dtype != DType::f64)
    findings.shape(
        where, fmt::format("{}; {} is what attend computed in", name(tensor.dtype), name(compute)));
}

}  // namespace

void check_given_rows(const RowState& rows, const ConstTensor<4>& q, Findings& findings) {
  if (rows.max.data == nullptr && rows.sum.data == nullptr) return;
  check_state("rows.max", rows.max, q, findings);
  check_state("rows.sum", rows.sum, q, findings);
}

void check_weight_call(const WeightCall& call, const std::vector<WeightResult>& results,
                       Findings& findings) {
  const ConstTensor<4>&q = call.q, &k = call.k;
  const RowRange& range = call.range;
  check_call({&q, &k, nullptr}, call.options, findings);
  const std::size_t before = findings.problems.size();
  check_range("heads", range.head_begin, range.head_end, q.shape[1], findings);
  check_range("rows", range.row_begin, range.row_end, q.shape[2], findings);
  check_given_rows(call.rows, q, findings);
  std::vector<NamedData> written;
  for (const WeightResult& result : results) {
    written.push_back({result.name, result.tensor.data});
    if (findings.problems.size() != before) continue;
    check_writable<4>(result.name, result.tensor,
                      {q.shape[0], range.head_end - range.head_begin,
                       range.row_end - range.row_begin, result.size},
                      kPairAxes, findings);
  }
  check_apart({{"q", q.data},
               {"k", k.data},
               {"rows.max", call.rows.max.data},
               {"rows.sum", call.rows.sum.data}},
              written, findings);
}

EmptyRows all_of(const std::vector<EmptyRows>& of_workers) {
  std::vector<std::array<index_t, 3>> rows;
  index_t count = 0;
  for (const EmptyRows& empty : of_workers) {
    rows.insert(rows.end(), empty.rows.begin(), empty.rows.end());
    count += empty.count;
  }
  std::sort(rows.begin(), rows.end());
  EmptyRows all;
  for (const auto& [b, h, i] : rows) all.add(b, h, i);  // keeps the first few
  all.count = count;
  return all;
}

}  // namespace glasshead
