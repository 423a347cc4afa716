#include "python/native/array.h"

#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "python/native/dlpack.h"

namespace glasshead::python {

static_assert(std::endian::native == std::endian::little, "buffers are read as little endian");

class ArrayReader {
 public:
  ArrayReader(nb::handle object, const char* where, int most_axes, std::vector<Problem>& problems)
      : object_(object), where_(where), most_axes_(most_axes), problems_(problems) {}

  Array read() {
    const bool is_numpy = std::strcmp(Py_TYPE(object_.ptr())->tp_name, "numpy.ndarray") == 0;
    bool is_read = PyObject_CheckBuffer(object_.ptr()) != 0 && from_buffer(object_, std::nullopt);
    // NumPy exports its bfloat16, which ml_dtypes adds, by neither protocol: its bits will do.
    if (!is_read && is_numpy && dtype_name() == "bfloat16")
      is_read = from_buffer(object_.attr("view")("uint16"), DType::bf16);
    if (!is_read && !is_numpy && nb::hasattr(object_, "__dlpack__")) is_read = from_dlpack();
    if (!is_read) {
      if (why_.empty()) why_ = unreadable();
      problems_.push_back({where_, why_});
      return {};
    }
    return std::move(array_);
  }

 private:
  std::string dtype_name() const {
    if (!nb::hasattr(object_, "dtype")) return {};
    nb::object dtype = object_.attr("dtype");
    if (nb::hasattr(dtype, "name")) dtype = dtype.attr("name");  // "bfloat16"; torch: "torch.int32"
    return nb::str(dtype).c_str();
  }

  std::string unreadable() const {
    const std::string dtype = dtype_name();
    if (!dtype.empty())
      return "has dtype " + dtype +
             "; float64, float32, bfloat16, float16, bool and int64 are read";
    return std::string("a ") + Py_TYPE(object_.ptr())->tp_name +
           "; an array is needed: NumPy's, PyTorch's, JAX's, or another with DLPack or the buffer "
           "protocol";
  }

  static std::optional<DType> type_of_format(const char* format, Py_ssize_t size) {
    if (format == nullptr) return std::nullopt;  // bytes
    if (*format == '@' || *format == '=' || *format == '<') ++format;
    if (format[0] == '\0' || format[1] != '\0') return std::nullopt;
    switch (format[0]) {
      case 'd':
        return DType::f64;
      case 'f':
        return DType::f32;
      case 'e':
        return DType::f16;
      case '?':
        return DType::u8;
      case 'l':
      case 'q':
      case 'n':
        return size == 8 ? std::optional(DType::i64) : std::nullopt;
      default:
        return std::nullopt;
    }
  }

  bool has_room_for(int axes) {
    if (axes <= most_axes_) return true;
    why_ = "has " + std::to_string(axes) + " axes; at most " + std::to_string(most_axes_) +
           " are possible" + (most_axes_ == 4 ? ", [batch, heads, length, size]" : "");
    return false;
  }

  // `as`: what the elements are, where the buffer cannot say it.
  bool from_buffer(nb::handle object, std::optional<DType> as) {
    std::unique_ptr<Py_buffer, Array::Release> buffer(new Py_buffer{});
    if (PyObject_GetBuffer(object.ptr(), buffer.get(), PyBUF_RECORDS_RO) != 0) {
      PyErr_Clear();
      buffer->obj = nullptr;
      return false;
    }
    const std::optional<DType> type = as ? as : type_of_format(buffer->format, buffer->itemsize);
    if (!type || !has_room_for(buffer->ndim)) return false;
    array_.data_ = buffer->buf;
    array_.dtype_ = *type;
    array_.rank_ = buffer->ndim;
    for (std::size_t axis = 0; axis < static_cast<std::size_t>(buffer->ndim); ++axis) {
      array_.shape_[axis] = buffer->shape[axis];
      array_.strides_[axis] = buffer->strides[axis] / buffer->itemsize;
      if (buffer->strides[axis] % buffer->itemsize == 0) continue;
      why_ = "has a stride of " + std::to_string(buffer->strides[axis]) +
             " bytes; a multiple of its elements' " + std::to_string(buffer->itemsize) +
             " is needed";
      return false;
    }
    array_.buffer_ = std::move(buffer);
    return true;
  }

  bool from_dlpack() {
    try {
      array_.capsule_ = object_.attr("__dlpack__")();
    } catch (nb::python_error& error) {  // "Can't export tensors that require gradient"
      why_ = nb::str(error.value()).c_str();
      return false;
    }
    const std::optional<dlpack::Tensor> found = dlpack::tensor_of(array_.capsule_.ptr());
    if (!found) return false;
    if (found->device.type != dlpack::kCpu && found->device.type != dlpack::kCudaHost) {
      why_ = "is in the memory of another device; it must be in the processor's: .cpu()";
      return false;
    }
    const std::optional<DType> type = dlpack::type_of(found->dtype);
    if (!type || !has_room_for(found->ndim)) return false;
    array_.data_ = static_cast<char*>(found->data) + found->byte_offset;
    array_.dtype_ = *type;
    array_.rank_ = found->ndim;
    index_t step = 1;
    for (auto axis = static_cast<std::size_t>(found->ndim); axis-- > 0;) {
      array_.shape_[axis] = found->shape[axis];
      array_.strides_[axis] = found->strides != nullptr ? found->strides[axis] : step;
      step *= found->shape[axis];
    }
    return true;
  }

  nb::handle object_;
  const char* where_;
  int most_axes_;
  std::vector<Problem>& problems_;
  Array array_;
  std::string why_;
};

void Array::Release::operator()(Py_buffer* view) const {
  PyBuffer_Release(view);  // nothing where its obj is null
  delete view;
}

Broadcast Array::broadcast() const {
  Broadcast all;
  all.data = data_;
  all.dtype = dtype_;
  all.rank = rank_;
  for (std::size_t axis = 0; axis < static_cast<std::size_t>(rank_); ++axis) {
    all.shape[axis] = shape_[axis];
    all.strides[axis] = strides_[axis];
  }
  return all;
}

Array read_array(nb::handle object, const char* where, std::vector<Problem>& problems,
                 int most_axes) {
  return ArrayReader(object, where, most_axes, problems).read();
}

Array read_optional(nb::handle object, const char* where, std::vector<Problem>& problems,
                    int most_axes) {
  if (object.is_none()) return {};
  return read_array(object, where, problems, most_axes);
}

void refuse_if_any(const char* function, std::vector<Problem> problems) {
  if (!problems.empty()) throw OptionError(function, std::move(problems));
}

}  // namespace glasshead::python
