// The JSON files beside a vocabulary: which tokens are special, and the template of a chat.
#include <array>
#include <utility>

#include "text/sources.h"

namespace glasshead::text {
namespace {

const std::string* as_text(const formats::ConfigValue* value) {
  return value == nullptr ? nullptr : std::get_if<std::string>(&value->is);
}

constexpr std::array<std::pair<const char*, std::optional<index_t> Specials::*>, 7> kNames = {{
    {"bos_token", &Specials::bos},
    {"eos_token", &Specials::eos},
    {"pad_token", &Specials::pad},
    {"unk_token", &Specials::unk},
    {"mask_token", &Specials::mask},
    {"cls_token", &Specials::cls},
    {"sep_token", &Specials::sep},
}};

}  // namespace

std::string token_text(const formats::Config& config, const std::string& key) {
  if (const std::string* text = as_text(formats::find(config, key))) return *text;
  if (const std::string* text = as_text(formats::find(config, key + "/content"))) return *text;
  return {};
}

void add_specials(const Beside& beside, const IdOf& id_of, index_t size, Specials& specials,
                  std::vector<Problem>& problems) {
  for (const auto& [name, field] : kNames) {
    for (const formats::Config* config : {&beside.tokenizer_config, &beside.special_tokens}) {
      const std::string text = token_text(*config, name);
      if (text.empty()) continue;
      if (const std::optional<index_t> id = id_of(text)) {
        specials.*field = id;
        break;
      }
    }
    const std::string key = std::string(name) + "_id";
    if (specials.*field || formats::find(beside.config, key) == nullptr) continue;
    // One number, or a list of which the first counts.
    formats::Reader config(beside.config, problems);
    const std::vector<index_t> ids = config.wholes_or(key, {});
    if (!ids.empty() && ids.front() < size) specials.*field = ids.front();
  }
}

std::string find_chat_template(const Beside& beside, std::vector<Problem>& problems) {
  if (!beside.chat_template.empty()) return beside.chat_template;
  const formats::ConfigValue* value = formats::find(beside.tokenizer_config, "chat_template");
  if (value == nullptr) return {};
  if (const std::string* text = as_text(value)) return *text;
  // [{"name": "default", "template": "..."}, ...]
  if (const auto* list = std::get_if<formats::ConfigList>(&value->is)) {
    for (const formats::ConfigValue& entry : *list) {
      const auto* object = std::get_if<formats::ConfigObject>(&entry.is);
      if (object == nullptr || token_text(*object, "name") != "default") continue;
      return token_text(*object, "template");
    }
    return {};
  }
  problems.push_back({"chat_template", "is neither a text nor a list of named texts"});
  return {};
}

}  // namespace glasshead::text
