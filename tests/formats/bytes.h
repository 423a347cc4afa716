// Files for the tests of the parsers, put together byte by byte.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "glasshead/tensor_file.h"

namespace glasshead::test {

inline std::vector<std::byte> bytes_of(std::string_view text) {
  std::vector<std::byte> bytes(text.size());
  if (!text.empty()) std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

// The memory of some numbers.
template <class T>
std::string raw(const std::vector<T>& numbers) {
  std::string text(numbers.size() * sizeof(T), '\0');
  if (!numbers.empty()) std::memcpy(text.data(), numbers.data(), text.size());
  return text;
}

template <class T>
FileTensor tensor_of(std::vector<index_t> shape, const std::vector<T>& numbers) {
  return {dtype_of<T>(), std::move(shape), bytes_of(raw(numbers))};
}

inline std::string npy_file(std::string_view header, std::string_view data, int major = 1) {
  std::string file = "\x93NUMPY";
  file += static_cast<char>(major);
  file += '\0';
  const auto length = static_cast<std::uint32_t>(header.size());
  file.append(reinterpret_cast<const char*>(&length), major == 1 ? 2 : 4);
  file += header;
  file += data;
  return file;
}

inline std::string npy_header(std::string_view descr, std::string_view shape,
                              std::string_view fortran = "False") {
  return "{'descr': '" + std::string(descr) + "', 'fortran_order': " + std::string(fortran) +
         ", 'shape': " + std::string(shape) + ", }\n";
}

inline std::string safetensors_file(std::string_view header, std::string_view data) {
  const std::uint64_t length = header.size();
  std::string file(reinterpret_cast<const char*>(&length), sizeof length);
  file += header;
  file += data;
  return file;
}

inline std::string repeated(std::string_view text, int times) {
  std::string result;
  for (int n = 0; n < times; ++n) result += text;
  return result;
}

// What a parser says about a file that it refuses: "where: what" lines. Empty: it was accepted.
inline std::string lines(const std::vector<Problem>& problems) {
  std::string text;
  for (const Problem& problem : problems) text += problem.where + ": " + problem.what + "\n";
  return text;
}

inline testing::AssertionResult says(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "expected \"" << part << "\" in: " << text;
}

}  // namespace glasshead::test
