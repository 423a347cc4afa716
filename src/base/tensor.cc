#include "glasshead/tensor.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace glasshead {
namespace {

// A 16-bit binary format: one sign bit, then the exponent, then the fraction.
struct Small {
  int fraction_bits;
  int least_exponent;  // of a normal number: 1.f * 2^least_exponent
  std::uint16_t infinity;
};
constexpr Small kBf16{7, -126, 0x7F80};
constexpr Small kF16{10, -14, 0x7C00};

constexpr int kFractionBits = 52;
constexpr int kExponentBias = 1023;
constexpr std::uint64_t kImplicitBit = std::uint64_t{1} << kFractionBits;

double widen_bits(std::uint16_t bits, const Small& format) {
  const std::uint64_t sign = static_cast<std::uint64_t>(bits & 0x8000U) << 48;
  const std::uint64_t magnitude = bits & 0x7FFFU;
  const std::uint64_t fraction_mask = (std::uint64_t{1} << format.fraction_bits) - 1;
  if (magnitude > format.infinity) return std::numeric_limits<double>::quiet_NaN();
  if (magnitude == format.infinity)
    return std::bit_cast<double>(sign | std::bit_cast<std::uint64_t>(HUGE_VAL));

  const std::uint64_t exponent = magnitude >> format.fraction_bits;
  const std::uint64_t fraction = magnitude & fraction_mask;
  const int top = kFractionBits - format.fraction_bits;
  if (exponent == 0) {  // fraction * 2^(least_exponent - fraction_bits): a normal double
    const int power = format.least_exponent - format.fraction_bits + kExponentBias;
    const double unit = std::bit_cast<double>(static_cast<std::uint64_t>(power) << kFractionBits);
    const double value = static_cast<double>(fraction) * unit;
    return sign != 0 ? -value : value;
  }
  const int bias = format.least_exponent - 1 + kExponentBias;
  const std::uint64_t biased = exponent + static_cast<std::uint64_t>(bias);
  return std::bit_cast<double>(sign | (biased << kFractionBits) | (fraction << top));
}

// Rounds the 53-bit significand once, in integers: going through f32 would round twice.
std::uint16_t narrow_bits(double x, const Small& format) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const auto sign = static_cast<std::uint16_t>((bits >> 48) & 0x8000U);
  const std::uint64_t magnitude = bits & ~(std::uint64_t{1} << 63);
  constexpr std::uint64_t kInfinity = std::uint64_t{0x7FF} << kFractionBits;
  if (magnitude > kInfinity)  // one quiet NaN, whatever the sign and payload
    return static_cast<std::uint16_t>(format.infinity | (1U << (format.fraction_bits - 1)));
  if (magnitude == kInfinity) return static_cast<std::uint16_t>(sign | format.infinity);
  if (magnitude < kImplicitBit) return sign;  // subnormal doubles are far below either format

  const int exponent = static_cast<int>(magnitude >> kFractionBits) - kExponentBias;
  const std::uint64_t significand = (magnitude & (kImplicitBit - 1)) | kImplicitBit;
  const int above = exponent - format.least_exponent;  // negative: the result is subnormal
  const int dropped = kFractionBits - format.fraction_bits + (above < 0 ? -above : 0);
  if (dropped > kFractionBits + 1) return sign;  // below half of the smallest subnormal

  const std::uint64_t half = std::uint64_t{1} << (dropped - 1);
  const std::uint64_t rest = significand & ((half << 1) - 1);
  std::uint64_t kept = significand >> dropped;
  // Up from above half, and from half to even: added, since no branch could foresee it.
  kept += std::uint64_t{rest + (kept & 1) > half};
  // A carry out of the fraction moves into the exponent, which is what rounding up means there.
  if (above > 0) kept += static_cast<std::uint64_t>(above) << format.fraction_bits;
  if (kept > format.infinity) kept = format.infinity;
  return static_cast<std::uint16_t>(sign | kept);
}

template <class T>
T read(const void* data, index_t offset) {
  T value;
  std::memcpy(&value, static_cast<const unsigned char*>(data) + offset * index_t{sizeof(T)},
              sizeof(T));
  return value;
}

template <class T>
void write(void* data, index_t offset, T value) {
  std::memcpy(static_cast<unsigned char*>(data) + offset * index_t{sizeof(T)}, &value, sizeof(T));
}

index_t nearest_integer(double x) {
  if (std::isnan(x)) return 0;
  if (x >= 0x1p63) return std::numeric_limits<index_t>::max();
  if (x < -0x1p63) return std::numeric_limits<index_t>::min();
  return static_cast<index_t>(std::nearbyint(x));
}

}  // namespace

double widen(bf16 x) { return widen_bits(x.bits, kBf16); }
double widen(f16 x) { return widen_bits(x.bits, kF16); }
bf16 narrow_to_bf16(double x) { return {narrow_bits(x, kBf16)}; }
f16 narrow_to_f16(double x) { return {narrow_bits(x, kF16)}; }

const char* name(DType type) {
  switch (type) {
    case DType::f64:
      return "f64";
    case DType::f32:
      return "f32";
    case DType::bf16:
      return "bf16";
    case DType::f16:
      return "f16";
    case DType::u8:
      return "bool";
    case DType::i64:
      return "i64";
  }
  __builtin_unreachable();
}

std::size_t size_of(DType type) {
  switch (type) {
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::f32:
      return 4;
    case DType::bf16:
    case DType::f16:
      return 2;
    case DType::u8:
      return 1;
  }
  __builtin_unreachable();
}

double load_element(const void* data, DType type, index_t offset) {
  switch (type) {
    case DType::f64:
      return read<double>(data, offset);
    case DType::f32:
      return static_cast<double>(read<float>(data, offset));
    case DType::bf16:
      return widen(read<bf16>(data, offset));
    case DType::f16:
      return widen(read<f16>(data, offset));
    case DType::u8:
      return read<std::uint8_t>(data, offset) != 0 ? 1.0 : 0.0;
    case DType::i64:
      return static_cast<double>(read<index_t>(data, offset));
  }
  __builtin_unreachable();
}

void store_element(void* data, DType type, index_t offset, double x) {
  // Hardware gives computed NaNs different signs and payloads; what is stored is always the same.
  if (std::isnan(x)) x = std::numeric_limits<double>::quiet_NaN();
  switch (type) {
    case DType::f64:
      return write(data, offset, x);
    case DType::f32:
      return write(data, offset, static_cast<float>(x));
    case DType::bf16:
      return write(data, offset, narrow_to_bf16(x));
    case DType::f16:
      return write(data, offset, narrow_to_f16(x));
    case DType::u8:
      return write(data, offset, static_cast<std::uint8_t>(x != 0.0 ? 1 : 0));
    case DType::i64:
      return write(data, offset, nearest_integer(x));
  }
  __builtin_unreachable();
}

}  // namespace glasshead
