// Rows stored in 16 bits have the bits of their numbers stored one by one (store_element, whose
// rounding tests/base/tensor_test.cc ties to the formats' definition).
#include "core/narrow.h"

#include <bit>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

namespace glasshead::test {
namespace {

// Every exponent and sign with fractions around each place where a format's rounding may turn:
// zeros, ones and ties above and below every bit.
std::vector<float> numbers() {
  std::vector<float> all;
  for (std::uint32_t high = 0; high < 512; ++high) {
    for (std::uint32_t bit = 0; bit <= 23; ++bit) {
      for (const std::uint32_t other : {0x000000U, 0x400000U, 0x2aaaaaU, 0x7fffffU, 0x002000U}) {
        for (std::uint32_t near = 0; near < 3; ++near) {
          const std::uint32_t fraction = (other ^ ((1U << bit) - 1U + near)) & 0x7fffffU;
          all.push_back(std::bit_cast<float>(high << 23 | fraction));
        }
      }
    }
  }
  return all;
}

TEST(Narrow, a_run_has_the_bits_of_its_numbers_stored_one_by_one) {
  const std::vector<float> from = numbers();
  const auto count = static_cast<index_t>(from.size());
  for (const DType type : {DType::bf16, DType::f16, DType::f64}) {
    for (const index_t step : {1, 2, -1}) {
      const index_t offset = step < 0 ? count - 1 : 0;
      std::vector<std::uint64_t> run(2 * from.size()), single(run);
      store_run(from.data(), run.data(), type, offset, step, count);
      for (index_t n = 0; n < count; ++n)
        store_element(single.data(), type, offset + n * step,
                      static_cast<double>(from[static_cast<std::size_t>(n)]));
      EXPECT_EQ(run, single) << name(type) << ", step " << step;
    }
  }
}

TEST(Narrow, doubles_are_rounded_once) {
  const std::vector<double> from{1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-8 + 0x1p-45, 65520, -5e-324};
  for (const DType type : {DType::bf16, DType::f16, DType::f32}) {
    std::vector<std::uint32_t> run(from.size()), single(run);
    store_run(from.data(), run.data(), type, 0, 1, static_cast<index_t>(from.size()));
    for (std::size_t n = 0; n < from.size(); ++n)
      store_element(single.data(), type, static_cast<index_t>(n), from[n]);
    EXPECT_EQ(run, single) << name(type);
  }
}

}  // namespace
}  // namespace glasshead::test
