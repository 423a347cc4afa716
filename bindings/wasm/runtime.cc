// What the C++ library does when it gives up. Its own functions write to a console, which a page
// does not have, and bring along printf and a demangler of names. A trap says the same, and the
// host starts a fresh instance.
#include <exception>
#include <string>

namespace std {
[[noreturn]] void terminate() noexcept { __builtin_trap(); }
}  // namespace std

_LIBCPP_BEGIN_NAMESPACE_STD
[[noreturn]] void __libcpp_verbose_abort(const char*, ...) { __builtin_trap(); }
_LIBCPP_END_NAMESPACE_STD

// Destructors of what lives as long as the module: it never ends, and the libc's list of them would
// bring its allocator along.
extern "C" int __cxa_atexit(void (*)(void*), void*, void*) { return 0; }

extern "C" [[noreturn]] void abort_message(const char*, ...) { __builtin_trap(); }
