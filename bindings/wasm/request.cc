#include "wasm/request.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "wire/case_reader.h"

namespace glasshead::wasm {

const Json* Request::find(const char* key) {
  asked_.emplace_back(key);
  const auto found = json_.find(key);
  return found == json_.end() ? nullptr : &*found;
}

std::optional<std::string> Request::text(const char* key) {
  const Json* found = find(key);
  if (found == nullptr) return std::nullopt;
  if (found->is_string()) return found->get<std::string>();
  problem(key, "not a text");
  return std::nullopt;
}

std::string Request::text(const char* key, const char* otherwise) {
  return text(key).value_or(otherwise);
}

index_t Request::integer(const char* key, index_t otherwise, index_t least, index_t most) {
  const Json* found = find(key);
  if (found == nullptr) return otherwise;
  const bool is_beyond =
      found->is_number_unsigned() && found->get<std::uint64_t>() > static_cast<std::uint64_t>(most);
  if (!found->is_number_integer()) {
    problem(key, "not a whole number");
  } else if (is_beyond || found->get<index_t>() < least || found->get<index_t>() > most) {
    problem(key, found->dump() + "; " + std::to_string(least) + " to " + std::to_string(most) +
                     " are possible");
  } else {
    return found->get<index_t>();
  }
  return otherwise;
}

std::vector<index_t> Request::integers(const char* key) {
  std::vector<index_t> numbers;
  const Json* found = list(key);
  if (found == nullptr) return numbers;
  for (const Json& entry : *found) {
    const bool is_index =
        entry.is_number_unsigned() &&
        entry.get<std::uint64_t>() <= static_cast<std::uint64_t>(wire::kMostExtent);
    if (!is_index) {
      problem(key, "not a list of numbers counted from 0");
      return {};
    }
    numbers.push_back(entry.get<index_t>());
  }
  return numbers;
}

const Json* Request::object(const char* key) {
  const Json* found = find(key);
  if (found == nullptr || found->is_object()) return found;
  problem(key, "not an object");
  return nullptr;
}

const Json* Request::list(const char* key) {
  const Json* found = find(key);
  if (found == nullptr || found->is_array()) return found;
  problem(key, "not a list");
  return nullptr;
}

void Request::refuse_others() {
  for (const auto& [key, value] : json_.items()) {
    if (std::find(asked_.begin(), asked_.end(), key) == asked_.end())
      problem(key.c_str(), "no such field in this call");
  }
}

namespace {

std::optional<wire::Edit::Set> read_set(const Json& json, const std::string& path,
                                        Problems& problems) {
  if (!json.is_object()) {
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

wire::Edit read_edit(const Json* json, const std::string& path, Problems& problems) {
  wire::Edit edit;
  if (json == nullptr) return edit;
  Request fields(*json, problems, path);
  if (const Json* list = fields.list("set")) {
    for (const Json& entry : *list)
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

std::optional<ReadCase> read_case(Request& request) {
  Problems& problems = request.problems();
  const std::string text = request.text("case", ""), name = request.text("name", "case");
  const wire::Edit edit = read_edit(request.object("edit"), "edit", problems);
  request.refuse_others();
  if (!problems.empty()) return std::nullopt;
  std::optional<wire::Case> original = wire::parse_case(text, name, problems);
  if (!original || !problems.empty()) return std::nullopt;
  if (edit.is_empty()) return ReadCase{*original, *original};
  std::optional<wire::Case> edited = wire::edit_case(*original, edit, problems);
  if (!edited || !problems.empty()) return std::nullopt;
  return ReadCase{std::move(*original), std::move(*edited)};
}

}  // namespace glasshead::wasm
