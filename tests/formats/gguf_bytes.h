// GGUF files for the tests, put together piece by piece, wrong ones too.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/bytes.h"

namespace glasshead::test {

// Numbers of value and tensor types, as the format has them.
enum GgufValue : std::uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64
};
constexpr std::uint32_t kTensorF32 = 0, kTensorQ4_1 = 3, kTensorQ8_0 = 8, kTensorQ6_K = 14;

inline std::string u32(std::uint32_t value) { return raw<std::uint32_t>({value}); }
inline std::string u64(std::uint64_t value) { return raw<std::uint64_t>({value}); }
inline std::string gguf_text(std::string_view text) { return u64(text.size()) + std::string(text); }
inline std::string gguf_array(std::uint32_t type, std::uint64_t count, const std::string& items) {
  return u32(type) + u64(count) + items;
}

struct Gguf {
  std::string magic = "GGUF";
  std::uint32_t version = 3;
  std::string keys, tensors, data;
  std::uint64_t key_count = 0, tensor_count = 0;
  std::size_t alignment = 32;

  Gguf& key(std::string_view name, std::uint32_t type, const std::string& value) {
    keys += gguf_text(name) + u32(type) + value;
    ++key_count;
    return *this;
  }
  // dims innermost first, as the file has them; the offset is where the data now ends, padded.
  Gguf& tensor(std::string_view name, const std::vector<std::uint64_t>& dims, std::uint32_t type,
               const std::string& bytes) {
    data.resize((data.size() + alignment - 1) / alignment * alignment);
    return tensor_at(data.size(), name, dims, type, bytes);
  }
  Gguf& tensor_at(std::uint64_t offset, std::string_view name,
                  const std::vector<std::uint64_t>& dims, std::uint32_t type,
                  const std::string& bytes) {
    tensors += gguf_text(name) + u32(static_cast<std::uint32_t>(dims.size())) + raw(dims) +
               u32(type) + u64(offset);
    data += bytes;
    ++tensor_count;
    return *this;
  }
  std::string file() const {
    std::string text = magic + u32(version) + u64(tensor_count) + u64(key_count) + keys + tensors;
    if (!data.empty()) text.resize((text.size() + alignment - 1) / alignment * alignment);
    return text + data;
  }
};

}  // namespace glasshead::test
