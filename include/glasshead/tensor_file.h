// Tensors in files: NumPy's .npy (versions 1.0 to 3.0) and Hugging Face's .safetensors.
//
//   FileTensor q = read_npy("q.npy");
//   auto all = read_safetensors("qkv.safetensors");          // name -> tensor, in the file's order
//   write_npy("out.npy", out.view());
//
// Files are hostile input: every length is checked against the bytes there are before anything is
// allocated or read, and a file that is truncated, corrupt, oversized or contradicts itself is
// refused with an Error (FormatError, IoError) that says what was found and what would be right.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "glasshead/error.h"
#include "glasshead/tensor.h"

namespace glasshead {

// A tensor with its own memory: dense, row-major (a Fortran-ordered .npy is put in this order on
// reading).
struct FileTensor {
  DType dtype = DType::f64;
  std::vector<index_t> shape;    // any rank; empty: a scalar
  std::vector<std::byte> bytes;  // size_of(dtype) each, little endian

  index_t size() const;          // number of elements
  double load(index_t n) const;  // element n in row-major order, widened
  // A view with leading axes of size 1 added up to Rank. Refused (ShapeError) if the rank is
  // larger.
  template <int Rank>
  ConstTensor<Rank> view(const std::string& name_in_errors = "tensor") const;
};

using NamedTensors = std::vector<std::pair<std::string, FileTensor>>;

// From bytes in memory, without throwing: false, and one or more problems, if they are not a valid
// file. dtypes: f64 f32 f16 bool int64 (.npy; also '<i4', '<u1' widened to i64, u8), and bf16 in
// .safetensors.
bool parse_npy(std::span<const std::byte> bytes, FileTensor& out, std::vector<Problem>& problems);
bool parse_safetensors(std::span<const std::byte> bytes, NamedTensors& out,
                       std::vector<Problem>& problems);

FileTensor read_npy(const std::string& path);
NamedTensors read_safetensors(const std::string& path);
// By the path's ending. A .safetensors path may name one tensor after a colon: "qkv.safetensors:q";
// without it the file must hold exactly one.
FileTensor read_tensor(const std::string& path);

// Written to a temporary file beside the target, then renamed: the target is complete or untouched.
// bf16 has no .npy type: refused there.
void write_npy(const std::string& path, const FileTensor& tensor);
void write_safetensors(const std::string& path, const NamedTensors& tensors);
void write_tensor(const std::string& path, const FileTensor& tensor,
                  const std::string& name = "out");

std::vector<std::byte> npy_bytes(const FileTensor& tensor);
std::vector<std::byte> safetensors_bytes(const NamedTensors& tensors);

}  // namespace glasshead
