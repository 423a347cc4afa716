#include <algorithm>
#include <type_traits>

#include <fmt/format.h>

#include "core/softmax_row.h"
#include "core/validate.h"

namespace glasshead {
namespace {

template <class T, class E>
EmptyRows write_weights(const Call<E>& call, const RowRange& range,
                        const MutableTensor<4>& weights) {
  EmptyRows empty;
  if (call.shape.batch == 0 || range.head_begin == range.head_end ||
      range.row_begin == range.row_end)
    return empty;
  Row<T> row(call);
  for (index_t b = 0; b < call.shape.batch; ++b) {
    for (index_t h = range.head_begin; h < range.head_end; ++h) {
      for (index_t i = range.row_begin; i < range.row_end; ++i) {
        compute_row(call, b, h, i, row);
        if (row.is_empty) empty.add(b, h, i);
        for (index_t j = 0; j < call.shape.kv_len; ++j) {
          const auto at = static_cast<std::size_t>(j);
          const bool is_seen =
              j >= row.keys.begin && j < row.keys.end && row.allowed[at] != 0 && !row.is_empty;
          weights.store_at({b, h - range.head_begin, i - range.row_begin, j},
                           is_seen ? static_cast<double>(canonical(row.weights[at])) : 0.0);
        }
      }
    }
  }
  return empty;
}

void check_range(const char* axis, index_t begin, index_t end, index_t size, Findings& findings) {
  if (begin >= 0 && begin <= end && end <= size) return;
  findings.shape("range", fmt::format("{} [{}, {}) where there are {}; 0 <= begin <= end <= {}",
                                      axis, begin, end, size, size));
}

}  // namespace

void attention_weights(const ConstTensor<4>& q, const ConstTensor<4>& k,
                       const AttentionOptions& options, const RowRange& range,
                       const MutableTensor<4>& weights) {
  Findings findings;
  check_call({&q, &k, nullptr}, options, findings);
  const std::size_t before = findings.problems.size();
  check_range("heads", range.head_begin, range.head_end, q.shape[1], findings);
  check_range("rows", range.row_begin, range.row_end, q.shape[2], findings);
  if (findings.problems.size() == before) {
    check_writable<4>("weights", weights,
                      {q.shape[0], range.head_end - range.head_begin,
                       range.row_end - range.row_begin, k.shape[2]},
                      kPairAxes, findings);
  }
  check_apart({{"q", q.data}, {"k", k.data}}, {{"weights", weights.data}}, findings);
  refuse("attention_weights", findings);

  EmptyRows empty;
  with_element(q.dtype, [&](auto element) {
    using E = decltype(element);
    using T = std::conditional_t<std::is_same_v<E, double>, double, float>;
    empty = write_weights<T>(Call<E>(q, k, options), range, weights);
  });
  if (options.empty_row == EmptyRow::error)
    report_empty_rows(empty, "only scores of -inf", findings);
  refuse("attention_weights", findings);
}

}  // namespace glasshead
