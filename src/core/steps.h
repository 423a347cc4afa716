// The attention steps, for those who build longer lists (nn) or edit them (doctor).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "glasshead/trace.h"

namespace glasshead {

// Where one attention reads from and writes to.
struct AttentionTaps {
  std::string prefix;                     // put before every tap written: "block.0."
  std::string q = "q", k = "k", v = "v";  // read as they are, without the prefix
};

// As `steps` in trace.h, over any taps.
std::vector<Step> attention_steps(const AttentionOptions& options, index_t d_k,
                                  const AttentionTaps& taps);

// The table of attention's operations, in the order of the steps.
std::span<const Op> attention_ops();
// The one of this id ("scores"); null when there is none.
const Op* find_attention_op(std::string_view id);

// Refuses (ShapeError), naming the step, when `fits` is false.
void require_shape(const StepArgs& args, bool fits, const char* what);

}  // namespace glasshead
