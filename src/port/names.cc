#include "port/names.h"

#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace glasshead::port {
namespace {

// Strings by name, in the text's order. Nesting ends the reading: nothing recurses.
class Reading : public nlohmann::json_sax<nlohmann::json> {
 public:
  Names found;
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
    if (!ours_.insert(text).second) {
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
  std::set<std::string> ours_;
};

}  // namespace

std::string parse_names(std::span<const std::byte> bytes, Names& names) {
  Reading reading;
  const char* const begin = reinterpret_cast<const char*>(bytes.data());
  if (!nlohmann::json::sax_parse(begin, begin + bytes.size(), &reading)) return reading.problem;
  names = std::move(reading.found);
  return "";
}

bool has_hole(const std::string& pattern) {
  return pattern.find("{}") != std::string::npos || pattern.find('*') != std::string::npos;
}

std::string filled(const std::string& pattern, index_t layer) {
  const std::string number = std::to_string(layer);
  std::string name;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    const bool is_pair = pattern.compare(at, 2, "{}") == 0;
    if (is_pair || pattern[at] == '*')
      name += number;
    else
      name += pattern[at];
    at += is_pair ? 1 : 0;
  }
  return name;
}

}  // namespace glasshead::port
