// What `glasshead run` was asked for, read from its flags.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "glasshead/model.h"

namespace glasshead::cli {

struct RunArgs {
  std::string model;
  std::optional<std::string> prompt, chat, tokens, fill, translate;
  std::vector<std::string> embed, stop;
  std::string max_tokens = "128", temperature = "0", top_k = "0", top_p = "1", min_p = "0",
              repetition_penalty = "1", seed = "0", threads = "0", beams = "1", context = "0";
  std::vector<std::string> stop_tokens, taps;
  std::string heads, rows, out, hide;
  std::vector<std::string> cut, ablate, mean_ablate;
  bool ignores_eos = false, has_lens = false, is_json = false, is_quiet = false;
  std::vector<std::string> given;  // every flag on the command line, "--top-k"
};

// The same as values; every flag that makes no sense is among the problems.
struct RunCall {
  std::vector<index_t> ids;
  GenerateOptions generate;
  index_t beams = 1;
  int threads = 0;
  ModelOptions model;
  std::vector<Tap> taps;
  std::vector<Change> changes;
  std::vector<ReplaceHead> to_mean;  // heads whose mean over the text is still to be made
  bool has_changes() const { return !changes.empty() || !to_mean.empty(); }
  bool has_text = false;  // a text, for which the model's tokenizer is needed
};
// A problem for each flag given that says how a text is written, or how its tokens are drawn: `why`
// nobody reads it.
void refuse_writing_flags(const RunArgs& args, const std::string& why,
                          std::vector<Problem>& problems);
void refuse_drawing_flags(const RunArgs& args, const std::string& why,
                          std::vector<Problem>& problems);
// The flag that asks what the next token hangs on: "--lens", or the first of --hide, --cut,
// --ablate and --mean-ablate that was given.
const char* looking_flag(const RunArgs& args);

RunCall read_call(const RunArgs& args, std::vector<Problem>& problems);

}  // namespace glasshead::cli
