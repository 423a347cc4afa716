// Attention of one row, one formula per function: what `attend`, `attention_weights` and the steps
// run. T is the compute type, float or double; E the element as stored, which widens exactly to T.
//
//   scores[j] = dot<T>(q, {k_row, step}, d_k);               // per allowed key
//   T max = row_max(scores, allowed, keys, kNothing<T>);
//   for (j in keys) if (allowed[j]) e[j] = shifted_exp(scores[j], max);
//   T sum = block_sum(e, allowed, keys);                     // + shifted_exp(sink, max)
//   T lse = log_sum_exp(max, sum);
//
// Arrays over keys are indexed by the key itself and hold meaning only where allowed[j] is 1: a
// hidden key's entries are skipped, never multiplied, so what they hold cannot matter. Multiply and
// add are rounded apart. Sums over keys are made in blocks of 128 at absolute multiples of 128,
// each in key order in T, and the blocks' sums are added in order in f64 (in float a million equal
// weights would lose 1e-4 of the sum): a block with no allowed key adds 0, so the bits don't depend
// on where `keys` begins and ends. In float, exp, log and tanh are
// computed in f64 from the exact difference or quotient and rounded once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "base/math.h"
#include "core/mask_plan.h"

namespace glasshead {

inline constexpr index_t kSumBlock = 128;  // keys per partial sum; absolute multiples

// The maximum over no keys.
template <class T>
inline constexpr T kNothing = -std::numeric_limits<T>::infinity();

// One stored vector: element d is data[d * step].
template <class E>
struct Strided {
  const E* data = nullptr;
  index_t step = 1;
  const E& operator[](index_t d) const { return data[d * step]; }
};

template <class T, class E>
T widen_to(const E& x) {
  if constexpr (std::is_floating_point_v<E>)
    return static_cast<T>(x);
  else
    return static_cast<T>(widen(x));
}

// scale * q_d, computed in f64 and rounded once to T.
template <class T, class E>
T scaled_element(const E& q, double scale) {
  return static_cast<T>(widen_to<double>(q) * scale);
}

// sum_d a_d * b_d in index order.
template <class T, class E>
T dot(const T* a, const Strided<E>& b, index_t size) {
  T sum = 0;
  for (index_t d = 0; d < size; ++d) sum += a[d] * widen_to<T>(b[d]);
  return sum;
}

// softcap * tanh(s / softcap), for softcap > 0.
template <class T>
T capped_score(T score, double softcap) {
  return static_cast<T>(softcap * math::tanh(static_cast<double>(score) / softcap));
}

// Largest of `start` (the sink, or kNothing<T>) and the allowed scores; NaN if any of them is NaN.
template <class T>
T row_max(const T* scores, const std::uint8_t* allowed, KeyRange keys, T start) {
  T max = start;
  for (index_t j = keys.begin; j < keys.end; ++j) {
    if (allowed[j] == 0) continue;
    if (scores[j] != scores[j]) return std::numeric_limits<T>::quiet_NaN();
    max = std::max(max, scores[j]);
  }
  return max;
}

// exp(score - max).
template <class T>
T shifted_exp(T score, T max) {
  return static_cast<T>(math::exp(static_cast<double>(score) - static_cast<double>(max)));
}

// sum_j terms_j over the allowed keys, in blocks.
template <class T>
T block_sum(const T* terms, const std::uint8_t* allowed, KeyRange keys) {
  double total = 0;
  for (index_t j = keys.begin; j < keys.end;) {
    const index_t end = std::min(keys.end, j - j % kSumBlock + kSumBlock);
    T block = 0;
    for (; j < end; ++j) {
      if (allowed[j] != 0) block += terms[j];
    }
    total += static_cast<double>(block);
  }
  return static_cast<T>(total);
}

// max + ln(sum); -inf for a row with nothing in it (max -inf, sum 0).
template <class T>
T log_sum_exp(T max, T sum) {
  if (max == kNothing<T>) return kNothing<T>;
  return static_cast<T>(static_cast<double>(max) + math::log(static_cast<double>(sum)));
}

// total_d = sum_j weights_j * value(j)_d over the allowed keys, in blocks; `value(j)` is a
// Strided<E>. `block` is room for `size` numbers.
template <class T, class Value>
void weighted_sum(const T* weights, const std::uint8_t* allowed, KeyRange keys, const Value& value,
                  index_t size, T* block, double* total) {
  std::fill_n(total, size, 0.0);
  for (index_t j = keys.begin; j < keys.end;) {
    const index_t end = std::min(keys.end, j - j % kSumBlock + kSumBlock);
    std::fill_n(block, size, T(0));
    for (; j < end; ++j) {
      if (allowed[j] == 0) continue;
      const auto v = value(j);
      const T weight = weights[j];
      for (index_t d = 0; d < size; ++d) block[d] += weight * widen_to<T>(v[d]);
    }
    for (index_t d = 0; d < size; ++d) total[d] += static_cast<double>(block[d]);
  }
}

// As results are written: one quiet NaN for every NaN, +0 for -0.
template <class T>
T canonical(T x) {
  if (x != x) return std::numeric_limits<T>::quiet_NaN();
  return x == 0 ? T(0) : x;
}

}  // namespace glasshead
