#include "cli/temporary_folder.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <unistd.h>

#include "glasshead/error.h"

namespace glasshead::cli {

TemporaryFolder::TemporaryFolder(const char* command) {
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::temp_directory_path(error);
  path_ = (parent / "glasshead-XXXXXX").string();
  if (error || mkdtemp(path_.data()) == nullptr)
    throw IoError(command, {{"TMPDIR", "no folder for temporary files: " + path_}});
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace glasshead::cli
