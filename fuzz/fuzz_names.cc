// Any bytes as the names of a port's file: refused with a reason, or names, each of ours once, that
// are the same when they are written down and read again. With a layer's number no hole is left.
#include <cstdint>
#include <cstdlib>
#include <set>

#include <nlohmann/json.hpp>

#include "port/names.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace glasshead;
  port::Names names, again;
  const std::string problem =
      port::parse_names({reinterpret_cast<const std::byte*>(data), size}, names);
  if (!problem.empty()) {
    if (!names.empty()) std::abort();
    return 0;
  }
  std::set<std::string> ours;
  auto written = nlohmann::ordered_json::object();
  for (const auto& [one, theirs] : names) {
    if (!ours.insert(one).second) std::abort();
    for (const std::string& pattern : {one, theirs}) {
      const std::string name = port::filled(pattern, 12);
      if (port::has_hole(name) || (!port::has_hole(pattern) && name != pattern)) std::abort();
    }
    written.push_back({one, theirs});
  }
  const std::string text = written.dump();
  if (!port::parse_names(std::as_bytes(std::span(text)), again).empty() || again != names)
    std::abort();
  return 0;
}
