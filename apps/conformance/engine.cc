#include "conformance/engine.h"

#include <algorithm>

namespace glasshead::conformance {

void Engine::attend(const ConstTensor<4>& q, const ConstTensor<4>& k, const ConstTensor<4>& v,
                    const MutableTensor<4>& out, const AttentionOptions& options,
                    const RowState& rows) const {
  if (is_fused())
    glasshead::attend(q, k, v, out, options, rows, *context);
  else
    attend_transparent(q, k, v, out, options, rows);
}

std::vector<Engine> engines_of(const std::string& path, const std::string& isa) {
  std::vector<Engine> engines;
  if (path != "fused") engines.push_back(transparent());
  if (path == "transparent") return engines;
  const auto add = [&engines](const std::string& name) {
    engines.push_back({name, std::make_shared<const Context>(
                                 ContextOptions{.isa = name, .threads = 0, .parallel_for = {}})});
  };
  const auto rounding = rounding_kernel_sets();
  if (std::any_of(rounding.begin(), rounding.end(),
                  [&](const auto& set) { return set.name == isa; }))
    throw OptionError("glasshead-conformance",
                      {{"--isa", isa + " rounds q, k, v and weights to bf16; these folders hold "
                                       "results to f32's and f64's rounding: one of kernel_sets() "
                                       "is needed (glasshead inspect cpu)"}});
  if (!isa.empty()) {
    add(isa);
    return engines;
  }
  for (const KernelSetInfo& set : kernel_sets())
    if (set.is_supported) add(set.name);
  return engines;
}

const Engine& transparent() {
  static const Engine engine{"transparent", nullptr};
  return engine;
}

}  // namespace glasshead::conformance
