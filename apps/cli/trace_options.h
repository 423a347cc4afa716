// The options of `glasshead trace`, and which of them go together.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

namespace glasshead::cli {

// As given; an empty text: not given.
struct TraceArgs {
  std::string name, out, format, mask, query, by_hand, sweep, check, mistake;
  std::string head, round = "sum1", empty_row, web;
  // Of a model.
  std::optional<std::string> prompt, tokens, decoder_tokens;
  std::string layer, save_case;
  bool cross = false, encoder = false;
  std::vector<std::string> set, hide, steps;
  double scale = 1;
  int decimals = 4, width = 100;
  bool has_scale = false, remove_scale = false, list = false;
  bool explain = false, diff = false, gradients = false, full = false, percent = false;
  bool ascii = false, math = false, standalone = false, interactive = false;
};

void add_trace_options(CLI::App& command, TraceArgs& args);

bool ends_with(const std::string& text, std::string_view end);
// "text", "md", ..., "npy", "safetensors": by --format, else by the ending of -o, else text.
std::string format_of(const TraceArgs& args);

// Throws OptionError that names every option given that this view or this format would ignore, and
// what ignores it.
void refuse_ignored(const CLI::App& command, const TraceArgs& args, const std::string& format);

}  // namespace glasshead::cli
