#include "model/catalog/sentence.h"

#include <algorithm>
#include <span>

namespace glasshead::model {
namespace {

using formats::Config;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A folder's own name: letters, digits, _ and -.
bool is_plain(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  });
}

std::string last_word(const std::string& type) { return type.substr(type.rfind('.') + 1); }

void add(Fields& fields, const std::string& where, const std::vector<Problem>& problems) {
  for (const Problem& problem : problems)
    fields.problem_in(where + ": " + problem.where, problem.what);
}

void read_pooling(Fields& fields, const std::string& folder, Description& out) {
  if (!is_plain(folder)) {
    fields.problem_in("modules.json", "the pooling's path must be a folder beside it");
    return;
  }
  const std::string file = folder + "/config.json";
  const std::vector<std::byte> bytes = fields.files().beside(file);
  Config config;
  std::vector<Problem> problems;
  if (bytes.empty()) {
    fields.problem_in(file, "is not there; modules.json says that the pooling is described there");
    return;
  }
  if (!formats::parse_config(text_of(bytes), config, problems)) return add(fields, file, problems);
  formats::Reader reader(config, problems);
  const bool is_mean = reader.flag_or("pooling_mode_mean_tokens", false);
  const bool is_first = reader.flag_or("pooling_mode_cls_token", false);
  bool is_other = false;
  for (const char* mode : {"pooling_mode_max_tokens", "pooling_mode_mean_sqrt_len_tokens",
                           "pooling_mode_weightedmean_tokens", "pooling_mode_lasttoken"})
    is_other = reader.flag_or(mode, false) || is_other;
  add(fields, file, problems);
  if (is_other || is_mean == is_first)
    fields.problem_in(file,
                      "must pool by the mean alone, or by the first token alone: other ways are "
                      "not built");
  out.pooling = is_mean ? Pooling::mean : Pooling::first;
}

}  // namespace

void read_sentence_modules(Fields& fields, Description& out) {
  if (fields.is_gguf() || fields.files().path().empty()) return;
  const std::vector<std::byte> bytes = fields.files().beside("modules.json");
  if (bytes.empty()) return;
  Config config;
  std::vector<Problem> problems;
  // A list: an object is put around it.
  const std::string whole = "{\"modules\": " + std::string(text_of(bytes)) + "}";
  if (!formats::parse_config(whole, config, problems)) return add(fields, "modules.json", problems);
  const formats::ConfigValue* modules = formats::find(config, "modules");
  const auto* list = modules == nullptr ? nullptr : std::get_if<formats::ConfigList>(&modules->is);
  if (list == nullptr) return fields.problem_in("modules.json", "must be a list");
  for (const formats::ConfigValue& value : *list) {
    const auto* module = std::get_if<formats::ConfigObject>(&value.is);
    if (module == nullptr) return fields.problem_in("modules.json", "must be a list of objects");
    formats::Reader reader(*module, problems);
    const std::string type = last_word(reader.text_or("type", ""));
    if (type == "Pooling")
      read_pooling(fields, reader.text_or("path", ""), out);
    else if (type == "Normalize")
      out.normalises_pooled = true;
    else if (type != "Transformer")
      fields.problem_in(
          "modules.json",
          "has a module that is not built; must be Transformer, Pooling or Normalize");
  }
  add(fields, "modules.json", problems);
}

}  // namespace glasshead::model
