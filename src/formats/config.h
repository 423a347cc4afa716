// A model's configuration: config.json as it is, or a GGUF's metadata, read through one interface.
//
//   Reader config(files.config(), problems);
//   config.whole("num_hidden_layers")                           // required: a problem if absent
//   config.number_or("rope_theta", 1e4)                         // with the family's default
//   config.whole("llama.attention.head_count")                  // GGUF keys hold their dots
//
// A path goes into objects by '/': "rope_parameters/full_attention/rope_theta". Every value is
// checked where it is asked for: a wrong type or range is a problem that names the key, what was
// found and what would be right, and the value given is then 0, "" or the one for an absent key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/stored.h"
#include "glasshead/error.h"
#include "glasshead/tensor.h"

namespace glasshead::formats {

struct ConfigValue;
using ConfigList = std::vector<ConfigValue>;
struct ConfigEntry;
using ConfigObject = std::vector<ConfigEntry>;  // in file order, no key twice
// A GGUF's array of numbers or booleans as it is stored, since a byte must not grow to a
// ConfigValue: f64, f32, i64 to u8, or boolean (0 and 1 only).
struct ConfigNumbers {
  Stored type = Stored::f32;
  std::vector<std::byte> bytes;
};
using ConfigTexts = std::vector<std::string>;  // a GGUF's array of strings: a vocabulary
struct ConfigValue {
  // A whole number beyond 63 bits is a double: the nearest.
  std::variant<std::monostate, bool, std::int64_t, double, std::string, ConfigList, ConfigObject,
               ConfigNumbers, ConfigTexts>
      is;
};
struct ConfigEntry {
  std::string key;
  ConfigValue value;
};
using Config = ConfigObject;

// One of the three kinds of list, which Reader reads alike.
bool is_list(const ConfigValue& value);
// Number or boolean n of a list as a value of its own.
ConfigValue value_at(const ConfigNumbers& numbers, std::size_t n);

// False, and what is wrong, if `text` is not one JSON object in UTF-8: no key twice in an object,
// nested at most 32 deep, at most 1,000,000 values, numbers within the range of a double (NaN and
// Infinity, which Python's json writes, are not JSON).
bool parse_config(std::string_view text, Config& out, std::vector<Problem>& problems);

// null: absent. JSON's null counts as absent.
const ConfigValue* find(const Config& config, std::string_view path);

class Reader {
 public:
  Reader(const Config& config, std::vector<Problem>& problems)
      : config_(config), problems_(problems) {}

  bool has(std::string_view path) const;
  index_t whole(std::string_view path);  // a whole number >= 0 ("12.0" is one), required
  index_t whole_or(std::string_view path, index_t otherwise);
  double number(std::string_view path);  // finite; whole numbers too
  double number_or(std::string_view path, double otherwise);
  bool flag_or(std::string_view path, bool otherwise);
  std::string text(std::string_view path);
  std::string text_or(std::string_view path, std::string_view otherwise);
  // Lists; a single value counts as a list of one.
  std::vector<double> numbers_or(std::string_view path, std::vector<double> otherwise);
  std::vector<index_t> wholes_or(std::string_view path, std::vector<index_t> otherwise);
  std::vector<std::string> texts_or(std::string_view path, std::vector<std::string> otherwise);

 private:
  const Config& config_;
  std::vector<Problem>& problems_;
};

}  // namespace glasshead::formats
