// A folder for files that nobody keeps.
//
//   const TemporaryFolder folder("audit");
//   write_bytes(folder.file("in.safetensors"), bytes);
#pragma once

#include <string>

namespace glasshead::cli {

// Made empty, for this user alone; removed with all that is in it.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const char* command);  // throws IoError in the command's name
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace glasshead::cli
