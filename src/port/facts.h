// What is true of numbers that no mistake gives.
#pragma once

#include <string>
#include <vector>

#include "port/dump.h"

namespace glasshead::port {

std::vector<std::string> facts(const Dumped& at, const FileTensor& ours, const FileTensor& theirs,
                               double tolerance);

}  // namespace glasshead::port
