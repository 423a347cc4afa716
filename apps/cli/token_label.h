// What a token is called where people read it.
#pragma once

#include <optional>
#include <string>

#include "glasshead/tokenizer.h"

namespace glasshead::cli {

// As the vocabulary spells it, with its marks ("Ġthe", "▁the": a space in front; "##ing": goes on a
// word), so that "the" and " the" are told apart; but letters that it spells by their bytes
// ("grÃ¶ÃŁe") as letters ("größe"). Its number without a vocabulary.
std::string token_label(const std::optional<Tokenizer>& words, index_t id);

}  // namespace glasshead::cli
