// A file's bytes, read only, without reading it: the system brings a page in when it is touched.
//
//   std::string what;
//   if (std::optional<MappedFile> file = MappedFile::open(path, what)) use(file->bytes());
//
// The mapping is private and lives as long as the object; deleting or replacing the file by another
// leaves it alone. A file that is *shortened in place* meanwhile takes its bytes away: touching
// them then ends the process (SIGBUS), which no check of ours can prevent. Writers that put a new
// file in the old one's place, as write_bytes does, are safe. Not in the WebAssembly module.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace glasshead {

class MappedFile {
 public:
  // nullopt, and what is wrong ("no such file", "is a directory; a file is needed"): only regular
  // files can be mapped, of any size. An empty one has no bytes.
  static std::optional<MappedFile> open(const std::string& path, std::string& what);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::span<const std::byte> bytes_;
};

}  // namespace glasshead
