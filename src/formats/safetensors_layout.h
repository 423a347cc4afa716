// A .safetensors file's tensors by their places: u64 length N, N bytes of JSON, the data.
// Source: huggingface/safetensors safetensors/src/tensor.rs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "formats/safetensors_header.h"

namespace glasshead::formats {

inline constexpr std::size_t kSafetensorsLengthBytes = 8;

struct SafetensorsLayout {
  std::vector<SafetensorsEntry> entries;  // in the header's order
  std::span<const std::byte> data;        // what the entries' offsets count in
  std::span<const std::byte> bytes_of(const SafetensorsEntry& entry) const;
};

// False, and every problem found until reading had to stop, if `bytes` is not such a file whose
// tensors fill its data without a hole or an overlap, each with the bytes that its shape needs.
// element_bytes gives those of one element of a dtype; 0: the caller does not read that dtype.
bool parse_safetensors_layout(std::span<const std::byte> bytes,
                              std::size_t (*element_bytes)(std::string_view dtype),
                              SafetensorsLayout& out, std::vector<Problem>& problems);

}  // namespace glasshead::formats
