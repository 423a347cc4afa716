// Words as `glasshead words` is given them, found in a model's vocabulary.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "glasshead/error.h"
#include "glasshead/model.h"
#include "glasshead/tokenizer.h"

namespace glasshead::cli {

struct Word {
  std::string given;
  std::vector<index_t> ids;    // one token, or the pieces whose mean is taken
  std::vector<index_t> twins;  // the one token that is the same word with, or without, a space
};

class Vocabulary {
 public:
  // The tokenizer is loaded where some word is given as text; for ids alone a model needs none, and
  // its tokens are shown where they can be.
  Vocabulary(const Model& model, const std::vector<std::string>& given);

  // "#123" is a token id. A text is taken as it stands within a text, with a space before it, if
  // that is one token; else without the space, if that is one; else as its pieces. What is not in
  // the vocabulary is among the problems.
  Word find(const std::string& flag, const std::string& given,
            std::vector<Problem>& problems) const;

  std::string token(index_t id) const;           // as the vocabulary spells it; without one "#123"
  std::string describe(const Word& word) const;  // which tokens stand for it

 private:
  std::vector<index_t> pieces(const std::string& text) const;

  const Model& model_;
  std::optional<Tokenizer> words_;
};

}  // namespace glasshead::cli
