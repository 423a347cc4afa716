// The default floating-point environment while it lives: round to nearest, no exception trapped,
// subnormal numbers kept (no flush to zero). Afterwards the thread has its own back.
//
//   const DefaultFloatEnvironment environment;
#pragma once

#include <cstdint>

namespace glasshead {

class DefaultFloatEnvironment {
 public:
  DefaultFloatEnvironment();
  ~DefaultFloatEnvironment();
  DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
  DefaultFloatEnvironment& operator=(const DefaultFloatEnvironment&) = delete;

 private:
  std::uint64_t saved_ = 0;  // MXCSR, FPCR; unused where there is nothing to set
};

}  // namespace glasshead
