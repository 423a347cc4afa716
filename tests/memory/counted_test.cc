#include "memory/counted.h"

#include <cstdlib>
#include <malloc.h>
#include <memory>
#include <new>

#include <gtest/gtest.h>

namespace glasshead::counted {

std::atomic<std::size_t> live_bytes{0}, peak_bytes{0};

namespace {

void* taken(std::size_t size) {
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) std::abort();
  const std::size_t live = live_bytes += malloc_usable_size(memory);
  if (live > peak_bytes) peak_bytes = live;
  return memory;
}

void given_back(void* memory) {
  if (memory != nullptr) live_bytes -= malloc_usable_size(memory);
  std::free(memory);
}

TEST(Counted, memory_counts_until_it_is_given_back) {
  const std::size_t before = live_bytes;
  peak_bytes = before;
  auto memory = std::make_unique<char[]>(100'000);
  EXPECT_GE(live_bytes - before, 100'000U);
  EXPECT_LE(live_bytes - before, 101'000U);
  memory.reset();
  EXPECT_EQ(live_bytes, before);
  EXPECT_GE(peak_bytes - before, 100'000U);
}

}  // namespace
}  // namespace glasshead::counted

void* operator new(std::size_t size) { return glasshead::counted::taken(size); }
void* operator new[](std::size_t size) { return glasshead::counted::taken(size); }
void operator delete(void* memory) noexcept { glasshead::counted::given_back(memory); }
void operator delete[](void* memory) noexcept { glasshead::counted::given_back(memory); }
void operator delete(void* memory, std::size_t) noexcept { glasshead::counted::given_back(memory); }
void operator delete[](void* memory, std::size_t) noexcept {
  glasshead::counted::given_back(memory);
}
