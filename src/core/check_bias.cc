#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
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

// Whether x < inf, a finite number or -inf, for all of a row that is stored as the compute type:
// asked of its bits, U, and without a branch, so that compilers make vectors of it.
template <class T, class U>
bool row_fits(const Broadcast& values, index_t offset, index_t count) {
  constexpr U kInfinity = std::bit_cast<U>(std::numeric_limits<T>::infinity());
  constexpr U kMagnitude = static_cast<U>(~U{0}) >> 1;
  const T* const row = static_cast<const T*>(values.data) + offset;
  U wrong = 0;
  for (index_t d = 0; d < count; ++d) {
    const U bits = std::bit_cast<U>(row[d]);
    wrong |= static_cast<U>((bits & kMagnitude) > kInfinity) | static_cast<U>(bits == kInfinity);
  }
  return wrong == 0;
}

// Every stored element once: axes that repeat one element count as 1.
void check_entries(const Broadcast& values, DType compute, Findings& findings) {
  const auto rank = static_cast<std::size_t>(values.rank);
  std::array<index_t, 4> extent{1, 1, 1, 1};  // of a tensor with all four axes
  std::array<index_t, 4> stride{0, 0, 0, 0};
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const std::size_t to = 4 - rank + axis;
    stride[to] = values.strides[axis];
    extent[to] = stride[to] == 0 && values.shape[axis] > 0 ? 1 : values.shape[axis];
  }
  index_t wrong = 0;
  std::array<index_t, 4> first{};
  double found = 0;
  for (index_t a = 0; a < extent[0]; ++a) {
    for (index_t b = 0; b < extent[1]; ++b) {
      for (index_t c = 0; c < extent[2]; ++c) {
        const index_t row = a * stride[0] + b * stride[1] + c * stride[2];
        if (values.dtype == compute && (stride[3] == 1 || extent[3] == 1) &&
            (compute == DType::f64 ? row_fits<double, std::uint64_t>(values, row, extent[3])
                                   : row_fits<float, std::uint32_t>(values, row, extent[3])))
          continue;
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
  if (wrong == 0) return;
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
