#include "server/assets.h"

#include <filesystem>
#include <string_view>
#include <utility>

#include "glasshead/error.h"
#include "glasshead/tensor_file.h"

namespace glasshead::server {
namespace {

namespace fs = std::filesystem;

// A page is a megabyte or two; a folder far beyond that was meant otherwise.
constexpr std::size_t kMostBytes = std::size_t{64} << 20;
constexpr std::size_t kMostFiles = 1000;

std::string type_of(const std::string& ending) {
  constexpr std::pair<std::string_view, const char*> kTypes[] = {
      {".html", "text/html; charset=utf-8"},
      {".js", "text/javascript; charset=utf-8"},
      {".css", "text/css; charset=utf-8"},
      {".json", "application/json"},
      {".wasm", "application/wasm"},
      {".svg", "image/svg+xml"},
      {".png", "image/png"},
      {".txt", "text/plain; charset=utf-8"}};
  for (const auto& [known, type] : kTypes)
    if (ending == known) return type;
  return "application/octet-stream";
}

}  // namespace

std::map<std::string, Asset> read_assets(const std::string& folder) {
  std::map<std::string, Asset> assets;
  std::size_t bytes = 0;
  const auto refuse = [&](const std::string& what) {
    throw IoError("view", {{"--web", folder + ": " + what}});
  };
  std::error_code error;
  fs::recursive_directory_iterator at(folder, error), end;
  if (error) refuse("cannot be read: " + error.message());
  for (; at != end; at.increment(error)) {
    if (error) refuse("cannot be read: " + error.message());
    if (at->is_symlink(error) || !at->is_regular_file(error)) continue;
    bytes += at->file_size(error);
    if (bytes > kMostBytes || assets.size() >= kMostFiles)
      refuse("holds more than a page does (more than 64 MiB, or 1000 files)");
    const std::string name = "/" + fs::relative(at->path(), folder, error).generic_string();
    const std::vector<std::byte> content = read_bytes(at->path().string());
    assets[name] = {type_of(at->path().extension().string()),
                    {reinterpret_cast<const char*>(content.data()), content.size()}};
  }
  const auto page = assets.find("/index.html");
  if (page == assets.end()) refuse("there is no index.html in it");
  const Asset index = page->second;
  assets["/"] = index;
  return assets;
}

}  // namespace glasshead::server
