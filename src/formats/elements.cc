#include "formats/elements.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

namespace glasshead::formats {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are copied as they lie");

constexpr std::array<StoredType, 13> kTypes{{
    {"f8", "F64", 8, DType::f64, false, false, "f64"},
    {"f4", "F32", 4, DType::f32, false, false, "f32"},
    {"f2", "F16", 2, DType::f16, false, false, "f16"},
    {nullptr, "BF16", 2, DType::bf16, false, false, "bf16"},
    {"i8", "I64", 8, DType::i64, true, false, "i64"},
    {"i4", "I32", 4, DType::i64, true, false, "i32"},
    {"i2", "I16", 2, DType::i64, true, false, "i16"},
    {"i1", "I8", 1, DType::i64, true, false, "i8"},
    {"u8", "U64", 8, DType::i64, false, false, "u64"},
    {"u4", "U32", 4, DType::i64, false, false, "u32"},
    {"u2", "U16", 2, DType::i64, false, false, "u16"},
    {"u1", "U8", 1, DType::u8, false, false, "u8"},
    {"b1", "BOOL", 1, DType::u8, false, true, "bool"},
}};

// The little-endian integer of type.bytes bytes at `from`, as 64 bits; sign-extended if signed.
std::uint64_t load_integer(const StoredType& type, const std::byte* from) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, from, type.bytes);
  const auto unused = static_cast<unsigned>(64 - 8 * type.bytes);
  if (!type.is_signed || unused == 0) return bits;
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(bits << unused) >> unused);
}

bool widen_integers(const StoredType& type, std::span<const std::byte> raw, FileTensor& out,
                    std::string& what) {
  const std::size_t count = raw.size() / type.bytes;
  out.bytes.resize(count * sizeof(std::int64_t));
  for (std::size_t n = 0; n < count; ++n) {
    const std::uint64_t bits = load_integer(type, raw.data() + n * type.bytes);
    if (!type.is_signed && bits > static_cast<std::uint64_t>(INT64_MAX)) {
      what = "element " + std::to_string(n) + " is " + std::to_string(bits) +
             "; integers must be below 2^63";
      return false;
    }
    std::memcpy(out.bytes.data() + n * sizeof bits, &bits, sizeof bits);
  }
  return true;
}

}  // namespace

const StoredType* find_npy(std::string_view descr_without_order) {
  for (const StoredType& type : kTypes)
    if (type.npy != nullptr && descr_without_order == type.npy) return &type;
  return nullptr;
}

const StoredType* find_safetensors(std::string_view dtype) {
  for (const StoredType& type : kTypes)
    if (dtype == type.safetensors) return &type;
  return nullptr;
}

const StoredType& stored_type(const FileTensor& tensor) {
  const bool is_boolean =
      tensor.dtype == DType::u8 && std::all_of(tensor.bytes.begin(), tensor.bytes.end(),
                                               [](std::byte b) { return b <= std::byte{1}; });
  // The first row that is kept in this type without widening is the type itself.
  return *std::find_if(kTypes.begin(), kTypes.end(), [&](const StoredType& type) {
    return type.kept == tensor.dtype && type.bytes == size_of(tensor.dtype) &&
           type.is_boolean == is_boolean;
  });
}

bool keep_elements(const StoredType& type, std::span<const std::byte> raw, FileTensor& out,
                   std::string& what) {
  out.dtype = type.kept;
  out.stored = type.name;
  if (type.kept == DType::i64 && !(type.is_signed && type.bytes == sizeof(std::int64_t)))
    return widen_integers(type, raw, out, what);
  if (type.is_boolean) {
    const auto bad =
        std::find_if(raw.begin(), raw.end(), [](std::byte b) { return b > std::byte{1}; });
    if (bad != raw.end()) {
      what = "element " + std::to_string(bad - raw.begin()) + " is the byte " +
             std::to_string(std::to_integer<int>(*bad)) + "; a boolean must be 0 or 1";
      return false;
    }
  }
  out.bytes.assign(raw.begin(), raw.end());
  return true;
}

}  // namespace glasshead::formats
