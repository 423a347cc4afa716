// Elements as files store them, and the element types that the library keeps them in.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "glasshead/tensor_file.h"

namespace glasshead::formats {

// An element type of a file. `kept` is the library's type for it.
struct StoredType {
  const char* npy;          // descr without its byte order, "f8"; null: .npy has no such type
  const char* safetensors;  // "F64"
  std::size_t bytes;        // of one element
  DType kept;
  bool is_signed;    // integers that are widened to i64
  bool is_boolean;   // each byte must be 0 or 1
  const char* name;  // "f64", "i32": for messages
};

const StoredType* find_npy(std::string_view descr_without_order);
const StoredType* find_safetensors(std::string_view dtype);
// The type in which a tensor is written.
const StoredType& stored_type(const FileTensor& tensor);

// Row-major elements of `type` into `out` (whose shape is set): copied, or widened. False, and what
// is wrong, if a value has no place in out's type. raw.size() = elements * type.bytes.
bool keep_elements(const StoredType& type, std::span<const std::byte> raw, FileTensor& out,
                   std::string& what);

inline constexpr std::size_t kMaxRank = 64;  // NumPy's own limit (NPY_MAXDIMS, NumPy 2)

}  // namespace glasshead::formats
