// The built page in memory: what stands in its folder when the server starts is all that can be
// asked for by a path, so no path reaches the file system.
#pragma once

#include <map>
#include <string>

namespace glasshead::server {

struct Asset {
  std::string type;  // "text/html; charset=utf-8"
  std::string bytes;
};

// "/index.html" and "/" -> the page. Links to files elsewhere are left out. Throws IoError: no page
// there, unreadable, or far larger than a page is.
std::map<std::string, Asset> read_assets(const std::string& folder);

}  // namespace glasshead::server
