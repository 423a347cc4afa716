#include "wasm/calls.h"

namespace glasshead::wasm {

std::span<const NamedCall> calls() {
  static constexpr NamedCall kCalls[] = {{"view", view}, {"origin", origin}, {"step", step}};
  return kCalls;
}

}  // namespace glasshead::wasm
