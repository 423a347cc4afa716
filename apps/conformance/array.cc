#include "conformance/array.h"

#include <algorithm>

namespace glasshead::conformance {

Array widened(const FileTensor& tensor) {
  Array array{tensor.shape, {}};
  const index_t size = tensor.size();
  array.values.reserve(static_cast<std::size_t>(size));
  for (index_t n = 0; n < size; ++n) array.values.push_back(tensor.load(n));
  return array;
}

FileTensor zeros(DType type, std::vector<index_t> shape) {
  FileTensor tensor{type, std::move(shape), {}};
  tensor.bytes.resize(static_cast<std::size_t>(tensor.size()) * size_of(type));
  return tensor;
}

FileTensor converted(const FileTensor& tensor, DType type) {
  FileTensor result = zeros(type, tensor.shape);
  for (index_t n = 0; n < tensor.size(); ++n) {
    store_element(result.bytes.data(), type, n, tensor.load(n));
  }
  return result;
}

Array slice(const Array& array, std::size_t axis, index_t begin, index_t end) {
  Array result{array.shape, {}};
  result.shape.at(axis) = end - begin;
  index_t inner = 1;
  index_t outer = 1;
  for (std::size_t a = 0; a < array.shape.size(); ++a) {
    (a < axis ? outer : inner) *= a == axis ? 1 : array.shape[a];
  }
  for (index_t o = 0; o < outer; ++o) {
    const auto row = array.values.begin() + o * array.shape[axis] * inner;
    result.values.insert(result.values.end(), row + begin * inner, row + end * inner);
  }
  return result;
}

std::vector<index_t> index_of(index_t n, const std::vector<index_t>& shape) {
  std::vector<index_t> index(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    const index_t extent = std::max<index_t>(shape[axis], 1);
    index[axis] = n % extent;
    n /= extent;
  }
  return index;
}

}  // namespace glasshead::conformance
