#include "wasm/request.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include "wire/case_reader.h"

namespace glasshead::wasm {
namespace {

using wire::JsonKind;
using wire::JsonValue;

bool is_whole(std::string_view text) {  // as JSON writes one: "2.0" and "1e3" are none
  return text.find_first_not_of("-0123456789") == std::string_view::npos;
}

// None also where it is beyond index_t.
std::optional<index_t> whole_number(std::string_view text) {
  const bool is_negative = text.starts_with('-');
  if (is_negative) text.remove_prefix(1);
  constexpr index_t kMost = std::numeric_limits<index_t>::max();
  index_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    if (value > (kMost - (c - '0')) / 10) return std::nullopt;
    value = 10 * value + (c - '0');
  }
  return is_negative ? -value : value;
}

}  // namespace

JsonValue Request::find(const char* key) {
  asked_.emplace_back(key);
  return json_.find(key);
}

std::optional<std::string> Request::text(const char* key) {
  const JsonValue found = find(key);
  if (!found) return std::nullopt;
  if (found.is(JsonKind::string)) return std::string(found.text());
  problem(key, "not a text");
  return std::nullopt;
}

std::string Request::text(const char* key, const char* otherwise) {
  return text(key).value_or(otherwise);
}

std::string Request::typed(const char* key) {
  const JsonValue found = find(key);
  if (!found) return {};
  if (found.is(JsonKind::string) || found.is(JsonKind::number) || found.is(JsonKind::boolean))
    return std::string(found.text());
  problem(key, wire::describe(found) + "; a text, a number, true or false is needed");
  return {};
}

index_t Request::integer(const char* key, index_t otherwise, index_t least, index_t most) {
  const JsonValue found = find(key);
  if (!found) return otherwise;
  std::optional<index_t> value;
  if (found.is(JsonKind::number)) value = whole_number(found.text());
  if (!value && !(found.is(JsonKind::number) && is_whole(found.text())))
    problem(key, "not a whole number");
  else if (!value || *value < least || *value > most)
    problem(key, wire::excerpt(found.text()) + "; " + std::to_string(least) + " to " +
                     std::to_string(most) + " are possible");
  else
    return *value;
  return otherwise;
}

std::vector<index_t> Request::integers(const char* key) {
  std::vector<index_t> numbers;
  const JsonValue found = list(key);
  if (!found) return numbers;
  for (JsonValue entry = found.first(); entry; entry = entry.next()) {
    std::optional<index_t> value;
    if (entry.is(JsonKind::number)) value = whole_number(entry.text());
    if (!value || *value < 0 || *value > wire::kMostExtent) {
      problem(key, "not a list of numbers counted from 0");
      return {};
    }
    numbers.push_back(*value);
  }
  return numbers;
}

JsonValue Request::object(const char* key) {
  const JsonValue found = find(key);
  if (!found || found.is(JsonKind::object)) return found;
  problem(key, "not an object");
  return {};
}

JsonValue Request::list(const char* key) {
  const JsonValue found = find(key);
  if (!found || found.is(JsonKind::array)) return found;
  problem(key, "not a list");
  return {};
}

void Request::refuse_others() {
  std::vector<std::string> seen;
  for (JsonValue field = json_.first(); field; field = field.next()) {
    std::string key(field.key());
    const auto is_in = [&key](const std::vector<std::string>& keys) {
      return std::find(keys.begin(), keys.end(), key) != keys.end();
    };
    if (!is_in(asked_)) problem(key, "no such field in this call");
    if (is_in(seen)) problem(key, "given twice");
    seen.push_back(std::move(key));
  }
}

namespace {

std::optional<wire::Edit::Set> read_set(JsonValue json, const std::string& path,
                                        Problems& problems) {
  if (!json.is(JsonKind::object)) {
    problems.push_back({path, "not an object"});
    return std::nullopt;
  }
  Request fields(json, problems, path);
  wire::Edit::Set set;
  set.matrix = fields.text("matrix", "");
  set.is_by_index = true;
  for (const index_t n : fields.integers("at")) set.at.push_back(std::to_string(n));
  const std::string text = fields.text("to", "");
  fields.refuse_others();
  const std::optional<double> value = wire::finite_number(text);
  if (!value) {
    std::string place = set.matrix;
    for (const std::string& n : set.at) place += "." + n;
    problems.push_back({place, "\"" + text + "\" is not a finite number"});
    return std::nullopt;
  }
  set.values = {*value};
  set.texts = {text};
  return set;
}

}  // namespace

wire::Edit read_edit(JsonValue json, const std::string& path, Problems& problems) {
  wire::Edit edit;
  if (!json) return edit;
  Request fields(json, problems, path);
  if (const JsonValue list = fields.list("set")) {
    for (JsonValue entry = list.first(); entry; entry = entry.next())
      if (auto set = read_set(entry, fields.at("set"), problems))
        edit.set.push_back(std::move(*set));
  }
  edit.hide_keys = fields.integers("hide");
  edit.mask = fields.text("mask");
  if (const std::optional<std::string> scale = fields.text("scale")) {
    edit.scale = wire::finite_number(*scale);
    if (!edit.scale) problems.push_back({"scale", "\"" + *scale + "\" is not a finite number"});
  }
  if (const std::optional<std::string> rule = fields.text("empty_row")) {
    if (*rule == "zero" || *rule == "error")
      edit.empty_row = *rule == "zero" ? EmptyRow::zero : EmptyRow::error;
    else
      problems.push_back({fields.at("empty_row"), "\"" + *rule + "\" is neither error nor zero"});
  }
  fields.refuse_others();
  return edit;
}

}  // namespace glasshead::wasm
