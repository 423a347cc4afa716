#include "cli/bench_inputs.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace glasshead::cli {
namespace {

using Part = std::size_t;  // a place in buffers_
constexpr Part kQ = 0, kK = 1, kV = 2, kOut = 3, kDOut = 4, kDq = 5, kDk = 6, kDv = 7;
constexpr index_t kTile = 128;

// The generator is the standard's, the same everywhere; the numbers are only data to be timed.
using Random = std::mt19937_64;

void fill(const MutableTensor<4>& tensor, Random& random) {
  std::normal_distribution<double> normal;
  for (index_t h = 0; h < tensor.shape[1]; ++h)
    for (index_t i = 0; i < tensor.shape[2]; ++i)
      for (index_t d = 0; d < tensor.shape[3]; ++d) tensor.store_at({0, h, i, d}, normal(random));
}

struct Errors {
  double of_result = 0, of_answer = 0;
  void add(double got, double right) {
    of_result += (got - right) * (got - right);
    of_answer += right * right;
  }
  double relative() const { return std::sqrt(of_result / of_answer); }
};

ConstTensor<4> dense(const std::vector<double>& numbers, index_t length, index_t d) {
  return {numbers.data(), DType::f64, {1, 1, length, d}, row_major<4>({1, 1, length, d})};
}

double dot(const double* a, const double* b, index_t d) {
  double sum = 0;
  for (index_t n = 0; n < d; ++n) sum += a[n] * b[n];
  return sum;
}

double rounded(double x, DType type) {
  std::uint64_t element = 0;
  store_element(&element, type, 0, x);
  return load_element(&element, type, 0);
}

// What a cache of this type holds of rows of d numbers (kv_cache.h).
void round_as(KvType type, index_t d, std::vector<double>& numbers) {
  if (type == KvType::bf16 || type == KvType::f16) {
    for (double& x : numbers) x = rounded(x, type == KvType::bf16 ? DType::bf16 : DType::f16);
    return;
  }
  if (type != KvType::int8) return;
  const auto size = static_cast<std::size_t>(d);
  for (std::size_t row = 0; row < numbers.size(); row += size) {
    double largest = 0;
    for (std::size_t n = row; n < row + size; ++n)
      largest = std::max(largest, std::fabs(numbers[n]));
    const double scale = rounded(largest / 127, DType::f32);
    for (std::size_t n = row; n < row + size; ++n)
      numbers[n] = std::nearbyint(numbers[n] / scale) * scale;
  }
}

// First, last and some between.
std::vector<index_t> samples(index_t n) {
  std::vector<index_t> rows{0, n / 3, n / 2, n - 1};
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

}  // namespace

BenchInputs::BenchInputs(const BenchRow& row, const Context&) : row_(row) {
  const bool is_backward = row.kind == BenchKind::backward;
  buffers_.reserve(is_backward ? kDv + 1 : kOut + 1);
  Random random(20260101);
  const auto add = [&](index_t heads, index_t length, bool is_filled) {
    const Buffer& buffer = tensor(heads, length);
    if (is_filled) fill(writable(buffer, heads, length), random);
  };
  add(row.heads, row.q_len, true);
  add(row.kv_heads, row.kv_len, true);
  add(row.kv_heads, row.kv_len, true);
  add(row.heads, row.q_len, false);
  if (is_backward) {
    add(row.heads, row.q_len, true);
    add(row.heads, row.q_len, false);
    add(row.kv_heads, row.kv_len, false);
    add(row.kv_heads, row.kv_len, false);
    sums_.resize(static_cast<std::size_t>(row.heads * row.q_len));
    maxima_.resize(sums_.size());
  }
  if (row.mask == BenchMask::half) fill_mask();
  if (row.has_bias) {
    std::normal_distribution<float> normal;
    bias_.resize(static_cast<std::size_t>(row.q_len * row.kv_len));
    for (float& x : bias_) x = normal(random);
  }
  if (row.kind == BenchKind::decode_cache) fill_cache();
}

Buffer& BenchInputs::tensor(index_t heads, index_t length) {
  buffers_.emplace_back(static_cast<std::size_t>(heads * length * row_.d) * size_of(row_.dtype));
  return buffers_.back();
}

MutableTensor<4> BenchInputs::writable(const Buffer& buffer, index_t heads, index_t length) const {
  const index_t d = row_.d;
  MutableTensor<4> view(buffer.data(), row_.dtype, {1, heads, length, d},
                        row_major<4>({1, heads, length, d}));
  if (row_.is_strided) view.strides = {heads * length * d, d, heads * d, 1};
  return view;
}

ConstTensor<4> BenchInputs::view(const Buffer& buffer, index_t heads, index_t length) const {
  const MutableTensor<4> tensor = writable(buffer, heads, length);
  return {tensor.data, tensor.dtype, tensor.shape, tensor.strides};
}

void BenchInputs::fill_mask() {
  Random random(7);
  allowed_.assign(static_cast<std::size_t>(row_.q_len * row_.kv_len), 1);
  for (index_t i0 = 0; i0 < row_.q_len; i0 += kTile) {
    for (index_t j0 = 0; j0 < row_.kv_len; j0 += kTile) {
      if (random() % 2 == 0) continue;
      for (index_t i = i0; i < std::min(row_.q_len, i0 + kTile); ++i)
        for (index_t j = j0; j < std::min(row_.kv_len, j0 + kTile); ++j)
          allowed_[static_cast<std::size_t>(i * row_.kv_len + j)] = random() % 2;
    }
  }
}

void BenchInputs::fill_cache() {
  cache_.emplace(KvCacheOptions{.batch = 1,
                                .kv_heads = row_.kv_heads,
                                .d_k = row_.d,
                                .d_v = row_.d,
                                .type = row_.cache,
                                .storage = KvContiguous{row_.kv_len}});
  const auto sequence = [&](Part part) {
    const ConstTensor<4> all = view(buffers_[part], row_.kv_heads, row_.kv_len);
    return ConstTensor<3>(all.data, all.dtype, {all.shape[1], all.shape[2], all.shape[3]},
                          {all.strides[1], all.strides[2], all.strides[3]});
  };
  cache_->append(0, sequence(kK), sequence(kV));
}

AttentionOptions BenchInputs::options(index_t first, index_t rows) const {
  AttentionOptions options;
  options.query_start = row_.kv_len - row_.q_len + first;
  if (row_.mask == BenchMask::causal) options.mask = Mask::causal();
  if (row_.mask == BenchMask::window)
    options.mask = Mask::causal() & Mask::window(kBenchWindow, std::nullopt);
  const std::array<index_t, 4> shape{1, 1, rows, row_.kv_len};
  if (row_.mask == BenchMask::half)
    options.mask = Mask::allowed(Broadcast(ConstTensor<4>(allowed_.data() + first * row_.kv_len,
                                                          DType::u8, shape, row_major<4>(shape))));
  if (row_.has_bias)
    options.bias = Bias::dense(Broadcast(ConstTensor<4>(bias_.data() + first * row_.kv_len,
                                                        DType::f32, shape, row_major<4>(shape))));
  return options;
}

void BenchInputs::run(const Context& context) {
  const ConstTensor<4> q = view(buffers_[kQ], row_.heads, row_.q_len);
  const MutableTensor<4> out = writable(buffers_[kOut], row_.heads, row_.q_len);
  const AttentionOptions all = options(0, row_.q_len);
  if (row_.kind == BenchKind::decode_cache) {
    attend(q, cache_->input(), out, all, {}, context);
    return;
  }
  const ConstTensor<4> k = view(buffers_[kK], row_.kv_heads, row_.kv_len);
  const ConstTensor<4> v = view(buffers_[kV], row_.kv_heads, row_.kv_len);
  if (row_.kind != BenchKind::backward) {
    attend(q, k, v, out, all, {}, context);
    return;
  }
  // out, max and sum are kept by the forward pass, which is not part of the time.
  const std::array<index_t, 3> shape{1, row_.heads, row_.q_len};
  RowState rows;
  rows.max = {maxima_.data(), DType::f32, shape, row_major<3>(shape)};
  rows.sum = {sums_.data(), DType::f32, shape, row_major<3>(shape)};
  if (sums_[0] == 0) attend(q, k, v, out, all, rows, context);
  Gradients gradients;
  gradients.dq = writable(buffers_[kDq], row_.heads, row_.q_len);
  gradients.dk = writable(buffers_[kDk], row_.kv_heads, row_.kv_len);
  gradients.dv = writable(buffers_[kDv], row_.kv_heads, row_.kv_len);
  attend_backward(view(buffers_[kDOut], row_.heads, row_.q_len), q, k, v,
                  view(buffers_[kOut], row_.heads, row_.q_len), rows, gradients, all, context);
}

std::vector<double> BenchInputs::row_of(const Buffer& buffer, index_t heads, index_t length,
                                        index_t h, index_t i) const {
  const ConstTensor<4> tensor = view(buffer, heads, length);
  std::vector<double> row;
  for (index_t d = 0; d < row_.d; ++d) row.push_back(tensor.load(0, h, i, d));
  return row;
}

std::vector<double> BenchInputs::head_of(const Buffer& buffer, index_t heads, index_t length,
                                         index_t h) const {
  std::vector<double> head;
  for (index_t i = 0; i < length; ++i) {
    const std::vector<double> row = row_of(buffer, heads, length, h, i);
    head.insert(head.end(), row.begin(), row.end());
  }
  return head;
}

double BenchInputs::output_error() const {
  double worst = 0;
  for (const index_t h : {index_t{0}, row_.heads - 1}) {
    const index_t g = h / (row_.heads / row_.kv_heads);
    std::vector<double> k = head_of(buffers_[kK], row_.kv_heads, row_.kv_len, g);
    std::vector<double> v = head_of(buffers_[kV], row_.kv_heads, row_.kv_len, g);
    if (cache_) {
      round_as(row_.cache, row_.d, k);
      round_as(row_.cache, row_.d, v);
    }
    for (const index_t i : samples(row_.q_len)) {
      const std::vector<double> q = row_of(buffers_[kQ], row_.heads, row_.q_len, h, i);
      std::vector<double> right(static_cast<std::size_t>(row_.d));
      attend_transparent(
          dense(q, 1, row_.d), dense(k, row_.kv_len, row_.d), dense(v, row_.kv_len, row_.d),
          {right.data(), DType::f64, {1, 1, 1, row_.d}, row_major<4>({1, 1, 1, row_.d})},
          options(i, 1));
      const std::vector<double> got = row_of(buffers_[kOut], row_.heads, row_.q_len, h, i);
      Errors errors;
      for (std::size_t d = 0; d < right.size(); ++d) errors.add(got[d], right[d]);
      if (!(errors.relative() <= worst)) worst = errors.relative();  // a NaN stays
    }
  }
  return worst;
}

// Of head 0: w = exp(s - lse), D_i = d_out_i.out_i, ds = w (d_out.v - D), all in f64.
double BenchInputs::gradient_error() const {
  const index_t n = row_.kv_len, d = row_.d;
  const auto head = [&](Part part, index_t heads) { return head_of(buffers_[part], heads, n, 0); };
  const std::vector<double> q = head(kQ, row_.heads), k = head(kK, row_.kv_heads),
                            v = head(kV, row_.kv_heads), d_out = head(kDOut, row_.heads);
  std::vector<double> out(q.size()), lse(static_cast<std::size_t>(n));
  RowState rows;
  rows.lse = {lse.data(), DType::f64, {1, 1, n}, row_major<3>({1, 1, n})};
  attend_transparent(dense(q, n, d), dense(k, n, d), dense(v, n, d),
                     {out.data(), DType::f64, {1, 1, n, d}, row_major<4>({1, 1, n, d})},
                     options(0, n), rows);
  const double scale = 1 / std::sqrt(static_cast<double>(d));
  struct Pair {
    double w, ds;
  };
  const auto pair = [&](index_t i, index_t j) -> Pair {
    if (j > i) return {0, 0};  // causal
    const double* d_row = d_out.data() + i * d;
    const double w = std::exp(scale * dot(q.data() + i * d, k.data() + j * d, d) -
                              lse[static_cast<std::size_t>(i)]);
    return {w, w * (dot(d_row, v.data() + j * d, d) - dot(d_row, out.data() + i * d, d))};
  };
  Errors errors;
  for (const index_t at : samples(n)) {
    std::vector<double> dq(static_cast<std::size_t>(d)), dk = dq, dv = dq;
    for (index_t other = 0; other < n; ++other) {
      const Pair as_query = pair(at, other), as_key = pair(other, at);
      for (index_t e = 0; e < d; ++e) {
        const auto to = static_cast<std::size_t>(e), from = static_cast<std::size_t>(other * d + e);
        dq[to] += scale * as_query.ds * k[from];
        dk[to] += scale * as_key.ds * q[from];
        dv[to] += as_key.w * d_out[from];
      }
    }
    const std::vector<double> got_dq = row_of(buffers_[kDq], row_.heads, n, 0, at),
                              got_dk = row_of(buffers_[kDk], row_.kv_heads, n, 0, at),
                              got_dv = row_of(buffers_[kDv], row_.kv_heads, n, 0, at);
    for (std::size_t e = 0; e < dq.size(); ++e) {
      errors.add(got_dq[e], dq[e]);
      errors.add(got_dk[e], dk[e]);
      errors.add(got_dv[e], dv[e]);
    }
  }
  return errors.relative();
}

std::vector<MemoryRun> BenchInputs::keys_and_values() const {
  // A cache keeps its own copy: as many bytes of its type, in memory of the same kind.
  const double share = row_.bytes() / (2.0 * static_cast<double>(buffers_[kK].bytes()));
  std::vector<MemoryRun> runs;
  for (const Part part : {kK, kV})
    runs.push_back({buffers_[part].data(),
                    static_cast<std::size_t>(share * static_cast<double>(buffers_[part].bytes()))});
  return runs;
}

}  // namespace glasshead::cli
