// One lane: what every other set is compared with, and all that a processor without a set of its
// own has.
#include <cstddef>
#include <cstdint>

#include "kernels/kernel_set.h"
#include "kernels/layer.inl.h"
#include "kernels/linear.inl.h"
#include "kernels/panel.inl.h"
#include "kernels/scalar.inl.h"

namespace {

template <class Vector>
struct Panel {
  using V = Vector;
  static constexpr int kVectors = 4;
  template <int C>
  static constexpr int kStrip = C <= 2 ? 4 : 2;
};

using F32 = Scalar<float, std::uint32_t>;

struct Tile {
  static constexpr int kVectors = 4, kRows = 2;
};

constexpr const char* kFeatures[] = {nullptr};

}  // namespace

namespace glasshead {

extern const KernelSet kernel_set_scalar;
const KernelSet kernel_set_scalar{"scalar",
                                  nullptr,
                                  kFeatures,
                                  panel_kernels<Panel<F32>>(),
                                  panel_kernels<Panel<Scalar<double, std::uint64_t>>>(),
                                  linear_kernels<F32, Tile>(),
                                  layer_kernels<F32>()};

}  // namespace glasshead
