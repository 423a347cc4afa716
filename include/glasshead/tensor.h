// Tensors as the library sees them: a pointer, a shape, strides, and the type of one element.
//
//   Tensor<float, 4> q({batch, heads, q_len, d_k});  // owning, 64-byte aligned, zeroed
//   q(0, 1, i, d) = 0.5f;
//   View<float, 4> same = q.view();                  // non-owning, any strides
//   ConstTensor<4> any = q;                          // element type known at run time
//   double x = any.load(0, 1, i, d);                 // widened exactly
//
// The logical axis order is always [batch, heads, length, size]; the memory order is whatever the
// strides say. A stride of 0 repeats one element along its axis (broadcast).
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>

namespace glasshead {

using index_t = std::int64_t;  // every size, stride and position

// 16-bit floating-point numbers as stored; arithmetic happens in f32 or f64 after widening.
struct bf16 {
  std::uint16_t bits = 0;
};
struct f16 {
  std::uint16_t bits = 0;
};

double widen(bf16 x);           // exact
double widen(f16 x);            // exact, subnormals honoured
bf16 narrow_to_bf16(double x);  // nearest, ties to even; NaN stays (quiet) NaN, overflow is inf
f16 narrow_to_f16(double x);    // nearest, ties to even; NaN stays (quiet) NaN, overflow is inf

enum class DType : std::uint8_t { f64, f32, bf16, f16, u8, i64 };  // u8 holds booleans: 0 or 1

const char* name(DType type);     // "f64", "f32", "bf16", "f16", "bool", "i64"
std::size_t size_of(DType type);  // bytes of one element

template <class T>
constexpr DType dtype_of() {
  using U = std::remove_const_t<T>;
  if constexpr (std::is_same_v<U, double>)
    return DType::f64;
  else if constexpr (std::is_same_v<U, float>)
    return DType::f32;
  else if constexpr (std::is_same_v<U, bf16>)
    return DType::bf16;
  else if constexpr (std::is_same_v<U, f16>)
    return DType::f16;
  else if constexpr (std::is_same_v<U, std::uint8_t>)
    return DType::u8;
  else {
    static_assert(std::is_same_v<U, index_t>,
                  "an element is double, float, bf16, f16, uint8_t or index_t");
    return DType::i64;
  }
}

// Strides of a dense row-major tensor of this shape, in elements.
template <std::size_t Rank>
constexpr std::array<index_t, Rank> row_major(const std::array<index_t, Rank>& shape) {
  std::array<index_t, Rank> strides{};
  index_t step = 1;
  for (std::size_t axis = Rank; axis-- > 0;) {
    strides[axis] = step;
    step *= shape[axis];
  }
  return strides;
}

// Non-owning: element (i0, i1, ...) is data[sum of i_a * strides[a]].
template <class T, int Rank>
struct View {
  static constexpr auto kRank = static_cast<std::size_t>(Rank);
  using Shape = std::array<index_t, kRank>;

  T* data = nullptr;
  Shape shape{};
  Shape strides{};  // in elements

  View() = default;
  View(T* first, const Shape& extents) : View(first, extents, row_major(extents)) {}
  View(T* first, const Shape& extents, const Shape& steps)
      : data(first), shape(extents), strides(steps) {}
  template <class U>
    requires(std::is_same_v<const U, T>)
  View(const View<U, Rank>& other)  // a view to const from a view to non-const
      : data(other.data), shape(other.shape), strides(other.strides) {}

  template <class... Index>
    requires(sizeof...(Index) == kRank)
  T& operator()(Index... index) const {
    const Shape at{static_cast<index_t>(index)...};
    index_t offset = 0;
    for (std::size_t axis = 0; axis < kRank; ++axis) offset += at[axis] * strides[axis];
    return data[offset];
  }
};

// Owning, dense, row-major, 64-byte aligned, zeroed. Move-only. The sizes must be non-negative and
// their product must fit index_t: a caller that has them from a file checks first.
template <class T, int Rank>
class Tensor {
 public:
  using Shape = typename View<T, Rank>::Shape;

