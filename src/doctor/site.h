// One attention inside a list of steps: where it stands and how big it is.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/mask_plan.h"
#include "glasshead/trace.h"

namespace glasshead::doctor {

using StepList = std::vector<Step>;

struct Site {
  std::string prefix;                               // of its taps: "", "block.0."
  std::string q, k, v;                              // the taps that its product and its sum read
  std::shared_ptr<const AttentionOptions> options;  // of the right run; never null
  PairShape pairs;                                  // batch, heads, q_len, kv_len
  index_t kv_heads = 1, d_k = 0, d_v = 0;
  index_t d_model = 0;  // columns of what the queries are projected from; 0 if they are given
  std::string v_input;  // the tap that values are projected from; empty if they are given
  std::vector<index_t> v_input_shape, v_shape;  // of the projection's two ends
  bool has_softmax = true;                      // false where the case leaves it out
  double scale = 1;                             // as the right run has it

  std::string tap(std::string_view name) const { return prefix + std::string(name); }
};

// Every attention of a list, in order, with the shapes that a run of it had.
std::vector<Site> find_sites(const StepList& steps, const Trace& run);

// The step that writes the tap; null when the list has none.
Step* find_step(StepList& steps, std::string_view tap);
const Step* find_step(const StepList& steps, std::string_view tap);

// Takes the step out and lets later ones read what it read first. Nothing happens if there is none.
void bypass_step(StepList& steps, const std::string& tap);
void erase_step(StepList& steps, std::string_view tap);
// Puts a step behind the one that writes `tap`.
void insert_after(StepList& steps, std::string_view tap, Step step);

// An explicit mask: `allowed(b, h, i, j)`, asked once per pair.
template <class F>
Mask mask_where(const PairShape& shape, const F& allowed) {
  const index_t count = shape.batch * shape.heads * shape.q_len * shape.kv_len;
  auto flags = std::make_shared<std::vector<std::uint8_t>>();
  flags->reserve(static_cast<std::size_t>(count));
  for (index_t b = 0; b < shape.batch; ++b)
    for (index_t h = 0; h < shape.heads; ++h)
      for (index_t i = 0; i < shape.q_len; ++i)
        for (index_t j = 0; j < shape.kv_len; ++j) flags->push_back(allowed(b, h, i, j) ? 1 : 0);
  const View<const std::uint8_t, 4> view(flags->data(),
                                         {shape.batch, shape.heads, shape.q_len, shape.kv_len});
  return Mask::allowed(Broadcast(ConstTensor<4>(view), flags));
}

}  // namespace glasshead::doctor
