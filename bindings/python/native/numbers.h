// Numbers of the library as NumPy arrays that own them.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "glasshead/tensor.h"
#include "glasshead/tensor_file.h"

namespace glasshead::python {

namespace nb = nanobind;

using Matrix = nb::ndarray<nb::numpy, float, nb::ndim<2>, nb::device::cpu>;
using Floats = nb::ndarray<nb::numpy, float, nb::device::cpu>;
using Doubles = nb::ndarray<nb::numpy, double, nb::ndim<3>, nb::device::cpu>;

// A copy of what a session shows until its next run. Needs no lock of the interpreter's.
struct Rows {
  std::vector<float> values;
  index_t rows = 0, columns = 0;
};
Rows copy_of(const View<const float, 2>& rows);

// Without a copy; with the interpreter's lock.
Matrix array_of(Rows rows);
Floats array_of(FileTensor tensor);  // of f32
Doubles array_of(Tensor<double, 3> tensor);

}  // namespace glasshead::python
