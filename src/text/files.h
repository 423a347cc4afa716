// Where a vocabulary lies in the file system.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "text/vocabulary.h"
#include "text/words.h"

namespace glasshead::text {

struct Loaded {
  std::shared_ptr<const Words> words;
  Specials specials;
  std::string chat_template;
};

// Throws IoError, FormatError, OptionError.
Loaded load_words(const std::string& path);

}  // namespace glasshead::text
