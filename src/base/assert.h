// GLASSHEAD_ASSERT(condition): a precondition that only the library's own code can break, never a
// user's input. Debug builds stop at the spot (a trap, so that a debugger or sanitizer shows the
// line); release builds do not evaluate the condition.
//
//   GLASSHEAD_ASSERT(row < q_len);
#pragma once

#ifdef NDEBUG
#define GLASSHEAD_ASSERT(condition) static_cast<void>(sizeof(!(condition)))
#else
#define GLASSHEAD_ASSERT(condition) ((condition) ? static_cast<void>(0) : __builtin_trap())
#endif
