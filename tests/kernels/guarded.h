// Memory that ends where it ends: pages that nobody may touch lie before and after it, so that one
// element too many is a fault, not a number.
//
//   Guarded<float> x(n, Edge::end);       // x[n] faults
//   Guarded<float> y(n, Edge::begin);     // y[-1] faults; the rest of its last page is checked
//
// `alignment` in bytes; at Edge::end what the alignment leaves is filled and checked too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#include "glasshead/tensor.h"

namespace glasshead::test {

enum class Edge : std::uint8_t { begin, end };

template <class T>
class Guarded {
 public:
  Guarded(index_t count, Edge edge, std::size_t alignment = alignof(T))
      : bytes_(static_cast<std::size_t>(count) * sizeof(T)) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    inside_ = (bytes_ + page - 1) / page * page + (bytes_ == 0 ? page : 0);
    whole_ = inside_ + 2 * page;
    void* mapped =
        ::mmap(nullptr, whole_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) std::abort();
    base_ = static_cast<unsigned char*>(mapped);
    unsigned char* first = base_ + page;
    if (::mprotect(base_, page, PROT_NONE) != 0 ||
        ::mprotect(first + inside_, page, PROT_NONE) != 0)
      std::abort();
    std::memset(first, kFill, inside_);
    const std::size_t slack = (inside_ - bytes_) / alignment * alignment;
    before_ = edge == Edge::begin ? 0 : slack;
    data_ = reinterpret_cast<T*>(first + before_);
  }
  Guarded(const std::vector<T>& numbers, Edge edge, std::size_t alignment = alignof(T))
      : Guarded(static_cast<index_t>(numbers.size()), edge, alignment) {
    if (bytes_ != 0) std::memcpy(data_, numbers.data(), bytes_);
  }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  ~Guarded() {
    if (!is_intact()) std::abort();  // written beside it
    ::munmap(base_, whole_);
  }

  T* data() { return data_; }
  T& operator[](index_t n) { return data_[n]; }
  const T& operator[](index_t n) const { return data_[n]; }

  // Nothing was written into the page's rest.
  bool is_intact() const {
    const unsigned char* first = reinterpret_cast<const unsigned char*>(data_) - before_;
    for (std::size_t n = 0; n < inside_; ++n) {
      if (n == before_) n += bytes_;
      if (n < inside_ && first[n] != kFill) return false;
    }
    return true;
  }

 private:
  static constexpr unsigned char kFill = 0xFF;  // a NaN, read as a number
  std::size_t bytes_, inside_ = 0, whole_ = 0, before_ = 0;
  unsigned char* base_ = nullptr;
  T* data_ = nullptr;
};

}  // namespace glasshead::test
