// Random rows of attention, the same on every machine: what the kernels and row_reference are both
// given. Nothing here depends on a kernel set.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "core/row_reference.h"

namespace glasshead::test {

// SplitMix64 (Steele, Lea, Flood 2014).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t bits() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }
  index_t below(index_t n) { return static_cast<index_t>(bits() % static_cast<std::uint64_t>(n)); }
  index_t between(index_t low, index_t high) { return low + below(high - low + 1); }
  bool one_in(index_t n) { return below(n) == 0; }
  // In [0, 1), a multiple of 2^-53.
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  // Near enough to a standard normal, made of exact operations.
  double normal() {
    double sum = 0;
    for (int n = 0; n < 12; ++n) sum += uniform();
    return sum - 6;
  }

 private:
  std::uint64_t state_;
};

// What numbers look like.
enum class Numbers : std::uint8_t { normal, whole, huge, tiny, special };

template <class T>
T random_number(Random& random, Numbers kind) {
  using Limits = std::numeric_limits<T>;
  const double x = random.normal();
  switch (kind) {
    case Numbers::normal:
      return static_cast<T>(x);
    case Numbers::whole:
      return static_cast<T>(random.between(-3, 3));
    case Numbers::huge:  // products overflow
      return static_cast<T>(x) * (Limits::max() / T(16));
    case Numbers::tiny:  // products underflow
      return static_cast<T>(x) * Limits::min() / T(4);
    case Numbers::special:
      break;
  }
  constexpr T kSpecial[] = {T(0),
                            -T(0),
                            Limits::infinity(),
                            -Limits::infinity(),
                            Limits::quiet_NaN(),
                            Limits::max(),
                            Limits::lowest(),
                            Limits::denorm_min(),
                            -Limits::denorm_min(),
                            Limits::min()};
  return kSpecial[random.below(10)];
}

template <class T>
std::vector<T> random_numbers(Random& random, index_t count, Numbers kind) {
  std::vector<T> numbers(static_cast<std::size_t>(count));
  for (T& x : numbers) x = random_number<T>(random, kind);
  return numbers;
}

// Rows that share keys and values, as the query rows of one head do; everything dense, row-major.
template <class T>
struct Rows {
  index_t rows = 1, kv_len = 0, d_k = 1, d_v = 1;
  double scale = 1;
  T softcap = 0;
  bool has_bias = false, has_dropout = false;
  double dropout_p = 0.25;
  std::vector<T> q, k, v;                   // [rows, d_k], [kv_len, d_k], [kv_len, d_v]
  std::vector<T> bias;                      // [rows, kv_len]
  std::vector<std::uint8_t> allowed, kept;  // [rows, kv_len]
};

// Largest sizes of what is drawn.
struct Sizes {
  index_t rows = 40, kv_len = 300, d = 130;
};

// Which keys each row may attend.
template <class T>
void random_mask(Random& random, Rows<T>& rows) {
  const index_t kind = random.below(6);
  const index_t left = random.below(rows.kv_len + 1), right = random.below(rows.kv_len + 1);
  rows.allowed.resize(static_cast<std::size_t>(rows.rows * rows.kv_len));
  std::size_t at = 0;
  for (index_t i = 0; i < rows.rows; ++i) {
    for (index_t j = 0; j < rows.kv_len; ++j) {
      bool is_allowed = true;                                               // 0: every key
      if (kind == 1) is_allowed = j <= i + left;                            // causal
      if (kind == 2) is_allowed = j + left >= i + right && j <= i + right;  // a window
      if (kind == 3) is_allowed = random.one_in(2);
      if (kind == 4) is_allowed = random.one_in(60);        // mostly empty blocks
      if (kind == 5) is_allowed = j >= left && i % 3 != 0;  // whole rows without a key
      rows.allowed[at++] = is_allowed ? 1 : 0;
    }
  }
}

