// Memory that is read from one end to the other, as caches are: zeroed, 64-byte aligned, and from
// 2 MB on in huge pages where the system has them (a stream through 4 KB pages runs at half to
// three quarters of its speed).
//
//   StreamMemory memory(bytes);
//   write(memory.data());
//
//   StreamRoom room;                        // for many pieces: small ones share huge pages
//   StreamMemory first = room.take(bytes), second = room.take(bytes);
#pragma once

#include <cstddef>
#include <memory>

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
  friend class StreamRoom;
  void* data_ = nullptr;
  std::size_t mapped_ = 0;                    // bytes of a mapping of its own; 0: from operator new
  std::shared_ptr<const StreamMemory> area_;  // instead: it is a piece of this
};

// Gives out pieces that follow each other in areas of growing size, at most twice what is taken.
// An area lives as long as its last piece, which may outlive the room.
class StreamRoom {
 public:
  StreamMemory take(std::size_t bytes);

 private:
  std::shared_ptr<const StreamMemory> area_;
  std::size_t size_ = 0, used_ = 0;  // of the area
};

}  // namespace glasshead
