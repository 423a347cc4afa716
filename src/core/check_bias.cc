#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "base/checked.h"
#include "core/validate.h"

namespace glasshead {
namespace {

bool fits(double x, DType compute) {
  return std::isfinite(x) && (compute == DType::f64 || std::isfinite(static_cast<float>(x)));
}

// "is nan", "is 1e300, beyond f32's range": why a number can't be added.
std::string fault_text(double x, DType compute) {
  std::string text = "is " + number_text(x);
  if (std::isfinite(x))
    text += fmt::format(", beyond the range of the compute type {}", name(compute));
  return text;
}

void check_term(const Bias::Alibi& alibi, const PairShape& pairs, DType compute,
                Findings& findings) {
  if (static_cast<index_t>(alibi.slopes.size()) != pairs.heads) {
    findings.shape("bias.alibi", fmt::format("{} slopes where q has {} heads; one for each head",
                                             alibi.slopes.size(), pairs.heads));
  }
  for (std::size_t h = 0; h < alibi.slopes.size(); ++h) {
    if (fits(alibi.slopes[h], compute)) continue;
    findings.option("bias.alibi", fmt::format("slopes[{}] {}; slopes are finite numbers", h,
                                              fault_text(alibi.slopes[h], compute)));
  }
}

void check_term(const Bias::T5& t5, const PairShape& pairs, DType compute, Findings& findings) {
  const index_t least = t5.is_bidirectional ? 4 : 2;
  if (t5.buckets < least) {
    findings.option("bias.t5",
                    fmt::format("{} buckets; at least {} are needed{}", t5.buckets, least,
                                t5.is_bidirectional ? ", half of them for each side" : ""));
  } else if (const index_t exact = (t5.is_bidirectional ? t5.buckets / 2 : t5.buckets) / 2;
             t5.max_distance <= exact) {
    findings.option("bias.t5",
                    fmt::format("max_distance is {}; the first {} distances have buckets of their "
                                "own, so it must be larger",
                                t5.max_distance, exact));
  }
  if (t5.heads != pairs.heads) {
    findings.shape("bias.t5", fmt::format("heads is {} where q has {}", t5.heads, pairs.heads));
  }
  const std::optional<index_t> entries = checked_mul(t5.buckets, t5.heads);
  if (!entries || static_cast<index_t>(t5.table.size()) != *entries) {
    findings.shape("bias.t5", fmt::format("table has {} numbers; [buckets, heads] = [{},{}] are "
                                          "needed",
                                          t5.table.size(), t5.buckets, t5.heads));
  }
  for (std::size_t n = 0; n < t5.table.size(); ++n) {
    if (fits(t5.table[n], compute)) continue;
    findings.option("bias.t5", fmt::format("table[{}] {}; entries are finite numbers", n,
                                           fault_text(t5.table[n], compute)));
    return;  // one is enough to look at the table
  }
}

// Elements whose bits without the sign are below `limit`, or equal to `minus_infinity`, are right:
// asked without a branch, so that compilers make vectors of it.
template <class U>
bool run_fits(const unsigned char* elements, index_t step, index_t count, U limit,
              U minus_infinity) {
  constexpr U kMagnitude = static_cast<U>(~U{0}) >> 1;
  U wrong = 0;
  const auto look = [&](index_t n) {
    U bits;
    std::memcpy(&bits, elements + n * static_cast<index_t>(sizeof(U)), sizeof(U));
    const auto is_large = static_cast<U>((bits & kMagnitude) >= limit);
    wrong = static_cast<U>(wrong | (is_large & static_cast<U>(bits != minus_infinity)));
  };
  if (step == 1) {
    for (index_t n = 0; n < count; ++n) look(n);
  } else {
    for (index_t n = 0; n < count; ++n) look(n * step);
  }
  return wrong == 0;
}

bool run_fits(const Broadcast& values, DType compute, index_t offset, index_t step, index_t count) {
  const auto* const elements = static_cast<const unsigned char*>(values.data) +
                               offset * static_cast<index_t>(size_of(values.dtype));
  switch (values.dtype) {
    case DType::f64: {
      // From here on rounding to f32 overflows.
      constexpr double kAboveFloat = 0x1.ffffffp127;
      const double limit = compute == DType::f64 ? HUGE_VAL : kAboveFloat;
      return run_fits<std::uint64_t>(elements, step, count, std::bit_cast<std::uint64_t>(limit),
                                     0xfff0000000000000);
    }
    case DType::f32:
      return run_fits<std::uint32_t>(elements, step, count, 0x7f800000, 0xff800000);
    case DType::bf16:
      return run_fits<std::uint16_t>(elements, step, count, 0x7f80, 0xff80);
    case DType::f16:
      return run_fits<std::uint16_t>(elements, step, count, 0x7c00, 0xfc00);
    case DType::u8:
    case DType::i64:
      return true;  // refused before
  }
  return true;
}

// A tensor with all four axes, those that repeat one element counted as 1.
struct StoredElements {
  std::array<index_t, 4> extent{1, 1, 1, 1};
  std::array<index_t, 4> stride{0, 0, 0, 0};
};

// Whether x < inf, a finite number of the compute type or -inf, for every element, in the order of
// memory.
bool all_fit(const Broadcast& values, DType compute, const StoredElements& stored) {
  std::array<std::size_t, 4> axis{0, 1, 2, 3};  // the widest step first
  std::sort(axis.begin(), axis.end(), [&](std::size_t x, std::size_t y) {
    const auto step = [&](std::size_t n) {
      return stored.extent[n] == 1 ? std::numeric_limits<index_t>::max()
                                   : std::abs(stored.stride[n]);
    };
    return step(x) != step(y) ? step(x) > step(y) : x < y;
  });
  const auto extent = [&](std::size_t n) { return stored.extent[axis[n]]; };
  const auto stride = [&](std::size_t n) { return stored.stride[axis[n]]; };
  for (index_t a = 0; a < extent(0); ++a)
    for (index_t b = 0; b < extent(1); ++b)
      for (index_t c = 0; c < extent(2); ++c)
        if (!run_fits(values, compute, a * stride(0) + b * stride(1) + c * stride(2), stride(3),
                      extent(3)))
          return false;
  return true;
}

// Every stored element once.
void check_entries(const Broadcast& values, DType compute, Findings& findings) {
  const auto rank = static_cast<std::size_t>(values.rank);
  StoredElements stored;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const std::size_t to = 4 - rank + axis;
    stored.stride[to] = values.strides[axis];
    stored.extent[to] =
        values.strides[axis] == 0 && values.shape[axis] > 0 ? 1 : values.shape[axis];
  }
  if (all_fit(values, compute, stored)) return;
  const auto& [extent, stride] = stored;
  index_t wrong = 0;
  std::array<index_t, 4> first{};
  double found = 0;
  for (index_t a = 0; a < extent[0]; ++a) {
    for (index_t b = 0; b < extent[1]; ++b) {
      for (index_t c = 0; c < extent[2]; ++c) {
        const index_t row = a * stride[0] + b * stride[1] + c * stride[2];
        for (index_t d = 0; d < extent[3]; ++d) {
          const double x = load_element(values.data, values.dtype, row + d * stride[3]);
          if (fits(x, compute) || x == -HUGE_VAL) continue;
          if (wrong++ > 0) continue;
          first = {a, b, c, d};
          found = x;
        }
      }
    }
  }
  std::string more = wrong == 1 ? "" : fmt::format(" ({} such entries)", wrong);
  findings.option("bias.dense",
                  fmt::format("entry {} {}{}; a finite number is added, -inf hides the pair",
                              index_text(std::span<const index_t>(first).last(rank)),
                              fault_text(found, compute), more));
}

void check_term(const Bias::Dense& dense, const PairShape& pairs, DType compute,
                Findings& findings) {
  const Broadcast& values = dense.values;
  const std::size_t before = findings.problems.size();
  if (!is_floating(values.dtype)) {
    findings.option("bias.dense",
                    fmt::format("has dtype {}; f64, f32, bf16 or f16 would be right, booleans are "
                                "a mask",
                                name(values.dtype)));
  }
  check_broadcast("bias.dense", values, pairs, findings);
  if (findings.problems.size() == before) check_entries(values, compute, findings);
}

}  // namespace

void check_bias(const Bias& bias, const PairShape& pairs, DType compute, Findings& findings) {
  for (const Bias::Term& term : bias.terms())
    std::visit([&](const auto& t) { check_term(t, pairs, compute, findings); }, term);
}

}  // namespace glasshead
