// The bits of arithmetic/1, kept: digests of rows computed by row_reference and by every kernel
// set. They are the same for every compiler, level of optimisation and processor; a change to any
// of them is a new version of the arithmetic and a release note.
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/arithmetic.h"
#include "panel_run.h"
#include "sets.h"

namespace glasshead::test {
namespace {

// FNV-1a, 64 bits (Fowler, Noll, Vo), over the numbers' bytes, least significant first.
class Digest {
 public:
  template <class T>
  void add(const std::vector<T>& numbers) {
    for (const T x : numbers) {
      std::uint64_t bits = 0;
      if constexpr (sizeof(T) == 4) {
        std::uint32_t word = 0;
        std::memcpy(&word, &x, sizeof word);
        bits = word;
      } else {
        std::memcpy(&bits, &x, sizeof bits);
      }
      for (std::size_t byte = 0; byte < sizeof(T); ++byte)
        hash_ = (hash_ ^ ((bits >> (8 * byte)) & 0xFF)) * 0x100000001B3;
    }
  }
  std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_ = 0xCBF29CE484222325;
};

// Rows of one table: seeds [first, first + 16) of random_rows, of these largest sizes.
struct Table {
  std::uint64_t first;
  Sizes sizes;
  std::uint64_t in_float, in_double;  // arithmetic/1
};
const Table kTables[] = {
    {100, {20, 150, 40}, 0xEBE0366DCB3FB5F1, 0xD148388F54E823C1},  // short rows
    {200, {6, 300, 130}, 0xDF04075A81FF1E10, 0x02E05FA74A21013E},  // long vectors
    {300, {4, 5000, 6}, 0x88CE5D42EB08708C, 0xB6B09CD4AD0B49E6},   // several chunks
    {400, {40, 40, 8}, 0xBF3DCE69A4E5E314, 0x750186FF0C188F59},    // many rows
};

template <class T, class F>
std::uint64_t digest_of(const Table& table, const F& results) {
  Digest digest;
  for (std::uint64_t seed = table.first; seed < table.first + 16; ++seed) {
    const Result<T> result = results(random_rows<T>(seed, table.sizes));
    digest.add(result.out);
    digest.add(result.max);
    digest.add(result.sum);
  }
  return digest.value();
}

template <class T>
void expect_digests(const std::string& what, std::uint64_t Table::* expected, const auto& results) {
  for (const Table& table : kTables)
    EXPECT_EQ(digest_of<T>(table, results), table.*expected)
        << what << ", rows from seed " << table.first;
}

template <class T>
void expect_digests_everywhere(std::uint64_t Table::* expected) {
  ASSERT_EQ(kArithmetic, 1) << "a new version has new digests";
  expect_digests<T>("the row function", expected,
                    [](const Rows<T>& rows) { return reference_result(rows); });
  for (const KernelSet& set : runnable_sets()) {
    expect_digests<T>(set.name, expected,
                      [&](const Rows<T>& rows) { return run_rows(kernels_of<T>(set), rows, 7); });
  }
}

TEST(Digests, of_rows_in_float_are_those_of_arithmetic_1) {
  expect_digests_everywhere<float>(&Table::in_float);
}
TEST(Digests, of_rows_in_double_are_those_of_arithmetic_1) {
  expect_digests_everywhere<double>(&Table::in_double);
}

// exp and tanh themselves, subnormal results included: in most rows these are lost beside larger
// weights.
template <class T>
void expect_elementary_digest(std::uint64_t expected) {
  constexpr T kLowest = sizeof(T) == sizeof(float) ? T(-104) : T(-745.25);
  Random random(600);
  std::vector<T> exponents, angles;
  for (int n = 0; n < 4000; ++n) {
    exponents.push_back(static_cast<T>(random.uniform()) * kLowest);
    exponents.push_back(static_cast<T>(random.uniform() * (n % 50)) * T(-0.1));
    exponents.push_back(kLowest * (1 - static_cast<T>(random.uniform()) / 8));
    angles.push_back(static_cast<T>(random.normal()));
    angles.push_back(static_cast<T>(random.normal()) * T(8));
  }
  const auto digest = [&](const auto& exp, const auto& tanh) {
    std::vector<T> y(exponents.size()), z(angles.size());
    exp(exponents.data(), y.data(), static_cast<index_t>(y.size()));
    tanh(angles.data(), z.data(), static_cast<index_t>(z.size()));
    Digest of;
    of.add(y);
    of.add(z);
    return of.value();
  };
  const auto each = [](T (*f)(T)) {
    return [f](const T* x, T* y, index_t count) {
      for (index_t n = 0; n < count; ++n) y[n] = f(x[n]);
    };
  };
  EXPECT_EQ(digest(each(row_exp<T>), each(row_tanh<T>)), expected) << "the row function";
  for (const KernelSet& set : runnable_sets())
    EXPECT_EQ(digest(kernels_of<T>(set).exp, kernels_of<T>(set).tanh), expected) << set.name;
}
TEST(Digests, of_exp_and_tanh_are_those_of_arithmetic_1) {
  expect_elementary_digest<float>(0x1ECDD716EB1ADD5D);
  expect_elementary_digest<double>(0x8A6ED5E2F1B6C505);
}

// lse also takes the library's logarithm.
TEST(Digests, of_lse_are_those_of_arithmetic_1) {
  Digest in_float, in_double;
  for (std::uint64_t seed = 500; seed < 516; ++seed) {
    const Rows<float> floats = random_rows<float>(seed, {4, 200, 8});
    for (index_t i = 0; i < floats.rows; ++i)
      in_float.add(std::vector<float>{reference_of(floats, i).lse});
    const Rows<double> doubles = random_rows<double>(seed, {4, 200, 8});
    for (index_t i = 0; i < doubles.rows; ++i)
      in_double.add(std::vector<double>{reference_of(doubles, i).lse});
  }
  EXPECT_EQ(in_float.value(), 0x4675212BDED150C5u);
  EXPECT_EQ(in_double.value(), 0xAD957BF6DC066B6Fu);
}

}  // namespace
}  // namespace glasshead::test
