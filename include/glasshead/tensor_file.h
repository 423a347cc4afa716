// Tensors in files: NumPy's .npy (versions 1.0 to 3.0) and Hugging Face's .safetensors.
//
//   FileTensor q = read_tensor("q.npy");
//   NamedTensors all = read_safetensors("qkv.safetensors");  // name -> tensor, in header order
//   FileTensor k = read_tensor("qkv.safetensors:k");
//   ConstTensor<4> view = q.view<4>("q");                    // [1, 1, q_len, d_k] of a matrix
//   write_tensor("copy.npy", q);
//
// Files are hostile input: every length is checked against the bytes there are before anything is
// allocated or read, and a file that is truncated, corrupt, oversized or contradicts itself is
// refused with an Error (FormatError, IoError) that says what was found and what would be right.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "glasshead/error.h"
#include "glasshead/tensor.h"

namespace glasshead {

// The type that name() calls so, "f32"; nullopt: none of them.
std::optional<DType> dtype_named(std::string_view word);

// A tensor with its own memory: dense, row-major (a Fortran-ordered .npy is put in this order on
// reading).
struct FileTensor {
  DType dtype = DType::f64;
  std::vector<index_t> shape;    // any rank to 64; empty: a scalar
  std::vector<std::byte> bytes;  // size() elements of size_of(dtype) each, little endian
  std::string_view stored{};     // the type in the file it was read from, "i32"; "" if in none

  index_t size() const;          // number of elements
  double load(index_t n) const;  // element n in row-major order, widened
  // A view with leading axes of size 1 added up to Rank. Refused (ShapeError) if the rank is
  // larger. It points into `bytes`: the FileTensor must outlive it. Rank 0 to 4.
  template <int Rank>
  ConstTensor<Rank> view(const std::string& name_in_errors = "tensor") const;

  // To the bit, wherever they come from.
  friend bool operator==(const FileTensor& a, const FileTensor& b) {
    return a.dtype == b.dtype && a.shape == b.shape && a.bytes == b.bytes;
  }
};

using NamedTensors = std::vector<std::pair<std::string, FileTensor>>;

// From bytes in memory, without throwing: false, and one or more problems, if they are not a valid
// file. Types, .npy and .safetensors: f8 F64, f4 F32, f2 F16, BF16 (no .npy type) as they are;
// b1 BOOL (each byte 0 or 1) and u1 U8 as u8; every other integer is widened to i64 (an unsigned
// 64-bit number beyond 2^63 - 1 is refused). Anything else is refused by name.
//
// .npy: magic, version, header length within the bytes, a header dictionary with descr,
// fortran_order and shape, each once and nothing else, and exactly the data that the shape says.
// Format: numpy/lib/format.py. Big-endian, object and structured arrays are refused.
bool parse_npy(std::span<const std::byte> bytes, FileTensor& out, std::vector<Problem>& problems);
// .safetensors: header of at most 100,000,000 bytes of JSON starting with '{'; no key twice; each
// entry has dtype, shape and data_offsets and nothing else; offsets fit dtype and shape, leave no
// hole, do not overlap, and end at the end of the file. "__metadata__" is checked (strings) and
// left out of the result. Format: huggingface/safetensors safetensors/src/tensor.rs.
bool parse_safetensors(std::span<const std::byte> bytes, NamedTensors& out,
                       std::vector<Problem>& problems);

FileTensor read_npy(const std::string& path);
NamedTensors read_safetensors(const std::string& path);
// By the path's ending. A .safetensors path may name one tensor after a colon: "qkv.safetensors:q";
// without it the file must hold exactly one.
FileTensor read_tensor(const std::string& path);

// Written to a temporary file beside the target, then renamed: the target is complete or untouched.
// bf16 has no .npy type: refused there (FormatError).
void write_npy(const std::string& path, const FileTensor& tensor);
void write_safetensors(const std::string& path, const NamedTensors& tensors);
// By the path's ending; `name` is the tensor's name in a .safetensors file.
void write_tensor(const std::string& path, const FileTensor& tensor,
                  const std::string& name = "out");

// The bytes that the functions above write: .npy 1.0 (2.0 if the header needs it), C order; a
// .safetensors header in the order given, its data by falling element size, so that every tensor is
// aligned to its own elements. u8 is written as booleans if every element is 0 or 1, else as u1 U8.
// Reading them back gives an equal FileTensor.
std::vector<std::byte> npy_bytes(const FileTensor& tensor);
std::vector<std::byte> safetensors_bytes(const NamedTensors& tensors);

// A tensor's zeroed memory. The size of `shape` must fit index_t.
FileTensor make_tensor(DType dtype, std::vector<index_t> shape);

// Whole files, for everything that is read at once: at most kLargestFile bytes are read, and
// write_bytes leaves the target complete or untouched (a device or pipe is written to directly).
inline constexpr index_t kLargestFile = index_t{1} << 36;  // 64 GiB: it is held in memory whole
std::vector<std::byte> read_bytes(const std::string& path);
void write_bytes(const std::string& path, std::span<const std::byte> bytes);

}  // namespace glasshead
