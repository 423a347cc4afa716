// Where a module's memory comes from: operator new, in a tenth of the libc's allocator. Blocks come
// in sizes, multiples of 16 bytes and from 256 on four to a doubling, and one that is freed waits
// for the next of its size. Nothing is joined or given back: an answer's blocks are the next one's,
// and a page that has enough starts a fresh instance.
#include <array>
#include <cstddef>
#include <cstdint>
#include <new>

extern unsigned char __heap_base;  // where the linker's own data end

namespace {

constexpr std::size_t kUnit = 16, kSmall = 256, kPage = 65536;

// Before what is handed out: which size, and where the block begins.
struct Header {
  std::uint32_t size_class;
  std::uint32_t offset;
};
struct Free {
  Free* next;
};

std::array<Free*, kSmall / kUnit + 1 + 4 * 24> waiting;
// Blocks begin 8 below a multiple of 16, so that what follows the header is aligned.
std::uintptr_t next, end;

// Rounds a size up to one that there is.
std::uint32_t size_class(std::size_t& size) {
  if (size <= kSmall) {
    size = (size + kUnit - 1) / kUnit * kUnit;
    return static_cast<std::uint32_t>(size / kUnit);
  }
  const int shift = 29 - __builtin_clz(static_cast<std::uint32_t>(size - 1));  // 6 from 256 on
  const std::size_t steps = ((size - 1) >> shift) + 1;                         // 5 to 8
  size = steps << shift;
  return static_cast<std::uint32_t>(kSmall / kUnit + 4 * static_cast<std::size_t>(shift - 6) +
                                    steps - 4);
}

std::uintptr_t fresh(std::size_t size) {
  if (end == 0) {
    end = __builtin_wasm_memory_size(0) * kPage;
    next = (reinterpret_cast<std::uintptr_t>(&__heap_base) + kUnit - 1) / kUnit * kUnit + kUnit -
           sizeof(Header);
  }
  if (size > end - next) {
    const std::size_t pages = (size - (end - next) + kPage - 1) / kPage;
    if (__builtin_wasm_memory_grow(0, pages) == static_cast<std::size_t>(-1)) __builtin_trap();
    end += pages * kPage;
  }
  const std::uintptr_t block = next;
  next += size;
  return block;
}

// alignment: a power of two.
void* allocate(std::size_t size, std::size_t alignment) {
  if (size > 0x7fff0000 - alignment) __builtin_trap();
  size += sizeof(Header) + (alignment > kUnit ? alignment : 0);
  const std::uint32_t which = size_class(size);
  std::uintptr_t block = 0;
  if (Free* const found = waiting[which]) {
    waiting[which] = found->next;
    block = reinterpret_cast<std::uintptr_t>(found);
  } else {
    block = fresh(size);
  }
  std::uintptr_t memory = block + sizeof(Header);
  if (alignment > kUnit) memory = (memory + alignment - 1) & ~(alignment - 1);
  *reinterpret_cast<Header*>(memory - sizeof(Header)) = {
      which, static_cast<std::uint32_t>(memory - block)};
  return reinterpret_cast<void*>(memory);
}

void release(void* memory) {
  if (memory == nullptr) return;
  const auto at = reinterpret_cast<std::uintptr_t>(memory);
  const Header header = *reinterpret_cast<const Header*>(at - sizeof(Header));
  auto* const block = reinterpret_cast<Free*>(at - header.offset);
  block->next = waiting[header.size_class];
  waiting[header.size_class] = block;
}

}  // namespace

void* operator new(std::size_t size) { return allocate(size, kUnit); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { release(memory); }
void operator delete(void* memory, std::size_t) noexcept { release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { release(memory); }

void* operator new[](std::size_t size) { return allocate(size, kUnit); }
void operator delete[](void* memory) noexcept { release(memory); }
void operator delete[](void* memory, std::size_t) noexcept { release(memory); }
