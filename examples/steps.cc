// The readable path as data: print the steps, run them, then leave one out.
#include <cstdio>

#include "glasshead/trace.h"

int main() {
  using namespace glasshead;
  Tensor<double, 4> x({1, 1, 3, 2});
  x(0, 0, 0, 0) = x(0, 0, 1, 1) = x(0, 0, 2, 0) = x(0, 0, 2, 1) = 1;  // A (1,0), B (0,1), C (1,1)

  AttentionOptions options;
  options.mask = Mask::causal();

  std::vector<Step> list = steps(options, 2);
  for (const Step& step : list) std::printf("%-8s %s\n", step.tap.c_str(), step.op->formula);
  Trace right = run_steps(list, x, x, x, options);

  for (Step& step : list)
    if (step.tap == "scaled") set_number(step, "scale", 1);  // a classic mistake: no 1/sqrt(d_k)
  Trace wrong = run_steps(list, x, x, x, options);

  for (std::size_t j = 0; j < 3; ++j)
    std::printf("C attends to %c: %.4f, without the scale %.4f\n", "ABC"[j],
                right.at("weights").values[6 + j], wrong.at("weights").values[6 + j]);
}
