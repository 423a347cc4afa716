// A model's configuration: config.json as it is, or a GGUF's metadata, read through one interface.
//
//   Reader config(files.config(), problems);
//   config.whole("num_hidden_layers")                           // required: a problem if absent
//   config.number_or("rope_theta", 1e4)                         // with the family's default
//   config.whole("llama.attention.head_count")                  // GGUF keys hold their dots
//
// A path goes into objects by '/': "rope_parameters/full_attention/rope_theta". Every value is
// checked where it is asked for: a wrong type or range is a problem that names the key, what was
// found and what would be right.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "glasshead/error.h"
#include "glasshead/tensor.h"

namespace glasshead::formats {

struct ConfigValue;
using ConfigList = std::vector<ConfigValue>;
using ConfigObject =
    std::vector<std::pair<std::string, ConfigValue>>;  // in file order, no key twice
struct ConfigValue {
  std::variant<std::monostate, bool, std::int64_t, double, std::string, ConfigList, ConfigObject>
      is;
};
using Config = ConfigObject;

// null: absent. JSON's null counts as absent.
const ConfigValue* find(const Config& config, std::string_view path);

class Reader {
 public:
  Reader(const Config& config, std::vector<Problem>& problems)
      : config_(config), problems_(problems) {}

  bool has(std::string_view path) const;
  index_t whole(std::string_view path);  // a whole number >= 0, required
  index_t whole_or(std::string_view path, index_t otherwise);
  double number(std::string_view path);  // finite; whole numbers too
  double number_or(std::string_view path, double otherwise);
  bool flag_or(std::string_view path, bool otherwise);
  std::string text(std::string_view path);
  std::string text_or(std::string_view path, std::string_view otherwise);
  std::vector<double> numbers_or(std::string_view path, std::vector<double> otherwise);
  std::vector<index_t> wholes_or(std::string_view path, std::vector<index_t> otherwise);
  std::vector<std::string> texts_or(std::string_view path, std::vector<std::string> otherwise);

 private:
  const Config& config_;
  std::vector<Problem>& problems_;
};

}  // namespace glasshead::formats
