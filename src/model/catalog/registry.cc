#include <cctype>

#include <fmt/format.h>

#include "model/catalog/family.h"
#include "model/catalog/fields.h"
#include "model/catalog/sentence.h"

namespace glasshead::model {
namespace {

constexpr const Family* kFamilies[] = {&kLlama, &kMistral, &kSmolLm3,    &kGpt2,   &kQwen2,
                                       &kQwen3, &kGemma,   &kGemma2,     &kGemma3, &kPhi3,
                                       &kBert,  &kRoberta, &kDistilBert, &kAlbert, &kT5};

bool is_among(std::span<const char* const> words, std::string_view word) {
  for (const char* one : words)
    if (word == one) return true;
  return false;
}

// "Llama" of LlamaForCausalLM, LlamaModel, GPT2LMHeadModel, T5EncoderModel.
std::string class_stem(std::string_view name) {
  for (const char* end : {"For", "LMHead", "EncoderModel", "Model"})
    if (const std::size_t at = name.find(end); at != std::string_view::npos)
      return std::string(name.substr(0, at));
  return std::string(name);
}

std::string known(bool is_gguf) {
  std::string text;
  for (const Family* family : kFamilies)
    for (const char* word : is_gguf ? family->gguf : family->model_types)
      text += (text.empty() ? "" : ", ") + std::string(word);
  return text;
}

std::string cut(const std::string& text) { return text.size() > 60 ? text.substr(0, 60) : text; }

std::string first_text(const formats::Config& config, std::string_view path,
                       std::vector<Problem>& problems) {
  const std::vector<std::string> texts = formats::Reader(config, problems).texts_or(path, {});
  return texts.empty() ? "" : texts[0];
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

std::span<const Family* const> families() { return kFamilies; }

const Family* family_of(const formats::Checkpoint& files, std::vector<Problem>& problems) {
  const formats::Config& config = files.config();
  const bool is_gguf = files.format() == formats::CheckpointFormat::gguf;
  const std::size_t before = problems.size();
  const char* field = is_gguf ? "general.architecture" : "model_type";
  const std::string type = formats::Reader(config, problems).text_or(field, "");
  const std::string made_for = is_gguf ? "" : first_text(config, "architectures", problems);
  if (problems.size() > before) return nullptr;
  for (const Family* family : kFamilies)
    if (is_among(is_gguf ? family->gguf : family->model_types, type) ||
        (type.empty() && is_among(family->classes, class_stem(made_for))))
      return family;
  const std::string found = type.empty()
                                ? "says no family"
                                : fmt::format("\"{}\" is not a family that is built", cut(type));
  problems.push_back({field, fmt::format("{}; there are {}", found, known(is_gguf))});
  return nullptr;
}

const Names& names_of(const Family& family, const formats::Checkpoint& files) {
  return files.format() == formats::CheckpointFormat::gguf ? family.gguf_names
                                                           : family.safetensors_names;
}

std::string tensor_name(std::string_view pattern, std::string_view prefix, index_t layer) {
  std::string name;
  if (pattern.starts_with('@')) {
    name = prefix;
    pattern.remove_prefix(1);
  }
  const std::size_t at = pattern.find("{}");
  if (at == std::string_view::npos) return name.append(pattern);
  return name.append(pattern.substr(0, at))
      .append(std::to_string(layer))
      .append(pattern.substr(at + 2));
}

bool is_left(std::string_view name, std::string_view pattern, std::string_view prefix) {
  if (pattern.starts_with('@')) {
    if (!name.starts_with(prefix)) return false;
    name.remove_prefix(prefix.size());
    pattern.remove_prefix(1);
  }
  // One * at most, at an end.
  if (pattern.starts_with('*')) return name.ends_with(pattern.substr(1));
  if (pattern.ends_with('*')) return name.starts_with(pattern.substr(0, pattern.size() - 1));
  while (!pattern.empty() && !name.empty()) {
    if (pattern.starts_with("{}")) {
      if (!is_digit(name.front())) return false;
      while (!name.empty() && is_digit(name.front())) name.remove_prefix(1);
      pattern.remove_prefix(2);
    } else {
      if (pattern.front() != name.front()) return false;
      pattern.remove_prefix(1);
      name.remove_prefix(1);
    }
  }
  return pattern.empty() && name.empty();
}

const char* prefix_of(const Names& names, const formats::Checkpoint& files) {
  for (const NameRule& rule : names.rules)
    if (rule.slot == Slot::tokens)
      for (const char* prefix : names.prefixes)
        if (files.find(tensor_name(rule.pattern, prefix, 0) + ".weight") != nullptr) return prefix;
  return names.prefixes.empty() ? "" : names.prefixes[0];
}

bool describe(const formats::Checkpoint& files, const LoadOptions& options, Description& out,
              std::vector<Problem>& problems) {
  out = {};
  const Family* family = family_of(files, problems);
  if (family == nullptr) return false;
  out.family = family->name;
  Fields fields(files, options, problems);
  refuse_what_is_not_built(fields);
  read_ids(fields, out);
  const bool is_nested = fields.has({"text_config"});
  family->describe(fields, out);
  if (is_nested) {  // the same of the object that the text's model is described in
    refuse_what_is_not_built(fields);
    read_ids(fields, out);
  }
  if (out.kind == Kind::encoder) read_sentence_modules(fields, out);
  if (fields.is_fine() && out.vocab == 0)  // GGUF: read off the token table, which isn't there
    problems.push_back({"token_embd.weight", "missing: the vocabulary's size is read off it"});
  return fields.is_fine();
}

}  // namespace glasshead::model
