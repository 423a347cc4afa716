#include "base/stream_memory.h"

#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace glasshead {
namespace {

constexpr std::align_val_t kLine{64};

#if defined(__linux__)
constexpr std::size_t kHugePage = std::size_t{2} << 20;

// Whole huge pages, aligned to one, zeroed by the system when first touched; null if there are
// none.
void* map_pages(std::size_t bytes) {
  const std::size_t taken = bytes + kHugePage;
  void* found = mmap(nullptr, taken, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (found == MAP_FAILED) return nullptr;
  char* const begin = static_cast<char*>(found);
  const std::size_t past = reinterpret_cast<std::uintptr_t>(begin) % kHugePage;
  const std::size_t before = past == 0 ? 0 : kHugePage - past;
  if (before != 0) munmap(begin, before);
  munmap(begin + before + bytes, kHugePage - before);
  madvise(begin + before, bytes, MADV_HUGEPAGE);  // advice: nothing is lost if it isn't taken
  return begin + before;
}
#endif

}  // namespace

StreamMemory::StreamMemory(std::size_t bytes) {
#if defined(__linux__)
  if (bytes >= kHugePage && bytes <= SIZE_MAX - 2 * kHugePage) {
    const std::size_t whole = (bytes + kHugePage - 1) / kHugePage * kHugePage;
    data_ = map_pages(whole);
    if (data_ != nullptr) {
      mapped_ = whole;
      return;
    }
  }
#endif
  data_ = ::operator new(bytes, kLine);
  std::memset(data_, 0, bytes);
}

StreamMemory::~StreamMemory() {
#if defined(__linux__)
  if (mapped_ != 0) {
    munmap(data_, mapped_);
    return;
  }
#endif
  ::operator delete(data_, kLine);
}

StreamMemory::StreamMemory(StreamMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), mapped_(std::exchange(other.mapped_, 0)) {}

StreamMemory& StreamMemory::operator=(StreamMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(mapped_, other.mapped_);
  return *this;
}

}  // namespace glasshead
