#include "core/kv_slab.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "base/checked.h"
#include "core/narrow.h"
#include "core/widen.h"

namespace glasshead {
namespace {

constexpr index_t kLine = 64;
constexpr float kLargest = 127;  // of int8; -128 is not used, so that x and -x are stored alike

// bytes rounded up to whole cache lines, added to `at`.
std::optional<index_t> after(std::optional<index_t> at, std::optional<index_t> bytes) {
  if (!at || !bytes) return std::nullopt;
  const std::optional<index_t> end = checked_add(*at, *bytes);
  return end ? checked_add(*end, (kLine - *end % kLine) % kLine) : std::nullopt;
}

std::optional<index_t> product(std::initializer_list<index_t> factors) {
  index_t all = 1;
  for (const index_t factor : factors) {
    const std::optional<index_t> next = checked_mul(all, factor);
    if (!next) return std::nullopt;
    all = *next;
  }
  return all;
}

template <class Wide>
void widen_input(const ConstTensor<3>& t, index_t g, index_t n, std::vector<Wide>& to) {
  load_run(t.data, t.dtype, g * t.strides[0] + n * t.strides[1], t.strides[2], t.shape[2],
           to.data());
}

// Largest |x| of the row; infinite if an element is an infinity or NaN.
double largest_of(const std::vector<double>& row) {
  double largest = 0;
  for (const double x : row) {
    if (!std::isfinite(x)) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, std::fabs(x));
  }
  return largest;
}

// As KvType::int8 says, such that 127 times it is finite and no row but one of zeros gets 0.
float scale_of(const std::vector<double>& row) {
  const double largest = largest_of(row);
  if (largest > static_cast<double>(std::numeric_limits<float>::max()))
    return std::numeric_limits<float>::quiet_NaN();
  auto scale = static_cast<float>(largest / static_cast<double>(kLargest));
  if (scale == 0 && largest > 0) scale = std::numeric_limits<float>::denorm_min();
  if (!std::isfinite(kLargest * scale))
    scale = std::bit_cast<float>(std::bit_cast<std::uint32_t>(scale) - 1);
  return scale;
}

// x / scale to the nearest whole number, ties to even. Of a row without a scale, 1: times NaN.
std::int8_t quantized(double x, float scale) {
  constexpr double kRound = 0x1.8p52;  // adding it rounds to a whole number
  if (scale == 0) return 0;
  if (scale != scale) return 1;
  const double n = x / static_cast<double>(scale);
  const auto most = static_cast<double>(kLargest);
  return static_cast<std::int8_t>(std::clamp(n + kRound - kRound, -most, most));
}

template <class Out, class Wide>
Out narrowed(Wide x) {
  constexpr bool is_float = std::is_same_v<Wide, float>;
  if constexpr (std::is_same_v<Out, bf16> && is_float)
    return {narrow_bfloat(x)};
  else if constexpr (std::is_same_v<Out, f16> && is_float)
    return {narrow_half(x)};
  else if constexpr (std::is_same_v<Out, bf16>)
    return narrow_to_bf16(x);
  else if constexpr (std::is_same_v<Out, f16>)
    return narrow_to_f16(x);
  else
    return static_cast<Out>(x);
}

// One row, whose element d goes to to[d * step].
template <class Out, class Wide>
void narrow_row(const std::vector<Wide>& row, Out* to, index_t step, float* scale) {
  if constexpr (std::is_same_v<Out, std::int8_t>) *scale = scale_of(row);
  for (const Wide x : row) {
    if constexpr (std::is_same_v<Out, std::int8_t>)
      *to = quantized(x, *scale);
    else
      *to = narrowed<Out>(x);
    to += step;
  }
}

}  // namespace

std::optional<index_t> SlabLayout::bytes_of(const SlabSizes& sizes) {
  const index_t element = size_of(sizes.type);
  auto end = after(0, product({sizes.kv_heads, sizes.keys, sizes.d_k, element}));
  end = after(end, product({sizes.kv_heads, sizes.keys, sizes.d_v, element}));
  if (sizes.type != KvType::int8) return end;
  const auto scales = product({sizes.kv_heads, sizes.keys, index_t{sizeof(float)}});
  return after(after(end, scales), scales);
}

