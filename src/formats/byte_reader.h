// A cursor over the bytes of a hostile file: nothing is read beyond their end.
//
//   ByteReader reader(bytes);
//   std::uint32_t version = 0;
//   if (!reader.number(version)) ...                   // fewer than 4 bytes were left
#pragma once

#include <bit>
#include <cstddef>
#include <cstring>
#include <span>

namespace glasshead::formats {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they lie");

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::size_t position() const { return at_; }
  std::size_t left() const { return bytes_.size() - at_; }

  // A little-endian number. False: too few bytes are left, and the cursor stays.
  template <class T>
  bool number(T& out) {
    if (left() < sizeof out) return false;
    std::memcpy(&out, bytes_.data() + at_, sizeof out);
    at_ += sizeof out;
    return true;
  }

  // The next `count` bytes, where they lie; count <= left().
  std::span<const std::byte> take(std::size_t count) {
    const std::span<const std::byte> taken = bytes_.subspan(at_, count);
    at_ += count;
    return taken;
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
};

}  // namespace glasshead::formats
