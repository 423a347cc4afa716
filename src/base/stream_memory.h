// Memory that is read from one end to the other, as caches are: zeroed, 64-byte aligned, and from
// 2 MB on in huge pages where the system has them (a stream through 4 KB pages runs at half to
// three quarters of its speed).
//
//   StreamMemory memory(bytes);
//   write(memory.data());
#pragma once

#include <cstddef>

namespace glasshead {

class StreamMemory {
 public:
  StreamMemory() = default;
  explicit StreamMemory(std::size_t bytes);
  ~StreamMemory();
  StreamMemory(StreamMemory&& other) noexcept;
  StreamMemory& operator=(StreamMemory&& other) noexcept;

  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
  std::size_t mapped_ = 0;  // bytes of a mapping of its own; 0: from operator new
};

}  // namespace glasshead
