// What this program holds, counted by its own operator new (counted_test.cc).
#pragma once

#include <atomic>
#include <cstddef>

namespace glasshead::counted {

extern std::atomic<std::size_t> live_bytes, peak_bytes;

}  // namespace glasshead::counted
