// Which kernel set runs. The list is cmake/isa.cmake's, best first.
//
//   for (const KernelSet* set : kernel_set_list()) ...          // as compiled
//   const KernelSet set = filled(*find_kernel_set("avx2"));     // null entries from the fallback
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernels/kernel_set.h"

namespace glasshead {

// Every set of this build that gives the same bits, best first, "scalar" last.
const std::vector<const KernelSet*>& kernel_set_list();

// Those that round: for whoever asks for them by name.
const std::vector<const KernelSet*>& rounding_set_list();

// Of either list; null: there is none of that name.
const KernelSet* find_kernel_set(std::string_view name);

// The features the processor lacks for it, in the set's order; empty: it can run.
std::vector<std::string> missing_features(const KernelSet& set);

// With every null entry taken from the fallback, or from the fallback's own.
KernelSet filled(const KernelSet& set);

}  // namespace glasshead
