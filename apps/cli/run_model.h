// A model at work for `glasshead run`: what it needs on the way, and what is
// said about it.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/run_args.h"
#include "glasshead/model.h"
#include "glasshead/tokenizer.h"

namespace glasshead::cli {

class Run {
 public:
  // Loads the model, and its tokenizer where the text is given as text. Throws
  // what they throw, and OptionError where the model can't do what was asked
  // for.
  Run(const RunArgs& args, const RunCall& call, const Context& context);
  void run();

 private:
  void check_mode() const;
  std::string ways() const;
  void note(const std::string& text) const;
  std::string ended_by(StopReason why) const;
  void need_rows(const std::string& stack, index_t tokens, index_t most_written) const;
  index_t last_row() const;
  std::vector<index_t> prompt() const;
  std::string word(index_t id) const;  // as the vocabulary spells it; its number without one
  void write_from(index_t sequence, const std::vector<index_t>& ids);
  void beams(index_t sequence);
  void best_at_each_place();
  void fill();
  void embed();
  std::vector<Change> changes(const std::vector<index_t>& ids);
  void effect(const std::vector<index_t>& ids);
  void lens(const std::vector<index_t>& ids);
  void write_taps() const;

  const RunArgs& args_;
  const RunCall& call_;
  std::chrono::steady_clock::time_point start_;
  Model model_;
  double load_seconds_;
  std::optional<Tokenizer> words_;
  Session session_;
  std::unique_ptr<Taps> taps_;
};

}  // namespace glasshead::cli
