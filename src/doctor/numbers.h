// The numbers of a tensor as doubles, head by head, and as a program sees them that mistakes the
// order of their axes in memory.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "glasshead/tensor.h"

namespace glasshead::doctor {

inline std::size_t slot(index_t n) { return static_cast<std::size_t>(n); }

// Axes of one batch entry from the slowest to the fastest in memory: heads, length, size.
enum class Order : std::uint8_t { hld, lhd, hdl, ldh };

// Stored in one order, read as if it were another. hdl is mistaken for hld alone, or the reverse;
// ldh is what lhd is mistaken for.
struct Misread {
  Order stored = Order::hld, read = Order::hld;
  bool is_right() const { return stored == read; }
};

struct Place {
  index_t h = 0, l = 0, d = 0;
};

// Where the element is found that a program asks for at `wanted`.
Place found_at(const Misread& misread, const Place& wanted, const Place& extents);

// A tensor widened to f64, each head when it is first asked for. One thread at a time.
class Numbers {
 public:
  explicit Numbers(const ConstTensor<4>& tensor);

  index_t extent(std::size_t axis) const { return tensor_.shape[axis]; }
  const double* row(index_t b, index_t h, index_t l) const {
    return head(b, h) + l * tensor_.shape[3];
  }
  // Row (h, l) as it is misread, into `to`; or the row itself where nothing is.
  const double* row(index_t b, const Place& at, const Misread& misread, double* to) const;

 private:
  const double* head(index_t b, index_t h) const;

  ConstTensor<4> tensor_;
  mutable std::vector<std::unique_ptr<double[]>> heads_;
};

}  // namespace glasshead::doctor
