#include "core/backward_rows.h"

#include <algorithm>
#include <bit>
#include <type_traits>

#include "core/fused.h"
#include "core/rows.h"
#include "core/softmax_row.h"

namespace glasshead {
namespace {

constexpr index_t kRowsOfItem = 256;  // of a task that fills RowNumbers

// Dot products of a few rows at once: one sum after another would wait for each addition.
constexpr index_t kRowsAtOnce = 8;

index_t round_up(index_t n, index_t multiple) { return (n + multiple - 1) / multiple * multiple; }

template <class T>
bool all_finite(const T* x, index_t count) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  constexpr Bits kExponent = std::bit_cast<Bits>(std::numeric_limits<T>::infinity());
  Bits found = 0;
  for (index_t n = 0; n < count; ++n)
    found |= Bits{(std::bit_cast<Bits>(x[n]) & kExponent) == kExponent};
  return found == 0;
}

}  // namespace

template <class T>
void fetch_row(const ConstTensor<4>& tensor, index_t b, index_t h, index_t i, T* to) {
  if (tensor.shape[3] == 0) return;
  with_element(tensor.dtype, [&](auto element) {
    using E = decltype(element);
    const Strided<E> from = vector_at<E>(tensor, b, h, i);
    for (index_t d = 0; d < tensor.shape[3]; ++d) to[d] = widen_to<T>(from[d]);
  });
}

// --- each row's numbers ---

template <class T>
RowNumbers<T>::RowNumbers(const BackwardCall& call, const Pool& pool)
    : kv_heads_(call.kv.kv_heads),
      group_(call.q.shape[1] / kv_heads_),
      rows_(call.q.shape[2] * group_),
      numbers_(call.q.shape[0] * kv_heads_ * 3 * rows_) {
  const index_t parts = (rows_ + kRowsOfItem - 1) / kRowsOfItem;
  pool.run(call.q.shape[0] * kv_heads_ * parts, [&](index_t n, int) {
    const index_t begin = n % parts * kRowsOfItem;
    fill(call, {n / parts / kv_heads_, n / parts % kv_heads_, begin,
                std::min(rows_, begin + kRowsOfItem)});
  });
}

// The means are summed in f64 and rounded once.
template <class T>
void RowNumbers<T>::fill(const BackwardCall& call, const PackedRows& rows) {
  T* const max = numbers_.data() + (rows.b * kv_heads_ + rows.g) * 3 * rows_;
  T* const inverse = max + rows_;
  T* const mean = inverse + rows_;
  const index_t d_v = call.kv.d_v;
  std::vector<double> d_out(static_cast<std::size_t>(kRowsAtOnce * d_v)), out(d_out);
  for (index_t begin = rows.begin; begin < rows.end; begin += kRowsAtOnce) {
    const index_t count = std::min(kRowsAtOnce, rows.end - begin);
    for (index_t r = 0; r < count; ++r) {
      const index_t n = begin + r, h = rows.g * group_ + n % group_, i = n / group_;
      const auto sum = static_cast<T>(ConstTensor<3>(call.rows.sum).load(rows.b, h, i));
      const auto largest = static_cast<T>(ConstTensor<3>(call.rows.max).load(rows.b, h, i));
      max[n] = sum == 0 ? T(0) : largest;
      inverse[n] = sum == 0 ? T(0) : T(1) / sum;
      fetch_row(call.d_out, rows.b, h, i, d_out.data() + r * d_v);
      fetch_row(call.out, rows.b, h, i, out.data() + r * d_v);
    }
    double sums[kRowsAtOnce] = {};
    for (index_t d = 0; d < d_v; ++d) {
      for (index_t r = 0; r < kRowsAtOnce; ++r)
        sums[r] += d_out[static_cast<std::size_t>(r * d_v + d)] *
                   out[static_cast<std::size_t>(r * d_v + d)];
    }
    for (index_t r = 0; r < count; ++r) mean[begin + r] = static_cast<T>(sums[r]);
  }
}

// --- panels ---

