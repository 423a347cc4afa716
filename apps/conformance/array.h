// Numbers as the runner compares them: any rank, dense, widened to double.
#pragma once

#include <vector>

#include "glasshead/tensor.h"
#include "glasshead/tensor_file.h"

namespace glasshead::conformance {

struct Array {
  std::vector<index_t> shape;
  std::vector<double> values;  // row-major
};

Array widened(const FileTensor& tensor);

// A tensor of zeros; sizes must be those of data already in memory.
FileTensor zeros(DType type, std::vector<index_t> shape);

// The same numbers in another type: exact when it is wider, else rounded once.
FileTensor converted(const FileTensor& tensor, DType type);

// A dense tensor as an output. Its rank must be `Rank`.
template <int Rank>
MutableTensor<Rank> writable(FileTensor& tensor) {
  typename MutableTensor<Rank>::Shape shape{};
  for (std::size_t axis = 0; axis < shape.size(); ++axis) shape[axis] = tensor.shape.at(axis);
  return {tensor.bytes.data(), tensor.dtype, shape, row_major(shape)};
}

// Rows [begin, end) of one axis.
Array slice(const Array& array, std::size_t axis, index_t begin, index_t end);

// The index of element `n` of an array of this shape.
std::vector<index_t> index_of(index_t n, const std::vector<index_t>& shape);

}  // namespace glasshead::conformance
