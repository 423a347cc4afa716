// Reading a model's files for a command: what is wrong with them is said in the command's name, not
// in that of the library's function.
#pragma once

#include <string>

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

// Runs `work`; an Error of it becomes one of `command`.
template <class Work>
auto in_name_of(const char* command, const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::io) throw IoError(command, error.problems());
    if (error.kind() == ErrorKind::format) throw FormatError(command, error.problems());
    throw OptionError(command, error.problems());
  }
}

inline Model load_model(const char* command, const std::string& path,
                        const ModelOptions& options = {}) {
  return in_name_of(command, [&] { return Model::load(path, options); });
}

inline Tokenizer load_words(const char* command, const std::string& path) {
  return in_name_of(command, [&] { return Tokenizer::load(path); });
}

}  // namespace glasshead::cli
