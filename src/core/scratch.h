// Room to compute in: aligned so that vectors can be loaded from it, and holding nothing yet.
#pragma once

#include <algorithm>
#include <memory>
#include <new>

#include "glasshead/tensor.h"

namespace glasshead {

template <class T>
class Scratch {
 public:
  Scratch() = default;
  explicit Scratch(index_t size)
      : data_(static_cast<T*>(::operator new(static_cast<std::size_t>(size) * sizeof(T), kLine))) {}
  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }

 private:
  static constexpr std::align_val_t kLine{64};
  struct Free {
    void operator()(T* data) const { ::operator delete(data, kLine); }
  };
  std::unique_ptr<T, Free> data_;
};

// The same, zeroed.
template <class T>
class AlignedArray : public Scratch<T> {
 public:
  AlignedArray() = default;
  explicit AlignedArray(index_t size) : Scratch<T>(size) { std::fill_n(this->data(), size, T(0)); }
};

}  // namespace glasshead