template <class T>
BackwardRows<T>::BackwardRows(const Kernels<T>& kernels, const RowSizes& sizes)
    : kernels_(kernels),
      sizes_(sizes),
      padded_d_k_(round_up(sizes.d_k, kernels.width)),
      padded_d_v_(round_up(sizes.d_v, kernels.width)) {
  const index_t lanes = kernels.lanes;
  for (index_t p = 0; p < sizes.panels; ++p) {
    auto panel = std::make_unique<BackwardPanel<T>>();
    panel->queries = AlignedArray<T>(sizes.d_k * lanes);
    panel->d_out = AlignedArray<T>(sizes.d_v * lanes);
    panel->query_rows = AlignedArray<T>(lanes * padded_d_k_);
    panel->d_out_rows = AlignedArray<T>(lanes * padded_d_v_);
    panel->max = AlignedArray<T>(lanes);
    panel->inverse = AlignedArray<T>(lanes);
    panel->mean = AlignedArray<T>(lanes);
    panel->weights = AlignedArray<T>(kBlock * lanes);
    panel->scores = AlignedArray<T>(kBlock * lanes);
    if (sizes.wants_dq) {
      panel->chunk = AlignedArray<T>(sizes.d_k * lanes);
      panel->total = AlignedArray<T>(sizes.d_k * lanes);
    }
    panels_.push_back(std::move(panel));
  }
}

template <class T>
void BackwardRows<T>::load(const BackwardCall& call, const RowNumbers<T>& numbers, double scale,
                           const PackedRows& rows) {
  used_ = 0;
  for (index_t begin = rows.begin; begin < rows.end; begin += kernels_.lanes, ++used_) {
    load_panel(call, numbers, scale,
               {rows.b, rows.g, begin, std::min(rows.end, begin + kernels_.lanes)}, panel(used_));
  }
}

template <class T>
void BackwardRows<T>::load_panel(const BackwardCall& call, const RowNumbers<T>& numbers,
                                 double scale, const PackedRows& rows, BackwardPanel<T>& panel) {
  panel.rows = panel_rows(rows.b, rows.g, call.q.shape[1] / call.kv.kv_heads, rows.begin, rows.end);
  const index_t count = panel.rows.count;
  panel.vectors = (count + kernels_.width - 1) / kernels_.width;
  const T* queries[kMostRows];
  const T* d_out[kMostRows];
  for (index_t r = 0; r < count; ++r) {
    T* const query = panel.query_rows.data() + r * padded_d_k_;
    T* const gradient = panel.d_out_rows.data() + r * padded_d_v_;
    fetch_row(call.q, rows.b, panel.rows.h[r], panel.rows.i[r], query);
    for (index_t d = 0; d < sizes_.d_k; ++d) query[d] = scaled_element<T>(query[d], scale);
    fetch_row(call.d_out, rows.b, panel.rows.h[r], panel.rows.i[r], gradient);
    queries[r] = query;
    d_out[r] = gradient;
  }
  kernels_.pack({queries, 1, count, sizes_.d_k, 1.0, panel.vectors, panel.queries.data()});
  kernels_.pack({d_out, 1, count, sizes_.d_v, 1.0, panel.vectors, panel.d_out.data()});
  panel.is_finite = all_finite(panel.query_rows.data(), count * padded_d_k_) &&
                    all_finite(panel.d_out_rows.data(), count * padded_d_v_);
  const auto copy = [&](const T* from, AlignedArray<T>& to) {
    std::fill_n(to.data(), kernels_.lanes, T(0));
    std::copy_n(from + rows.begin, count, to.data());
  };
  copy(numbers.max(rows.b, rows.g), panel.max);
  copy(numbers.inverse(rows.b, rows.g), panel.inverse);
  copy(numbers.mean(rows.b, rows.g), panel.mean);
  if (!sizes_.wants_dq) return;
  std::fill_n(panel.total.data(), sizes_.d_k * kernels_.lanes, T(0));
  std::fill_n(panel.chunk.data(), sizes_.d_k * kernels_.lanes, T(0));
  panel.has_chunk = false;
}

template void fetch_row(const ConstTensor<4>&, index_t, index_t, index_t, float*);
template void fetch_row(const ConstTensor<4>&, index_t, index_t, index_t, double*);
template class RowNumbers<float>;
template class RowNumbers<double>;
template class BackwardRows<float>;
template class BackwardRows<double>;

}  // namespace glasshead
