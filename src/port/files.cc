// What files beside the model hold: the ids that were read, and names.
#include <cmath>

#include <fmt/format.h>

#include "base/fail.h"
#include "glasshead/port.h"
#include "port/names.h"

namespace glasshead {
namespace {

constexpr index_t kMostIds = index_t{1} << 24;
constexpr double kLargestId = 0x1p53;

void take(const NamedTensors& activations, std::initializer_list<const char*> names,
          std::vector<index_t>& to, std::vector<Problem>& problems) {
  for (const char* name : names)
    for (const auto& [key, tensor] : activations) {
      if (key != name) continue;
      index_t longest = 1;
      for (const index_t n : tensor.shape) longest = std::max(longest, n);
      if (tensor.size() != longest || tensor.size() > kMostIds) {
        problems.push_back({key, "has several rows; the ids of one text are needed"});
        return;
      }
      std::vector<index_t> ids;
      for (index_t n = 0; n < tensor.size(); ++n) {
        const double x = tensor.load(n);
        if (!(std::fabs(x) < kLargestId) || x != std::floor(x)) {
          problems.push_back({key, fmt::format("number {} is no whole number", n)});
          return;
        }
        ids.push_back(static_cast<index_t>(x));
      }
      if (!to.empty() && to != ids)
        problems.push_back({key, "the activations are of other ids than those given"});
      to = std::move(ids);
      return;
    }
}

}  // namespace

PortText text_of(const NamedTensors& activations, PortText text) {
  std::vector<Problem> problems;
  take(activations, {"ids", "input_ids"}, text.ids, problems);
  take(activations, {"types", "token_type_ids"}, text.segments, problems);
  take(activations, {"decoder_ids", "decoder_input_ids"}, text.decoder_ids, problems);
  if (!problems.empty()) fail(ErrorKind::format, "text_of", std::move(problems));
  return text;
}

std::vector<std::pair<std::string, std::string>> read_port_names(const std::string& path) {
  port::Names names;
  const std::string problem = port::parse_names(read_bytes(path), names);
  if (!problem.empty()) fail(ErrorKind::format, "read_port_names", path, problem);
  return names;
}

}  // namespace glasshead