SlabLayout::SlabLayout(const SlabSizes& sizes) : sizes_(sizes) {
  const index_t element = size_of(sizes.type);
  v_at_ = *after(0, sizes.kv_heads * sizes.keys * sizes.d_k * element);
  k_scales_at_ = *after(v_at_, sizes.kv_heads * sizes.keys * sizes.d_v * element);
  v_scales_at_ = *after(k_scales_at_, sizes.kv_heads * sizes.keys * index_t{sizeof(float)});
  bytes_ = *bytes_of(sizes);
}

KvLayout SlabLayout::key_layout() const {
  return {sizes_.type, sizes_.keys * sizes_.d_k, kPanelKeys * sizes_.d_k, 1, kPanelKeys, true,
          sizes_.keys};
}

KvLayout SlabLayout::value_layout() const {
  return {sizes_.type, sizes_.keys * sizes_.d_v, kPanelKeys * sizes_.d_v, sizes_.d_v, 1, false,
          sizes_.keys};
}

KvPiece SlabLayout::piece(const std::byte* slab, index_t slot, KeyRange keys) const {
  const index_t element = size_of(sizes_.type);
  KvPiece piece{keys.begin, keys.end, slab + slot * sizes_.d_k * element,
                slab + v_at_ + slot * sizes_.d_v * element};
  if (sizes_.type == KvType::int8) {
    piece.k_scales = reinterpret_cast<const float*>(slab + k_scales_at_) + slot;
    piece.v_scales = reinterpret_cast<const float*>(slab + v_scales_at_) + slot;
  }
  return piece;
}

template <class Out, class Wide>
void SlabLayout::write_from(std::byte* slab, index_t slot, const NewKeys& keys) const {
  const KvLayout k = key_layout(), v = value_layout();
  std::vector<Wide> key(static_cast<std::size_t>(sizes_.d_k)),
      value(static_cast<std::size_t>(sizes_.d_v));
  Out* const all_keys = reinterpret_cast<Out*>(slab);
  Out* const all_values = reinterpret_cast<Out*>(slab + v_at_);
  const auto scale = [&](index_t at, index_t g, index_t n) -> float* {
    if constexpr (std::is_same_v<Out, std::int8_t>)
      return reinterpret_cast<float*>(slab + at) + g * sizes_.keys + n;
    else
      return nullptr;
  };
  for (index_t g = 0; g < sizes_.kv_heads; ++g) {
    for (index_t n = slot; n < slot + keys.count; ++n) {
      widen_input(keys.k, g, keys.first + n - slot, key);
      narrow_row(key, all_keys + k.offset(g, n), k.step, scale(k_scales_at_, g, n));
      widen_input(keys.v, g, keys.first + n - slot, value);
      narrow_row(value, all_values + v.offset(g, n), v.step, scale(v_scales_at_, g, n));
    }
  }
}

// f32 holds the numbers of every type but f64; the scales of int8 and what they divide are f64.
template <class Out>
void SlabLayout::write_as(std::byte* slab, index_t slot, const NewKeys& keys) const {
  if constexpr (!std::is_same_v<Out, double> && !std::is_same_v<Out, std::int8_t>) {
    if (keys.k.dtype != DType::f64 && keys.v.dtype != DType::f64)
      return write_from<Out, float>(slab, slot, keys);
  }
  write_from<Out, double>(slab, slot, keys);
}

void SlabLayout::write(std::byte* slab, index_t slot, const NewKeys& keys) const {
  switch (sizes_.type) {
    case KvType::f64:
      return write_as<double>(slab, slot, keys);
    case KvType::f32:
      return write_as<float>(slab, slot, keys);
    case KvType::bf16:
      return write_as<bf16>(slab, slot, keys);
    case KvType::f16:
      return write_as<f16>(slab, slot, keys);
    case KvType::int8:
      return write_as<std::int8_t>(slab, slot, keys);
  }
}

void SlabLayout::copy(const std::byte* from, std::byte* to, index_t count) const {
  const index_t panels = (count + kPanelKeys - 1) / kPanelKeys * kPanelKeys;
  const index_t element = size_of(sizes_.type);
  const auto rows = [&](index_t at, index_t row_bytes) {
    for (index_t g = 0; g < sizes_.kv_heads; ++g) {
      const index_t head = at + g * sizes_.keys * row_bytes;
      std::memcpy(to + head, from + head, static_cast<std::size_t>(panels * row_bytes));
    }
  };
  rows(0, sizes_.d_k * element);
  rows(v_at_, sizes_.d_v * element);
  if (sizes_.type != KvType::int8) return;
  rows(k_scales_at_, sizeof(float));
  rows(v_scales_at_, sizeof(float));
}

}  // namespace glasshead
