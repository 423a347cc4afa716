#include "wasm/calls.h"

namespace glasshead::wasm {

std::span<const NamedCall> calls() {
  static constexpr NamedCall kCalls[] = {
      {"view", view},       {"why", why},           {"origin", origin},       {"derive", derive},
      {"grade", grade},     {"step", step},         {"trace", trace},         {"claims", claims},
      {"checks", checks},   {"mistakes", mistakes}, {"mistake", mistake},     {"copy", copy},
      {"shuffle", shuffle}, {"sweep", sweep},       {"worksheet", worksheet}, {"sources", sources},
      {"doctor", diagnose}, {"probe", probe},       {"sheet", sheet}};
  return kCalls;
}

}  // namespace glasshead::wasm
