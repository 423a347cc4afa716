#include <cerrno>
#include <cstdio>
#include <cstring>

#include "cli/command.h"
#include "glasshead/tensor_file.h"

namespace glasshead::cli {

void write_result(const std::string& path, const std::string& bytes) {
  if (!path.empty() && path != "-") {
    write_bytes(path, std::as_bytes(std::span(bytes)));
    return;
  }
  if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) != bytes.size() ||
      std::fflush(stdout) != 0)
    throw IoError("write", {{"stdout", std::string("cannot be written: ") + std::strerror(errno)}});
}

std::string read_file(const std::string& path) {
  const std::vector<std::byte> bytes = read_bytes(path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace glasshead::cli