// What no row sees may hold anything: it must not be read into a result.
template <class T>
void spoil_hidden(Random& random, Rows<T>& rows) {
  const auto spoil = [&](std::vector<T>& numbers, index_t key, index_t size) {
    for (index_t e = 0; e < size; ++e)
      numbers[static_cast<std::size_t>(key * size + e)] =
          random_number<T>(random, Numbers::special);
  };
  for (index_t j = 0; j < rows.kv_len; ++j) {
    bool is_hidden = true;
    for (index_t i = 0; i < rows.rows; ++i) {
      const auto at = static_cast<std::size_t>(i * rows.kv_len + j);
      is_hidden = is_hidden && rows.allowed[at] == 0;
      if (rows.has_bias && rows.allowed[at] == 0 && random.one_in(4))
        rows.bias[at] = random_number<T>(random, Numbers::special);
    }
    if (is_hidden) {
      spoil(rows.k, j, rows.d_k);
      spoil(rows.v, j, rows.d_v);
    }
  }
}

template <class T>
Rows<T> random_rows(std::uint64_t seed, const Sizes& sizes) {
  Random random(seed);
  Rows<T> rows;
  rows.rows = random.between(1, sizes.rows);
  rows.kv_len = random.below(sizes.kv_len + 1);
  rows.d_k = random.between(1, sizes.d);
  rows.d_v = random.between(1, sizes.d);
  rows.scale = random.one_in(4) ? random.normal() : 1.0 / static_cast<double>(1 + rows.d_k / 8);
  const auto kind = [&] { return random.one_in(3) ? Numbers(random.below(4)) : Numbers::normal; };
  rows.q = random_numbers<T>(random, rows.rows * rows.d_k, kind());
  rows.k = random_numbers<T>(random, rows.kv_len * rows.d_k, kind());
  rows.v = random_numbers<T>(random, rows.kv_len * rows.d_v, kind());
  if (random.one_in(3)) rows.softcap = static_cast<T>(1 + random.below(50));
  rows.has_bias = random.one_in(2);
  if (rows.has_bias) {
    rows.bias = random_numbers<T>(random, rows.rows * rows.kv_len, Numbers::normal);
    const bool has_lowest = random.one_in(3);  // finfo.min, the usual mistake for a mask
    for (T& x : rows.bias) {
      if (has_lowest && random.one_in(2)) x = std::numeric_limits<T>::lowest();
      if (random.one_in(50)) x = -std::numeric_limits<T>::infinity();
    }
  }
  rows.has_dropout = random.one_in(4);
  if (rows.has_dropout) {
    rows.kept.resize(static_cast<std::size_t>(rows.rows * rows.kv_len));
    for (std::uint8_t& bit : rows.kept) bit = random.one_in(4) ? 0 : 1;
  }
  random_mask(random, rows);
  if (random.one_in(3)) {  // a few NaN, infinities and extremes that some rows see
    for (std::vector<T>* numbers : {&rows.q, &rows.k, &rows.v})
      for (T& x : *numbers) {
        if (random.one_in(1 + 100 * rows.d_k)) x = random_number<T>(random, Numbers::special);
      }
  }
  spoil_hidden(random, rows);
  return rows;
}

template <class T>
RowReference<T> reference_of(const Rows<T>& rows, index_t i, bool in_bf16 = false) {
  const auto from = static_cast<std::size_t>(i * rows.kv_len);
  RowInputs<T> row;
  row.q = {rows.q.data() + i * rows.d_k, {rows.d_k}};
  row.scale = rows.scale;
  row.k = {rows.k.data(), {rows.kv_len, rows.d_k}};
  row.v = {rows.v.data(), {rows.kv_len, rows.d_v}};
  row.softcap = rows.softcap;
  if (rows.has_bias) row.bias = {rows.bias.data() + from, {rows.kv_len}};
  row.allowed = {rows.allowed.data() + from, {rows.kv_len}};
  if (rows.has_dropout) row.kept = {rows.kept.data() + from, {rows.kv_len}};
  row.dropout_p = rows.dropout_p;
  row.in_bf16 = in_bf16;
  return row_reference(row);
}

}  // namespace glasshead::test
