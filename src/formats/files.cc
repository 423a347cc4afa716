// Whole files in and out.
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <unistd.h>

#include "base/fail.h"
#include "glasshead/tensor_file.h"

namespace glasshead {
namespace {

namespace fs = std::filesystem;

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Close>;

std::string last_error() { return std::strerror(errno); }

[[noreturn]] void fail_io(const char* function, const std::string& path, const std::string& what) {
  fail(ErrorKind::io, function, path, what);
}

// Removes the temporary file unless it was renamed.
struct Temporary {
  std::string path;
  ~Temporary() {
    if (!path.empty()) std::remove(path.c_str());
  }
};

void write_all(std::FILE* file, const std::string& path, std::span<const std::byte> bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file) != bytes.size() || std::fflush(file) != 0)
    fail_io("write_bytes", path, "cannot be written: " + last_error());
}

}  // namespace

std::vector<std::byte> read_bytes(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) fail_io("read_bytes", path, "no such file");
  if (fs::is_directory(status)) fail_io("read_bytes", path, "is a directory; a file is needed");
  if (fs::is_regular_file(status) &&
      fs::file_size(path, error) > static_cast<std::uintmax_t>(kLargestFile) && !error)
    fail_io("read_bytes", path,
            "is larger than 64 GiB; a file is held in memory whole, so it is not read");
  const File file(std::fopen(path.c_str(), "rb"));
  if (!file) fail_io("read_bytes", path, "cannot be opened: " + last_error());
  // In pieces to the end, since the size of a pipe is unknown and that of a file can change.
  std::vector<std::byte> bytes;
  if (fs::is_regular_file(status)) bytes.reserve(fs::file_size(path, error));
  std::array<std::byte, 1 << 16> piece;
  do {
    const std::size_t got = std::fread(piece.data(), 1, piece.size(), file.get());
    bytes.insert(bytes.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(got));
    if (bytes.size() > static_cast<std::size_t>(kLargestFile))
      fail_io("read_bytes", path, "goes on beyond 64 GiB, more than is read");
  } while (std::feof(file.get()) == 0 && std::ferror(file.get()) == 0);
  if (std::ferror(file.get()) != 0) fail_io("read_bytes", path, "cannot be read: " + last_error());
  return bytes;
}

void write_bytes(const std::string& path, std::span<const std::byte> bytes) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) fail_io("write_bytes", path, "is a directory; a file is needed");
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    const File device(std::fopen(path.c_str(), "wb"));
    if (!device) fail_io("write_bytes", path, "cannot be opened: " + last_error());
    write_all(device.get(), path, bytes);
    return;
  }
  // A link is followed, so that the file it names is replaced and not the link.
  const std::string target = fs::exists(status) ? fs::canonical(path, error).string() : path;
  const std::string beside = target + "." + std::to_string(::getpid()) + ".part";
  File file(std::fopen(beside.c_str(), "wbx"));
  if (!file) fail_io("write_bytes", path, "cannot be created: " + last_error());
  Temporary temporary{beside};
  write_all(file.get(), path, bytes);
  // Before the rename: after a crash of the machine the target must not be an empty file.
  if (::fsync(::fileno(file.get())) != 0 || std::fclose(file.release()) != 0)
    fail_io("write_bytes", path, "cannot be written: " + last_error());
  if (std::rename(beside.c_str(), target.c_str()) != 0)
    fail_io("write_bytes", path, "cannot be replaced: " + last_error());
  temporary.path.clear();
}

}  // namespace glasshead
