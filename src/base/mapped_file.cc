#include "base/mapped_file.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace glasshead {
namespace {

struct Descriptor {
  int number = -1;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

std::nullopt_t no(std::string& what, std::string why) {
  what = std::move(why);
  return std::nullopt;
}

std::string last_error() { return std::strerror(errno); }

}  // namespace

std::optional<MappedFile> MappedFile::open(const std::string& path, std::string& what) {
  // A path with a NUL in it would name another file to the system.
  if (path.find('\0') != std::string::npos) return no(what, "no file's name holds a zero byte");
  // Not blocking: opening a pipe that nobody writes to would wait for ever.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.number < 0)
    return no(what, errno == ENOENT ? "no such file" : "cannot be opened: " + last_error());
  struct stat status = {};
  if (::fstat(file.number, &status) != 0) return no(what, "cannot be read: " + last_error());
  if (S_ISDIR(status.st_mode)) return no(what, "is a directory; a file is needed");
  if (!S_ISREG(status.st_mode)) return no(what, "is not a regular file, which is needed");
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return MappedFile({});
  void* const start = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number, 0);
  if (start == MAP_FAILED) return no(what, "cannot be mapped: " + last_error());
  return MappedFile({static_cast<const std::byte*>(start), size});
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  // munmap takes the address that mmap gave, which was not const.
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace glasshead
