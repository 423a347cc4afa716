#include "base/stream_memory.h"

#include <algorithm>
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
  if (area_) return;
#if defined(__linux__)
  if (mapped_ != 0) {
    munmap(data_, mapped_);
    return;
  }
#endif
  ::operator delete(data_, kLine);
}

StreamMemory::StreamMemory(StreamMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      mapped_(std::exchange(other.mapped_, 0)),
      area_(std::exchange(other.area_, nullptr)) {}

StreamMemory& StreamMemory::operator=(StreamMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(mapped_, other.mapped_);
  std::swap(area_, other.area_);
  return *this;
}

StreamMemory StreamRoom::take(std::size_t bytes) {
  constexpr std::size_t kLargest = std::size_t{64} << 20;
  if (bytes > SIZE_MAX - 64) return StreamMemory(bytes);  // which throws
  const std::size_t lines = (bytes + 63) / 64 * 64;
  if (area_ == nullptr || lines > size_ - used_) {
    size_ = std::max(lines, std::min(kLargest, 2 * size_));
    used_ = 0;
    area_ = std::make_shared<const StreamMemory>(size_);
  }
  StreamMemory piece;
  piece.data_ = static_cast<std::byte*>(area_->data()) + used_;
  piece.area_ = area_;
  used_ += lines;
  return piece;
}

}  // namespace glasshead
