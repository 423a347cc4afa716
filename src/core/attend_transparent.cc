#include <type_traits>
#include <vector>

#include "base/random.h"
#include "core/softmax_row.h"
#include "core/validate.h"

namespace glasshead {
namespace {

using Shape3 = std::array<index_t, 3>;

// Element (b, h, i) of a tensor that was asked for.
void store_state(const MutableTensor<3>& tensor, const Shape3& at, double x) {
  if (tensor.data != nullptr) tensor.store_at(at, canonical(x));
}

// The row's weights times their dropout factors: 0 or 1/(1-p).
template <class T, class E>
void drop(const Call<E>& call, index_t b, index_t h, index_t i, Row<T>& row) {
  const Dropout& dropout = call.options.dropout;
  const auto kept = static_cast<T>(1.0 / (1.0 - dropout.p));
  for (index_t j = row.keys.begin; j < row.keys.end; ++j) {
    const auto at = static_cast<std::size_t>(j);
    if (row.allowed[at] == 0) continue;
    row.weights[at] =
        dropped(dropout.seed, {b, h, i, j}, dropout.p) ? T(0) : row.weights[at] * kept;
  }
}

// Room for the sums of one row of out.
template <class T>
struct OutRow {
  std::vector<T> block;
  std::vector<double> total;
  explicit OutRow(index_t d_v)
      : block(static_cast<std::size_t>(d_v)), total(static_cast<std::size_t>(d_v)) {}
};

template <class T, class E>
void write_out(const Row<T>& row, const ConstTensor<4>& v, const MutableTensor<4>& out,
               const std::array<index_t, 4>& at, OutRow<T>& sums) {
  const index_t d_v = v.shape[3];
  if (d_v == 0) return;
  double* result = sums.total.data();
  if (row.is_empty) {
    std::fill_n(result, d_v, 0.0);
  } else {
    const auto value = [&](index_t j) { return vector_at<E>(v, at[0], at[3], j); };
    weighted_sum(row.weights.data(), row.allowed.data(), row.keys, value, d_v, sums.block.data(),
                 result);
  }
  const index_t first = at[0] * out.strides[0] + at[1] * out.strides[1] + at[2] * out.strides[2];
  for (index_t d = 0; d < d_v; ++d) {
    store_element(out.data, out.dtype, first + d * out.strides[3], canonical(result[d]));
  }
}

template <class T, class E>
EmptyRows attend_rows(const Call<E>& call, const ConstTensor<4>& v, const MutableTensor<4>& out,
                      const RowState& rows) {
  EmptyRows empty;
  if (call.shape.batch == 0 || call.shape.heads == 0 || call.shape.q_len == 0) return empty;
  Row<T> row(call);
  OutRow<T> sums(v.shape[3]);
  for (index_t b = 0; b < call.shape.batch; ++b) {
    for (index_t h = 0; h < call.shape.heads; ++h) {
      for (index_t i = 0; i < call.shape.q_len; ++i) {
        compute_row(call, b, h, i, row);
        if (row.is_empty) empty.add(b, h, i);
        store_state(rows.max, {b, h, i}, static_cast<double>(row.max));
        store_state(rows.sum, {b, h, i}, static_cast<double>(row.sum));
        store_state(rows.lse, {b, h, i}, static_cast<double>(row.lse));
        if (call.options.dropout.p > 0) drop(call, b, h, i, row);
        write_out<T, E>(row, v, out, {b, h, i, h / call.group}, sums);
      }
    }
  }
  return empty;
}

}  // namespace

void attend_transparent(const ConstTensor<4>& q, const ConstTensor<4>& k, const ConstTensor<4>& v,
                        const MutableTensor<4>& out, const AttentionOptions& options,
                        const RowState& rows) {
  Findings findings;
  check_attend({&q, &k, &v}, out, rows, options, findings);
  refuse("attend_transparent", findings);

  EmptyRows empty;
  with_element(q.dtype, [&](auto element) {
    using E = decltype(element);
    using T = std::conditional_t<std::is_same_v<E, double>, double, float>;
    empty = attend_rows<T>(Call<E>(q, k, options), v, out, rows);
  });
  if (options.empty_row == EmptyRow::error)
    report_empty_rows(empty, "only scores of -inf", findings);
  refuse("attend_transparent", findings);
}

}  // namespace glasshead
