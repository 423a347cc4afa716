// What computes attention: the readable path, or the fused one with one of the kernel sets.
//
//   for (const Engine& engine : engines_of("all", "")) engine.attend(q, k, v, out, options);
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "glasshead/attention.h"

namespace glasshead::conformance {

struct Engine {
  std::string name;                        // "transparent", "avx2"
  std::shared_ptr<const Context> context;  // null: attend_transparent

  bool is_fused() const { return context != nullptr; }
  void attend(const ConstTensor<4>& q, const ConstTensor<4>& k, const ConstTensor<4>& v,
              const MutableTensor<4>& out, const AttentionOptions& options = {},
              const RowState& rows = {}) const;
};

// path: "transparent", "fused" or "all", both. isa: the kernel set of the fused path; empty: every
// set that this processor has. Throws OptionError for a set that it lacks, and for one that rounds:
// its error bound is another (tests/core/rounding_test.cc).
std::vector<Engine> engines_of(const std::string& path, const std::string& isa);

// The readable path alone, for what a tolerance is made of.
const Engine& transparent();

}  // namespace glasshead::conformance
