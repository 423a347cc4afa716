#include "cli/words_vocabulary.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/model_files.h"
#include "cli/values.h"
#include "glasshead/error.h"

namespace glasshead::cli {
namespace {

bool is_id(const std::string& given) { return given.starts_with('#'); }

}  // namespace

Vocabulary::Vocabulary(const Model& model, const std::vector<std::string>& given) : model_(model) {
  if (!std::all_of(given.begin(), given.end(), is_id)) {
    words_ = load_words(model.path(), "a token by its id needs none: #123");
    return;
  }
  try {
    words_ = Tokenizer::load(model.path());
  } catch (const Error&) {  // tokens are shown as ids
  }
}

// None where the vocabulary cannot spell it: one of SMILES has no space, others have an unknown
// token.
std::vector<index_t> Vocabulary::pieces(const std::string& text) const {
  try {
    std::vector<index_t> ids = words_->encode(text, false).ids;
    const auto is_unknown = [&](index_t id) { return words_->unk() == id; };
    if (std::none_of(ids.begin(), ids.end(), is_unknown)) return ids;
  } catch (const OptionError&) {
  }
  return {};
}

Word Vocabulary::find(const std::string& flag, const std::string& given,
                      std::vector<Problem>& problems) const {
  Word word;
  word.given = given;
  if (is_id(given)) {
    const std::optional<index_t> id = parse_integer(given.substr(1));
    if (id && *id >= 0 && *id < model_.vocab())
      word.ids = {*id};
    else
      problems.push_back(
          {flag, fmt::format("{}: # and a token id from 0 to {}", given, model_.vocab() - 1)});
    return word;
  }
  if (given.empty()) {
    problems.push_back({flag, "an empty word"});
    return word;
  }
  const std::vector<index_t> inside = pieces(" " + given), bare = pieces(given);
  const bool is_bare = inside.size() != 1 && bare.size() == 1;
  word.ids = is_bare || inside.empty() ? bare : inside;
  const std::vector<index_t>& other = is_bare ? inside : bare;
  if (word.ids.size() == 1 && other.size() == 1 && other != word.ids) word.twins = other;
  if (word.ids.empty())
    problems.push_back({flag, given + ": not a word of this model's vocabulary"});
  return word;
}

std::string Vocabulary::token(index_t id) const {
  if (!words_ || id >= words_->size()) return fmt::format("#{}", id);
  return words_->token(id);
}

std::string Vocabulary::describe(const Word& word) const {
  std::string text;
  for (const index_t id : word.ids)
    text += (text.empty() ? "" : " ") +
            (words_ ? fmt::format("{} #{}", token(id), id) : fmt::format("#{}", id));
  if (word.ids.size() > 1) return fmt::format("the mean of {} tokens: {}", word.ids.size(), text);
  for (const index_t id : word.twins)
    text += fmt::format(" (the same word is also {} #{})", token(id), id);
  return text;
}

}  // namespace glasshead::cli
