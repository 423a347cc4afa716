#include "nn/rope_step.h"

namespace glasshead::nn {

std::vector<StepNumber> rope_numbers(const Rope& rope) {
  std::vector<StepNumber> numbers{{"is_adjacent", rope.pairing == RopePairing::adjacent ? 1 : 0},
                                  {"base", rope.base},
                                  {"rotary", static_cast<double>(rope.rotary)},
                                  {"span", static_cast<double>(rope.span)}};
  if (rope.yarn) {
    const Yarn& yarn = *rope.yarn;
    numbers.insert(numbers.end(), {{"yarn_factor", yarn.factor},
                                   {"yarn_original_length", yarn.original_length},
                                   {"yarn_beta_fast", yarn.beta_fast},
                                   {"yarn_beta_slow", yarn.beta_slow},
                                   {"yarn_mscale", yarn.mscale},
                                   {"yarn_mscale_all_dim", yarn.mscale_all_dim},
                                   {"yarn_is_truncated", yarn.is_truncated ? 1 : 0}});
  }
  return numbers;
}

Rope rope_of(const Step& step) {
  Rope rope;
  rope.pairing = number(step, "is_adjacent", 0) != 0 ? RopePairing::adjacent : RopePairing::halves;
  rope.base = number(step, "base", rope.base);
  rope.rotary = static_cast<index_t>(number(step, "rotary", 0));
  rope.span = static_cast<index_t>(number(step, "span", 0));
  if (number(step, "yarn_factor", 0) > 0) {
    Yarn yarn;
    yarn.factor = number(step, "yarn_factor", yarn.factor);
    yarn.original_length = number(step, "yarn_original_length", yarn.original_length);
    yarn.beta_fast = number(step, "yarn_beta_fast", yarn.beta_fast);
    yarn.beta_slow = number(step, "yarn_beta_slow", yarn.beta_slow);
    yarn.mscale = number(step, "yarn_mscale", yarn.mscale);
    yarn.mscale_all_dim = number(step, "yarn_mscale_all_dim", yarn.mscale_all_dim);
    yarn.is_truncated = number(step, "yarn_is_truncated", 1) != 0;
    rope.yarn = yarn;
  }
  return rope;
}

}  // namespace glasshead::nn
