// The processor this program runs on: which of the instruction sets that matter to attention it
// has, and how many cores this process may use.
//
//   for (const CpuFeature& feature : cpu().features) show(feature.name, feature.is_supported);
#pragma once

#include <string>
#include <vector>

namespace glasshead {

struct CpuFeature {
  const char* name;   // as compilers call it: "avx2", "fma", "avx512f", "neon"
  bool is_supported;  // the processor has it, and the operating system saves its registers
};

struct Cpu {
  std::string architecture;          // "x86-64", "aarch64", "wasm32"; else "other"
  std::string model;                 // the maker's name for it; empty if it does not say
  int cores = 1;                     // logical cores that this process may run on; at least 1
  std::vector<CpuFeature> features;  // every one this architecture could have, in a fixed order
};

// Asks the processor and the operating system anew on each call.
Cpu cpu();

}  // namespace glasshead
