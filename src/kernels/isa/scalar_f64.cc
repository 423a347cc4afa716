// One lane in f64, forward, panels of one row: the smallest code that computes what every other set
// does, for a module that is downloaded. It has no kernels in f32, none of single rows and none of
// gradients: core/fused_f32.cc does not belong into such a build.
#include <cstddef>
#include <cstdint>

#include "kernels/kernel_set.h"
#include "kernels/panel.inl.h"
#include "kernels/scalar.inl.h"

namespace {

struct Panel {
  using V = Scalar<double, std::uint64_t>;
  static constexpr int kVectors = 1;
  template <int C>
  static constexpr int kStrip = 1;
};

constexpr glasshead::Kernels<double> forward_kernels() {
  using V = Panel::V;
  glasshead::Kernels<double> kernels;
  kernels.width = V::W;
  kernels.lanes = Panel::kVectors * kernels.width;
  kernels.pack = pack<Panel>;
  kernels.turn = turn<Panel>;
  kernels.scores = scores<Panel>;
  kernels.softmax = softmax<Panel>;
  kernels.accumulate = accumulate<Panel>;
  kernels.merge = merge<Panel>;
  kernels.finish = finish<Panel>;
  kernels.are_finite = are_finite<V>;
  return kernels;
}

constexpr const char* kFeatures[] = {nullptr};

}  // namespace

namespace glasshead {

extern const KernelSet kernel_set_scalar_f64;
const KernelSet kernel_set_scalar_f64{"scalar_f64", nullptr, kFeatures, {}, forward_kernels()};

}  // namespace glasshead
