// The order of `arithmetic/1`, step by step. Numbers in the margin are the steps of
// docs/same-bits.md.
#include "core/row_reference.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/math.h"
#include "kernels/arithmetic.h"

namespace glasshead {
namespace {

template <class T>
using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

// a * b + c, rounded once.
float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }

// a * b + c as VDPBF16PS makes it of floats: the factors rounded to bf16, one rounding of the sum,
// and subnormal numbers, factors, sums and results alike, are 0.
float flushed(float x) { return std::fabs(x) < 0x1p-126F ? std::copysign(0.0F, x) : x; }
float rounded(float x) {
  if (x != x) return x;
  const auto bits = std::bit_cast<std::uint32_t>(flushed(x));
  return std::bit_cast<float>((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000);
}
float fused_in_bf16(float a, float b, float c) {
  return flushed(fused(rounded(a), rounded(b), flushed(c)));
}

// A product of attention into its sum, as the row has it.
template <class T>
T product(const RowInputs<T>& row, T a, T b, T c) {
  if constexpr (std::is_same_v<T, float>) {
    if (row.in_bf16) return fused_in_bf16(a, b, c);
  }
  return fused(a, b, c);
}

// --- exp and tanh ---

// x = n ln 2 + r; `power` is 2^(n + 64).
template <class T>
struct Reduced {
  T power, r;
};

template <class T>
Reduced<T> reduce(T x) {
  using A = Arithmetic<T>;
  const T shifted = fused(x, A::kLog2e, A::kRound);  // its low bits are n + the exponent's offset
  const T n = shifted - A::kRound;
  T r = fused(n, -A::kLn2High, x);
  r = fused(n, -A::kLn2Low, r);
  const Bits<T> exponent = std::bit_cast<Bits<T>>(shifted) << A::kMantissaBits;
  return {std::bit_cast<T>(exponent), r};
}

template <class T>
T polynomial(T r) {
  using A = Arithmetic<T>;
  T p = A::kP[A::kTerms - 1];
  for (int n = A::kTerms - 2; n >= 0; --n) p = fused(p, r, A::kP[n]);
  return p;
}

// --- states ---

// What is known of a row after some of its keys.
template <class T>
struct State {
  T max = Arithmetic<T>::kStart;
  T sum = 0;
  std::vector<T> a;  // [d_v] sum of p * v, not yet divided

  explicit State(index_t d_v) : a(static_cast<std::size_t>(d_v)) {}
};

template <class T>
bool is_visible(const RowInputs<T>& row, index_t key) {
  return row.allowed.data == nullptr || row.allowed(key) != 0;
}
template <class T>
bool is_kept(const RowInputs<T>& row, index_t key) {
  return row.kept.data == nullptr || row.kept(key) != 0;
}
template <class T>
bool has_visible(const RowInputs<T>& row, index_t begin, index_t end) {
  for (index_t key = begin; key < end; ++key) {
    if (is_visible(row, key)) return true;
  }
  return false;
}

// 2. The score of a visible key.
template <class T>
T score(const RowInputs<T>& row, const std::vector<T>& qs, index_t key) {
  T s = 0;
  for (index_t e = 0; e < row.k.shape[1]; ++e)
    s = product(row, row.k(key, e), qs[static_cast<std::size_t>(e)], s);
  if (row.in_bf16 && row.k.shape[1] % 2 != 0) s = product(row, T(0), T(0), s);  // whole pairs
  if (row.softcap > 0) s = row.softcap * row_tanh(s / row.softcap);
  if (row.bias.data != nullptr) s = s + row.bias(key);
  return s;
}

// 3. One block of up to 128 keys [begin, end), at least one of them visible, goes into the state.
template <class T>
void add_block(const RowInputs<T>& row, const std::vector<T>& qs, index_t begin, index_t end,
               State<T>& state) {
  std::array<T, kBlock> p;  // first the scores, then their exponentials
  p.fill(-std::numeric_limits<T>::infinity());
  // 3a. The maximum so far: a NaN changes nothing.
  T max = state.max;
  for (index_t key = begin; key < end; ++key) {
    if (!is_visible(row, key)) continue;
    const T s = score(row, qs, key);
    p[static_cast<std::size_t>(key - begin)] = s;
    max = s > max ? s : max;
  }
  // 3b. What was summed before is rescaled to the new maximum by alpha.
  const T alpha = row_exp(state.max - max);
  state.max = max;
  // 3c. Eight partial sums, by the key's number modulo 8. Dropout comes after the sum.
  std::array<T, kPartialSums> part{};
  for (index_t key = begin; key < end; ++key) {
    if (!is_visible(row, key)) continue;
    T& of_key = p[static_cast<std::size_t>(key - begin)];
    of_key = row_exp(of_key - max);
    T& sum = part[static_cast<std::size_t>(key % kPartialSums)];
    sum = sum + of_key;
    if (!is_kept(row, key)) of_key = 0;
  }
  const T even = (part[0] + part[4]) + (part[2] + part[6]);
  const T odd = (part[1] + part[5]) + (part[3] + part[7]);
  state.sum = fused(state.sum, alpha, even + odd);
  // 3d. The weighted sum of the values, keys ascending.
  for (index_t e = 0; e < row.v.shape[1]; ++e) {
    T& a = state.a[static_cast<std::size_t>(e)];
    a = a * alpha;
    for (index_t key = begin; key < end; ++key) {
      if (is_visible(row, key))
        a = product(row, row.v(key, e), p[static_cast<std::size_t>(key - begin)], a);
    }
  }
}

// 4. Two states become one, in x: x is that of the earlier keys.
template <class T>
void merge(State<T>& x, const State<T>& y) {
  const T max = y.max > x.max ? y.max : x.max;
  const T fx = row_exp(x.max - max), fy = row_exp(y.max - max);
  x.sum = fused(y.sum, fy, x.sum * fx);
  for (std::size_t e = 0; e < x.a.size(); ++e) x.a[e] = fused(y.a[e], fy, x.a[e] * fx);
  x.max = max;
}

// A chunk of 1,024 keys begins afresh; nothing where it has no visible key.
template <class T>
std::optional<State<T>> chunk_state(const RowInputs<T>& row, const std::vector<T>& qs,
                                    index_t begin, index_t end) {
  std::optional<State<T>> state;
  for (index_t block = begin; block < end; block += kBlock) {
    const index_t block_end = block + kBlock < end ? block + kBlock : end;
    if (!has_visible(row, block, block_end)) continue;
    if (!state) state.emplace(row.v.shape[1]);
    add_block(row, qs, block, block_end, *state);
  }
  return state;
}

// The last two nodes become one; merging with a missing node changes nothing.
template <class T>
void merge_last_two(std::vector<std::optional<State<T>>>& nodes) {
  const std::optional<State<T>> later = std::move(nodes.back());
  nodes.pop_back();
  std::optional<State<T>>& earlier = nodes.back();
  if (later && earlier)
    merge(*earlier, *later);
  else if (later)
    earlier = later;
}

// 5. Chunks are merged in a binary tree over their numbers: after chunk c once for each trailing 1
// bit of c, and what is left at the end from the last to the first.
template <class T>
State<T> whole_state(const RowInputs<T>& row, const std::vector<T>& qs) {
  const index_t kv_len = row.k.shape[0];
  std::vector<std::optional<State<T>>> nodes;
  for (index_t begin = 0; begin < kv_len; begin += kChunk) {
    const index_t end = begin + kChunk < kv_len ? begin + kChunk : kv_len;
    nodes.push_back(chunk_state(row, qs, begin, end));
    for (index_t bits = begin / kChunk; (bits & 1) != 0; bits >>= 1) merge_last_two(nodes);
  }
  while (nodes.size() > 1) merge_last_two(nodes);
  if (nodes.empty() || !nodes[0]) return State<T>(row.v.shape[1]);
  return std::move(*nodes[0]);
}

template <class T>
T quiet(T x) {
  return x != x ? std::numeric_limits<T>::quiet_NaN() : x;
}

}  // namespace

template <class T>
T row_exp(T x) {
  const Reduced<T> reduced = reduce(x < Arithmetic<T>::kSmallest ? Arithmetic<T>::kSmallest : x);
  T e = polynomial(reduced.r);
  e = fused(e, reduced.r, T(1));
  e = fused(e, reduced.r, T(1));  // 1 + r + r^2 P(r)
  return e * reduced.power * Arithmetic<T>::kDown;
}

template <class T>
T row_tanh(T y) {
  const T magnitude = std::fabs(y);
  const T twice = magnitude + magnitude;
  const T x = Arithmetic<T>::kLargestTwice < twice ? Arithmetic<T>::kLargestTwice : twice;
  const Reduced<T> reduced = reduce(x);
  const T power = reduced.power * Arithmetic<T>::kDown;                            // 2^n
  const T small = fused(polynomial(reduced.r), reduced.r * reduced.r, reduced.r);  // expm1(r)
  const T e = fused(power, small, power - T(1));                                   // expm1(x)
  const T t = e / (e + T(2));
  return std::signbit(y) ? -t : t;
}

template <class T>
RowReference<T> row_reference(const RowInputs<T>& row) {
  // 1. The scaled query.
  std::vector<T> qs(static_cast<std::size_t>(row.q.shape[0]));
  for (index_t e = 0; e < row.q.shape[0]; ++e)
    qs[static_cast<std::size_t>(e)] = static_cast<T>(static_cast<double>(row.q(e)) * row.scale);

  State<T> state = whole_state(row, qs);

  // 6. The sink is one more state, merged last.
  if (row.sink) {
    State<T> sink(row.v.shape[1]);
    sink.max = *row.sink;
    sink.sum = 1;
    merge(state, sink);
  }

  // 7. One division per row; adding +0 turns a -0 into +0.
  RowReference<T> result;
  const T kept = row.kept.data == nullptr ? T(1) : static_cast<T>(1 / (1 - row.dropout_p));
  const bool is_empty = state.sum == 0;
  const T factor = kept / state.sum;
  for (const T a : state.a) result.out.push_back(is_empty ? T(0) : quiet(a * factor + T(0)));

  constexpr T kInf = std::numeric_limits<T>::infinity();
  const bool lost_a_nan = state.sum != state.sum && state.max != kInf;  // one that no maximum shows
  result.sum = quiet(state.sum);
  result.max = is_empty ? -kInf : lost_a_nan ? std::numeric_limits<T>::quiet_NaN() : state.max;
  const double lse = static_cast<double>(state.max) + math::log(static_cast<double>(state.sum));
  result.lse = is_empty ? -kInf : quiet(static_cast<T>(lse));
  return result;
}

template float row_exp(float);
template double row_exp(double);
template float row_tanh(float);
template double row_tanh(double);
template RowReference<float> row_reference(const RowInputs<float>&);
template RowReference<double> row_reference(const RowInputs<double>&);

}  // namespace glasshead
