#include "formats/config.h"

#include <cmath>
#include <cstring>
#include <optional>

#include "formats/shown.h"

namespace glasshead::formats {
namespace {

constexpr double kWholeBelow = 0x1p53;  // doubles below it that are whole are exact

// A list's name for messages: "a list of 3".
std::string list_of(std::size_t count) { return "a list of " + std::to_string(count); }

// What was found, for messages.
std::string found(const ConfigValue& value) {
  if (const auto* flag = std::get_if<bool>(&value.is)) return *flag ? "true" : "false";
  if (const auto* whole = std::get_if<std::int64_t>(&value.is)) return std::to_string(*whole);
  if (const auto* number = std::get_if<double>(&value.is)) {
    if (std::isnan(*number)) return "NaN";
    if (std::isinf(*number)) return *number > 0 ? "infinity" : "-infinity";
    const bool is_whole = std::trunc(*number) == *number;
    return is_whole && std::fabs(*number) < kWholeBelow
               ? std::to_string(static_cast<std::int64_t>(*number))
           : is_whole ? "a number beyond 2^53"
                      : "a number that is not whole";
  }
  if (const auto* text = std::get_if<std::string>(&value.is)) return "the text " + shown(*text);
  if (const auto* list = std::get_if<ConfigList>(&value.is)) return list_of(list->size());
  if (const auto* texts = std::get_if<ConfigTexts>(&value.is)) return list_of(texts->size());
  if (const auto* numbers = std::get_if<ConfigNumbers>(&value.is))
    return list_of(numbers->bytes.size() / static_cast<std::size_t>(block_bytes(numbers->type)));
  return std::holds_alternative<ConfigObject>(value.is) ? "an object" : "null";
}

template <class T>
T element(const ConfigNumbers& numbers, std::size_t n) {
  T value;
  std::memcpy(&value, numbers.bytes.data() + n * sizeof value, sizeof value);
  return value;
}

ConfigValue unsigned_value(std::uint64_t value) {
  if (value <= static_cast<std::uint64_t>(INT64_MAX)) return {static_cast<std::int64_t>(value)};
  return {static_cast<double>(value)};
}

std::optional<index_t> whole_of(const ConfigValue& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value.is))
    return *whole >= 0 ? std::optional<index_t>(*whole) : std::nullopt;
  if (const auto* number = std::get_if<double>(&value.is))
    if (*number >= 0 && *number < kWholeBelow && std::trunc(*number) == *number)
      return static_cast<index_t>(*number);
  return std::nullopt;
}

std::optional<double> number_of(const ConfigValue& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value.is)) return static_cast<double>(*whole);
  if (const auto* number = std::get_if<double>(&value.is))
    if (std::isfinite(*number)) return *number;
  return std::nullopt;
}

std::optional<std::string> text_of(const ConfigValue& value) {
  if (const auto* text = std::get_if<std::string>(&value.is)) return *text;
  return std::nullopt;
}

constexpr const char* kWhole = "a whole number, 0 or more,";
constexpr const char* kNumber = "a finite number";
constexpr const char* kFlag = "true or false";
constexpr const char* kText = "a text";

// One list element after another as T; false, and a problem, at the first that is none.
template <class T, class Convert>
bool collect(std::string_view path, const ConfigValue& value, const char* needed, Convert convert,
             std::vector<T>& out, std::vector<Problem>& problems) {
  const auto take = [&](const ConfigValue& one) {
    std::optional<T> converted = convert(one);
    if (converted) {
      out.push_back(std::move(*converted));
      return true;
    }
    const std::string at = is_list(value) ? "[" + std::to_string(out.size()) + "]" : std::string();
    problems.push_back({std::string(path) + at, "is " + found(one) + "; " + needed + " is needed"});
    return false;
  };
  if (const auto* list = std::get_if<ConfigList>(&value.is)) {
    for (const ConfigValue& one : *list)
      if (!take(one)) return false;
    return true;
  }
  if (const auto* numbers = std::get_if<ConfigNumbers>(&value.is)) {
    const std::size_t count =
        numbers->bytes.size() / static_cast<std::size_t>(block_bytes(numbers->type));
    for (std::size_t n = 0; n < count; ++n)
      if (!take(value_at(*numbers, n))) return false;
    return true;
  }
  if (const auto* texts = std::get_if<ConfigTexts>(&value.is)) {
    for (const std::string& one : *texts)
      if (!take({one})) return false;
    return true;
  }
  return take(value);
}

template <class T, class Convert>
std::vector<T> list_or(const Config& config, std::string_view path, const char* needed,
                       Convert convert, std::vector<T> otherwise, std::vector<Problem>& problems) {
  const ConfigValue* value = find(config, path);
  if (value == nullptr) return otherwise;
  std::vector<T> list;
  return collect<T>(path, *value, needed, convert, list, problems) ? list : otherwise;
}

