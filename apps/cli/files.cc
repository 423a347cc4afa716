#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <unistd.h>

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

void need_writable(const std::string& flag, const std::string& path,
                   std::vector<Problem>& problems) {
  namespace fs = std::filesystem;
  if (path.empty() || path == "-") return;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) {
    problems.push_back({flag, path + ": is a directory; a file is needed"});
    return;
  }
  // A device is written to; a file is made anew, in the folder that it, or the file that a link
  // names, is in.
  const bool is_device = fs::exists(status) && !fs::is_regular_file(status);
  const fs::path target = fs::exists(status) ? fs::canonical(path, error) : fs::path(path);
  const fs::path folder = target.has_parent_path() ? target.parent_path() : fs::path(".");
  if (::access(is_device ? path.c_str() : folder.c_str(), is_device ? W_OK : W_OK | X_OK) != 0)
    problems.push_back({flag, path + ": cannot be " + (is_device ? "opened" : "created") + ": " +
                                  std::strerror(errno)});
}

std::string read_file(const std::string& path) {
  const std::vector<std::byte> bytes = read_bytes(path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace glasshead::cli
