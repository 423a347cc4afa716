// Arrays of Python as the library sees them: a pointer, a shape, strides, an element type. NumPy's
// and anything else with the buffer protocol; PyTorch's, JAX's and anything else with DLPack. No
// element is copied.
//
//   std::vector<Problem> problems;
//   const Array q = read_array(object, "q", problems);    // what does not fit is told in problems
//   attend(q.tensor<4>(), ...);                            // axes of size 1 are added in front
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include <nanobind/nanobind.h>

#include "glasshead/error.h"
#include "glasshead/mask.h"
#include "glasshead/tensor.h"

namespace glasshead::python {

namespace nb = nanobind;

// Keeps what it reads alive; made and destroyed with the interpreter's lock held.
class Array {
 public:
  static constexpr std::size_t kMostAxes = 4;

  bool is_there() const { return rank_ >= 0; }  // false: None, or not an array that can be read
  int rank() const { return rank_; }
  DType dtype() const { return dtype_; }  // u8 holds booleans alone
  index_t extent(int axis) const { return shape_[static_cast<std::size_t>(axis)]; }

  // A view with axes of size 1 added in front; without an array one whose data is null. The rank is
  // at most Rank (read_array saw to it).
  template <int Rank>
  ConstTensor<Rank> tensor() const {
    return writable<Rank>();
  }
  template <int Rank>
  MutableTensor<Rank> writable() const {
    MutableTensor<Rank> view;
    if (!is_there()) return view;
    view.data = data_;
    view.dtype = dtype_;
    const auto added = static_cast<std::size_t>(Rank - rank_);
    for (std::size_t axis = 0; axis < static_cast<std::size_t>(Rank); ++axis) {
      view.shape[axis] = axis < added ? 1 : shape_[axis - added];
      view.strides[axis] = axis < added ? 0 : strides_[axis - added];
    }
    return view;
  }
  Broadcast broadcast() const;

 private:
  friend class ArrayReader;
  struct Release {
    void operator()(Py_buffer* view) const;
  };

  void* data_ = nullptr;
  DType dtype_ = DType::f64;
  int rank_ = -1;
  std::array<index_t, kMostAxes> shape_{}, strides_{};  // strides in elements
  std::unique_ptr<Py_buffer, Release> buffer_;          // one of these two keeps it alive
  nb::object capsule_;
};

// `where` is the argument's name in problems. More than most_axes axes are a problem.
Array read_array(nb::handle object, const char* where, std::vector<Problem>& problems,
                 int most_axes = 4);
// The same; None gives an array that is not there.
Array read_optional(nb::handle object, const char* where, std::vector<Problem>& problems,
                    int most_axes = 4);

// Throws OptionError if there are problems.
void refuse_if_any(const char* function, std::vector<Problem> problems);

}  // namespace glasshead::python