// nullopt, and a problem, if the value at `path` is absent or none.
template <class Convert>
auto required(const Config& config, std::string_view path, const char* needed, Convert convert,
              std::vector<Problem>& problems) -> decltype(convert(ConfigValue{})) {
  const ConfigValue* value = find(config, path);
  if (value == nullptr) {
    problems.push_back({std::string(path), std::string("is missing; ") + needed + " is needed"});
    return std::nullopt;
  }
  auto converted = convert(*value);
  if (!converted)
    problems.push_back({std::string(path), "is " + found(*value) + "; " + needed + " is needed"});
  return converted;
}

}  // namespace

bool is_list(const ConfigValue& value) {
  return std::holds_alternative<ConfigList>(value.is) ||
         std::holds_alternative<ConfigNumbers>(value.is) ||
         std::holds_alternative<ConfigTexts>(value.is);
}

ConfigValue value_at(const ConfigNumbers& numbers, std::size_t n) {
  switch (numbers.type) {
    case Stored::f64:
      return {element<double>(numbers, n)};
    case Stored::f32:
      return {double{element<float>(numbers, n)}};
    case Stored::i64:
      return {element<std::int64_t>(numbers, n)};
    case Stored::i32:
      return {std::int64_t{element<std::int32_t>(numbers, n)}};
    case Stored::i16:
      return {std::int64_t{element<std::int16_t>(numbers, n)}};
    case Stored::i8:
      return {std::int64_t{element<std::int8_t>(numbers, n)}};
    case Stored::u64:
      return unsigned_value(element<std::uint64_t>(numbers, n));
    case Stored::u32:
      return {std::int64_t{element<std::uint32_t>(numbers, n)}};
    case Stored::u16:
      return {std::int64_t{element<std::uint16_t>(numbers, n)}};
    case Stored::u8:
      return {std::int64_t{element<std::uint8_t>(numbers, n)}};
    case Stored::boolean:
      return {element<std::uint8_t>(numbers, n) != 0};
    default:
      return {};
  }
}

const ConfigValue* find(const Config& config, std::string_view path) {
  const ConfigObject* object = &config;
  const ConfigValue* value = nullptr;
  for (;;) {
    const std::size_t slash = path.find('/');
    const std::string_view key = path.substr(0, slash);
    value = nullptr;
    for (const auto& [name, one] : *object)
      if (name == key) value = &one;
    if (value == nullptr || slash == std::string_view::npos) break;
    object = std::get_if<ConfigObject>(&value->is);
    if (object == nullptr) return nullptr;
    path.remove_prefix(slash + 1);
  }
  return value == nullptr || std::holds_alternative<std::monostate>(value->is) ? nullptr : value;
}

bool Reader::has(std::string_view path) const { return find(config_, path) != nullptr; }

index_t Reader::whole(std::string_view path) {
  return required(config_, path, kWhole, whole_of, problems_).value_or(0);
}

index_t Reader::whole_or(std::string_view path, index_t otherwise) {
  if (!has(path)) return otherwise;
  return required(config_, path, kWhole, whole_of, problems_).value_or(otherwise);
}

double Reader::number(std::string_view path) {
  return required(config_, path, kNumber, number_of, problems_).value_or(0);
}

double Reader::number_or(std::string_view path, double otherwise) {
  if (!has(path)) return otherwise;
  return required(config_, path, kNumber, number_of, problems_).value_or(otherwise);
}

bool Reader::flag_or(std::string_view path, bool otherwise) {
  const ConfigValue* value = find(config_, path);
  if (value == nullptr) return otherwise;
  if (const auto* flag = std::get_if<bool>(&value->is)) return *flag;
  problems_.push_back({std::string(path), "is " + found(*value) + "; " + kFlag + " is needed"});
  return otherwise;
}

std::string Reader::text(std::string_view path) {
  return required(config_, path, kText, text_of, problems_).value_or("");
}

std::string Reader::text_or(std::string_view path, std::string_view otherwise) {
  if (!has(path)) return std::string(otherwise);
  return required(config_, path, kText, text_of, problems_).value_or(std::string(otherwise));
}

std::vector<double> Reader::numbers_or(std::string_view path, std::vector<double> otherwise) {
  return list_or<double>(config_, path, kNumber, number_of, std::move(otherwise), problems_);
}

std::vector<index_t> Reader::wholes_or(std::string_view path, std::vector<index_t> otherwise) {
  return list_or<index_t>(config_, path, kWhole, whole_of, std::move(otherwise), problems_);
}

std::vector<std::string> Reader::texts_or(std::string_view path,
                                          std::vector<std::string> otherwise) {
  return list_or<std::string>(config_, path, kText, text_of, std::move(otherwise), problems_);
}

}  // namespace glasshead::formats
