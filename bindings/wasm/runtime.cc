// What the C++ library does when it gives up. Its own functions write to a console, which a page
// does not have, and bring along printf and a demangler of names. A trap says the same, and the
// host starts a fresh instance. Memory comes from here too, as the library's operator new asks for
// its handlers.
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>

namespace std {
[[noreturn]] void terminate() noexcept { __builtin_trap(); }
}  // namespace std

_LIBCPP_BEGIN_NAMESPACE_STD
[[noreturn]] void __libcpp_verbose_abort(const char*, ...) { __builtin_trap(); }
_LIBCPP_END_NAMESPACE_STD

extern "C" [[noreturn]] void abort_message(const char*, ...) { __builtin_trap(); }

void* operator new(std::size_t size) {
  if (void* const memory = std::malloc(size == 0 ? 1 : size)) return memory;
  __builtin_trap();  // no memory is left
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  const auto align = static_cast<std::size_t>(alignment);
  if (void* const memory = std::aligned_alloc(align, (size + align - 1) / align * align))
    return memory;
  __builtin_trap();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

void* operator new[](std::size_t size) { return operator new(size); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
