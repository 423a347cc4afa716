#include "glasshead/tensor_file.h"

#include "base/assert.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/shape_text.h"
#include "formats/elements.h"

namespace glasshead {

std::optional<DType> dtype_named(std::string_view word) {
  for (const DType type : {DType::f64, DType::f32, DType::bf16, DType::f16, DType::u8, DType::i64})
    if (word == name(type)) return type;
  return std::nullopt;
}

index_t FileTensor::size() const { return checked_size(shape).value_or(0); }

double FileTensor::load(index_t n) const {
  GLASSHEAD_ASSERT(n >= 0 && n < size());
  return load_element(bytes.data(), dtype, n);
}

template <int Rank>
ConstTensor<Rank> FileTensor::view(const std::string& name_in_errors) const {
  constexpr auto kRank = static_cast<std::size_t>(Rank);
  if (shape.size() > kRank)
    fail(ErrorKind::shape, "view", name_in_errors,
         "has rank " + std::to_string(shape.size()) + " (shape " + file_shape_text(shape) +
             "); rank " + std::to_string(Rank) + " or less is needed");
  std::array<index_t, kRank> extents{};
  const std::size_t added = kRank - shape.size();
  for (std::size_t axis = 0; axis < kRank; ++axis)
    extents[axis] = axis < added ? 1 : shape[axis - added];
  return {bytes.data(), dtype, extents, row_major(extents)};
}

template ConstTensor<0> FileTensor::view<0>(const std::string&) const;
template ConstTensor<1> FileTensor::view<1>(const std::string&) const;
template ConstTensor<2> FileTensor::view<2>(const std::string&) const;
template ConstTensor<3> FileTensor::view<3>(const std::string&) const;
template ConstTensor<4> FileTensor::view<4>(const std::string&) const;

FileTensor make_tensor(DType dtype, std::vector<index_t> shape) {
  FileTensor tensor{dtype, std::move(shape), {}};
  tensor.bytes.resize(static_cast<std::size_t>(tensor.size()) * size_of(dtype));
  return tensor;
}

}  // namespace glasshead