  Tensor() = default;
  explicit Tensor(const Shape& shape) : shape_(shape), size_(1) {
    for (const index_t extent : shape) size_ *= extent;
    const auto count = static_cast<std::size_t>(size_);
    data_.reset(static_cast<T*>(::operator new(count * sizeof(T), kAlignment)));
    for (std::size_t n = 0; n < count; ++n) new (data_.get() + n) T{};
  }

  View<T, Rank> view() { return {data_.get(), shape_}; }
  View<const T, Rank> view() const { return {data_.get(), shape_}; }
  operator View<T, Rank>() { return view(); }
  operator View<const T, Rank>() const { return view(); }

  template <class... Index>
  T& operator()(Index... index) {
    return view()(index...);
  }
  template <class... Index>
  const T& operator()(Index... index) const {
    return view()(index...);
  }

  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  const Shape& shape() const { return shape_; }
  index_t size() const { return size_; }  // number of elements

 private:
  static constexpr std::align_val_t kAlignment{64};
  struct Free {
    void operator()(T* data) const { ::operator delete(data, kAlignment); }
  };
  Shape shape_{};
  index_t size_ = 0;
  std::unique_ptr<T, Free> data_;
};

// A read-only view whose element type is known at run time.
template <int Rank>
struct ConstTensor {
  static constexpr auto kRank = static_cast<std::size_t>(Rank);
  using Shape = std::array<index_t, kRank>;

  const void* data = nullptr;
  DType dtype = DType::f64;
  Shape shape{};
  Shape strides{};  // in elements

  ConstTensor() = default;
  ConstTensor(const void* first, DType type, const Shape& extents, const Shape& steps)
      : data(first), dtype(type), shape(extents), strides(steps) {}
  template <class T>
  ConstTensor(const View<T, Rank>& view)
      : data(view.data), dtype(dtype_of<T>()), shape(view.shape), strides(view.strides) {}
  template <class T>
  ConstTensor(const Tensor<T, Rank>& tensor) : ConstTensor(tensor.view()) {}

  // The element widened to double: exact but for i64 beyond 2^53.
  template <class... Index>
    requires(sizeof...(Index) == kRank)
  double load(Index... index) const {
    return load_at({static_cast<index_t>(index)...});
  }
  double load_at(const Shape& at) const;
};

// The same, writable.
template <int Rank>
struct MutableTensor {
  static constexpr auto kRank = static_cast<std::size_t>(Rank);
  using Shape = std::array<index_t, kRank>;

  void* data = nullptr;
  DType dtype = DType::f64;
  Shape shape{};
  Shape strides{};  // in elements

  MutableTensor() = default;
  MutableTensor(void* first, DType type, const Shape& extents, const Shape& steps)
      : data(first), dtype(type), shape(extents), strides(steps) {}
  template <class T>
  MutableTensor(const View<T, Rank>& view)
      : data(view.data), dtype(dtype_of<T>()), shape(view.shape), strides(view.strides) {}
  template <class T>
  MutableTensor(Tensor<T, Rank>& tensor) : MutableTensor(tensor.view()) {}

  operator ConstTensor<Rank>() const { return {data, dtype, shape, strides}; }

  // Stores x, rounded once to the element type (nearest, ties to even).
  void store_at(const Shape& at, double x) const;
};

// Element number `offset` of an array of `type`, widened to double; and its inverse, rounding once.
double load_element(const void* data, DType type, index_t offset);
void store_element(void* data, DType type, index_t offset, double x);

template <int Rank>
double ConstTensor<Rank>::load_at(const Shape& at) const {
  index_t offset = 0;
  for (std::size_t axis = 0; axis < kRank; ++axis) offset += at[axis] * strides[axis];
  return load_element(data, dtype, offset);
}

template <int Rank>
void MutableTensor<Rank>::store_at(const Shape& at, double x) const {
  index_t offset = 0;
  for (std::size_t axis = 0; axis < kRank; ++axis) offset += at[axis] * strides[axis];
  store_element(data, dtype, offset, x);
}

}  // namespace glasshead
