// glasshead run: a model at work, and any number in it as a file.
#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/model_files.h"
#include "cli/run_args.h"
#include "cli/run_model.h"

namespace glasshead::cli {
namespace {

// The library names its arguments; whoever types a command knows the flags.
std::vector<Problem> in_flags(const RunArgs& args, std::vector<Problem> problems) {
  const char* text = "--tokens";
  if (args.prompt) text = "--prompt";
  if (args.chat) text = "--chat";
  if (args.fill) text = "--fill";
  if (args.translate) text = "--translate";
  if (!args.embed.empty()) text = "--embed";
  for (Problem& problem : problems) {
    if (problem.where == "taps") {
      problem.where = "--tap";
      if (problem.what.find("no such place") != std::string::npos)
        problem.what += "; glasshead inspect " + args.model + " --places lists all";
    }
    if (problem.where == "to_mean") problem.where = "--mean-ablate";
    // Positions are hidden, heads of layers taken away.
    if (problem.where == "changes")
      problem.where = problem.what.starts_with("layer ") || problem.what.starts_with("head ")
                          ? "--ablate"
                          : "--hide";
    if (problem.where == "stop_ids") problem.where = "--stop-tokens";
    if (problem.where.starts_with("parts[") || problem.where.starts_with("text"))
      problem.where = text;
  }
  return problems;
}

void run(const RunArgs& args) {
  std::vector<Problem> problems;
  const RunCall call = read_call(args, problems);
  if (!problems.empty()) throw OptionError("run", std::move(problems));
  const Context context({.isa = {}, .threads = call.threads, .parallel_for = nullptr});
  try {
    Run(args, call, context).run();
  } catch (const OptionError& error) {
    throw OptionError("run", in_flags(args, error.problems()));
  }
}

void add(CLI::App& command, int&) {
  auto args = std::make_shared<RunArgs>();
  add_model(command, args->model);
  command.add_option("--prompt", args->prompt, "A text to continue")->type_name("TEXT");
  command
      .add_option("--chat", args->chat, "What a user says, in the form the model was trained on")
      ->type_name("TEXT");
  command.add_option("--tokens", args->tokens, "The text as token ids: 1,403,407")
      ->type_name("IDS");
  command.add_option("--fill", args->fill, "A text with [MASK] in it: which words fit there")
      ->type_name("TEXT");
  command.add_option("--embed", args->embed, "A text whose vector is wanted; any number of them")
      ->type_name("TEXT");
  command
      .add_option("--translate", args->translate, "A text for an encoder-decoder to write about")
      ->type_name("TEXT");
  command
      .add_option("--beams", args->beams, "Of an encoder-decoder: search with N texts at a time")
      ->type_name("N");
  command.add_option("--max-tokens", args->max_tokens, "At most so many new tokens (128)")
      ->type_name("N");
  command
      .add_option("--temperature", args->temperature,
                  "0: the most probable token (default); above: a draw")
      ->type_name("T");
  command.add_option("--top-k", args->top_k, "Draw among the K most probable tokens")
      ->type_name("K");
  command
      .add_option("--top-p", args->top_p,
                  "Draw among the fewest tokens whose probabilities reach P")
      ->type_name("P");
  command
      .add_option("--min-p", args->min_p,
                  "Draw among tokens at least P times as probable as the best")
      ->type_name("P");
  command
      .add_option("--repetition-penalty", args->repetition_penalty,
                  "Make tokens that are there already less probable (1: off)")
      ->type_name("X");
  command.add_option("--seed", args->seed, "Which draws (0)")->type_name("N");
  command.add_option("--stop", args->stop, "End where this text comes")->type_name("TEXT");
  command.add_option("--stop-tokens", args->stop_tokens, "End at one of these ids")
      ->type_name("IDS");
  command.add_flag("--ignore-eos", args->ignores_eos, "Go on after the model's end token");
  command
      .add_option("--tap", args->taps,
                  "A number of the run to write: decoder.2.self.weights; * for "
                  "all layers")
      ->type_name("NAME");
  command.add_option("--heads", args->heads, "Of scores and weights: these query heads")
      ->type_name("H,...");
  command.add_option("--positions", args->rows, "Of scores and weights: these query positions")
      ->type_name("FIRST:LAST");
  command
      .add_option("--hide", args->hide,
                  "Hide these positions, and show what becomes of the next token")
      ->type_name("POSITIONS");
  command
      .add_option("--cut", args->cut,
                  "Let one query not read one key, and show what becomes of the next token")
      ->type_name("QUERY:KEY");
  command
      .add_option("--ablate", args->ablate,
                  "Take this head away, and show what becomes of the next token")
      ->type_name("LAYER.HEAD");
  command
      .add_option("--mean-ablate", args->mean_ablate,
                  "The same with the head's mean over the text in its place")
      ->type_name("LAYER.HEAD");
  command.add_flag("--lens", args->has_lens, "What each layer would say the next token is");
  command.add_option("-o,--out", args->out, "Where taps or vectors go: a .safetensors file")
      ->type_name("FILE");
  add_context(command, args->context);
  command.add_option("--threads", args->threads, "Threads (0: all cores)")->type_name("N");
  command.add_flag("--quiet", args->is_quiet, "No notes on stderr");
  command.add_flag("--json", args->is_json, "Print JSON");
  command.callback([args, &command] {
    for (const CLI::Option* option : command.get_options())
      if (option->count() > 0) args->given.push_back(option->get_name());
    run(*args);
  });
}

}  // namespace

const Command kRun{"run", "Run a model: continue a text, fill masks, make vectors, save any number",
                   "# continue a text\n"
                   "glasshead run stories260K --prompt \"Once upon a time\" --max-tokens 64\n"
                   "# the same with token ids\n"
                   "glasshead run stories260K --tokens 1,403,407,261,378 --max-tokens 64\n"
                   "# what head 3 of layer 2 reads\n"
                   "glasshead run stories260K --tokens 1,403,407,261 --max-tokens 0 "
                   "--tap decoder.2.self.weights --heads 3 -o weights.safetensors\n"
                   "# the next token if the second token cannot be read, and without a head\n"
                   "glasshead run stories260K --tokens 1,403,407,261 --hide 1 --ablate 2.3\n",
                   add};

}  // namespace glasshead::cli
