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
  std::optional<std::string> tokens;
  std::string max_tokens = "128", temperature = "0", top_k = "0", top_p = "1", min_p = "0",
              repetition_penalty = "1", seed = "0", threads = "0", beams = "1";
  std::vector<std::string> stop_tokens, taps;
  std::string heads, rows, out;
  bool ignores_eos = false, is_json = false, is_quiet = false;
};

// The same as values; every flag that makes no sense is among the problems.
struct RunCall {
  std::vector<index_t> ids;
  GenerateOptions generate;
  index_t beams = 1;
  int threads = 0;
  std::vector<Tap> taps;
};
RunCall read_call(const RunArgs& args, std::vector<Problem>& problems);

}  // namespace glasshead::cli
