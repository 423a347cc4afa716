// What files beside the model hold: the ids that were read, and names.
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "glasshead/port.h"

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

// Strings by name, in the text's order. Nesting ends the reading: nothing recurses.
class Names : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::vector<std::pair<std::string, std::string>> found;
  std::string problem;

  bool null() override { return stop(); }
  bool boolean(bool) override { return stop(); }
  bool number_integer(std::int64_t) override { return stop(); }
  bool number_unsigned(std::uint64_t) override { return stop(); }
  bool number_float(double, const std::string&) override { return stop(); }
  bool binary(nlohmann::json::binary_t&) override { return stop(); }
  bool string(std::string& text) override {
    if (!is_open_) return stop();
    found.back().second = text;
    return true;
  }
  bool start_object(std::size_t) override {
    if (is_open_) return stop();
    return is_open_ = true;
  }
  bool key(std::string& text) override {
    for (const auto& [ours, theirs] : found)
      if (ours == text) {
        problem = text + ": named twice";
        return false;
      }
    found.emplace_back(text, "");
    return true;
  }
  bool end_object() override { return true; }
  bool start_array(std::size_t) override { return stop(); }
  bool end_array() override { return stop(); }
  bool parse_error(std::size_t at, const std::string&, const nlohmann::json::exception&) override {
    problem = fmt::format("not JSON, at byte {}", at);
    return false;
  }

 private:
  bool stop() {
    problem = (found.empty() ? std::string("its text") : found.back().first) +
              ": an object of names is needed, {\"ours\": \"theirs\"}";
    return false;
  }
  bool is_open_ = false;
};

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
  const std::vector<std::byte> bytes = read_bytes(path);
  Names names;
  const char* const begin = reinterpret_cast<const char*>(bytes.data());
  if (!nlohmann::json::sax_parse(begin, begin + bytes.size(), &names))
    fail(ErrorKind::format, "read_port_names", path, names.problem);
  return std::move(names.found);
}

}  // namespace glasshead
