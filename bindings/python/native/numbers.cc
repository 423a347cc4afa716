#include "python/native/numbers.h"

#include <algorithm>
#include <memory>

namespace glasshead::python {
namespace {

// Keeps a container for as long as the array that shows what is in it.
template <class Container>
nb::capsule keeper(std::unique_ptr<Container>& held) {
  nb::capsule kept(held.get(), [](void* one) noexcept { delete static_cast<Container*>(one); });
  held.release();  // NOLINT(bugprone-unused-return-value): the capsule's from here on
  return kept;
}

}  // namespace

Rows copy_of(const View<const float, 2>& rows) {
  Rows copy{{}, rows.shape[0], rows.shape[1]};
  copy.values.reserve(static_cast<std::size_t>(copy.rows * copy.columns));
  for (index_t row = 0; row < copy.rows; ++row) {
    const float* const first = rows.data + row * rows.strides[0];
    copy.values.insert(copy.values.end(), first, first + copy.columns);
  }
  return copy;
}

Matrix array_of(Rows rows) {
  const auto count = static_cast<std::size_t>(rows.rows),
             size = static_cast<std::size_t>(rows.columns);
  auto held = std::make_unique<std::vector<float>>(std::move(rows.values));
  float* const first = held->data();
  return Matrix(first, {count, size}, keeper(held));
}

Floats array_of(FileTensor tensor) {
  const std::vector<std::size_t> shape(tensor.shape.begin(), tensor.shape.end());
  auto held = std::make_unique<std::vector<std::byte>>(std::move(tensor.bytes));
  std::byte* const first = held->data();
  return Floats(first, shape.size(), shape.data(), keeper(held));
}

Doubles array_of(Tensor<double, 3> tensor) {
  auto held = std::make_unique<Tensor<double, 3>>(std::move(tensor));
  std::size_t shape[3];
  std::copy_n(held->shape().begin(), 3, shape);
  double* const first = held->data();
  return Doubles(first, 3, shape, keeper(held));
}

}  // namespace glasshead::python
