// The argument MODEL, and a text in the words of the model's vocabulary.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "glasshead/error.h"
#include "glasshead/model.h"
#include "glasshead/tokenizer.h"

namespace glasshead::cli {

// The argument MODEL.
inline void add_model(CLI::App& command, std::string& path) {
  command
      .add_option("model", path, "A directory with config.json and .safetensors, or a .gguf file")
      ->required()
      ->type_name("MODEL");
}

// --context, which is ModelOptions::context.
inline void add_context(CLI::App& command, std::string& context) {
  command
      .add_option("--context", context,
                  "How many tokens the text may grow to, for models whose positions depend on it "
                  "(Phi-3's long form)")
      ->type_name("N");
}

// The vocabulary beside the model. Where there is none that can be read it is said what needs none.
inline Tokenizer load_words(const std::string& path,
                            const char* needs_none = "token ids need none: give --tokens 1,2,3") {
  try {
    return Tokenizer::load(path);
  } catch (const Error& error) {
    std::vector<Problem> problems = error.problems();
    problems.back().what += std::string("; ") + needs_none;
    throw Error(error.kind(), error.function(), std::move(problems));
  }
}

// The ids of the text that `flag` was given.
inline std::vector<index_t> ids_of(const Tokenizer& words, const char* flag,
                                   const std::string& text) {
  try {
    return words.encode(text).ids;
  } catch (const OptionError& error) {
    std::vector<Problem> problems = error.problems();
    for (Problem& problem : problems) problem.where = flag;
    throw OptionError(error.function(), std::move(problems));
  }
}

}  // namespace glasshead::cli
