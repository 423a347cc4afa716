#include "cli/page_files.h"

#include <filesystem>
#include <vector>

#include "cli/command.h"
#include "cli/trace_files.h"

namespace glasshead::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHow =
    "; make web builds it (with Node), and --web DIR names a folder that has it";

}  // namespace

std::string page_folder(const char* command, const std::string& given) {
  std::error_code ignored;
  if (!given.empty()) {
    if (!fs::is_directory(given, ignored))
      throw IoError(command, {{"--web", given + ": no such folder"}});
    return given;
  }
  std::vector<fs::path> folders;
  if (const std::string shared = shared_folder(); !shared.empty())
    folders.push_back(fs::path(shared) / "web");
  folders.emplace_back(GLASSHEAD_WEB);
  std::string looked;
  for (const fs::path& folder : folders) {
    if (fs::is_regular_file(folder / "index.html", ignored)) return folder.string();
    looked += (looked.empty() ? "" : ", nor in ") + folder.string();
  }
  throw IoError(command, {{"--web", "the page is not in " + looked + kHow}});
}

std::string one_file_page(const char* command, const std::string& given) {
  const fs::path file = fs::path(page_folder(command, given)) / "lesson.html";
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored))
    throw IoError(command, {{"--web", file.string() + ": no such file" + kHow}});
  return read_file(file.string());
}

}  // namespace glasshead::cli
