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
    if (problem.where == "stop") problem.where = "--stop";
    if (problem.where == "chat_template") {
      problem.where = "--chat";
      problem.what = "the chat template: " + problem.what;
    }
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
  const auto take = [&](const char* flag, auto& value, const char* type, const char* help) {
    command.add_option(flag, value, help)->type_name(type);
  };
  take("--prompt", args->prompt, "TEXT", "A text to continue");
  take("--chat", args->chat, "TEXT", "What a user says, in the form the model was trained on");
  take("--tokens", args->tokens, "IDS", "The text as token ids: 1,403,407");
  take("--fill", args->fill, "TEXT", "A text with [MASK] in it: which words fit there");
  take("--embed", args->embed, "TEXT", "A text whose vector is wanted; any number of them");
  take("--translate", args->translate, "TEXT", "A text for an encoder-decoder to write about");
  take("--beams", args->beams, "N", "Of an encoder-decoder: search with N texts at a time");
  take("--max-tokens", args->max_tokens, "N", "At most so many new tokens (128)");
  take("--temperature", args->temperature, "T",
       "0: the most probable token (default); above: a draw");
  take("--top-k", args->top_k, "K", "Draw among the K most probable tokens");
  take("--top-p", args->top_p, "P", "Draw among the fewest tokens whose probabilities reach P");
  take("--min-p", args->min_p, "P", "Draw among tokens at least P times as probable as the best");
  take("--repetition-penalty", args->repetition_penalty, "X",
       "Make tokens that are there already less probable (1: off)");
  take("--seed", args->seed, "N", "Which draws (0)");
  take("--stop", args->stop, "TEXT", "End where this text comes");
  take("--stop-tokens", args->stop_tokens, "IDS", "End at one of these ids");
  command.add_flag("--ignore-eos", args->ignores_eos, "Go on after the model's end token");
  take("--tap", args->taps, "NAME",
       "A number of the run to write: decoder.2.self.weights; * for all layers");
  take("--heads", args->heads, "H,...", "Of scores and weights: these query heads");
  take("--positions", args->rows, "FIRST:LAST", "Of scores and weights: these query positions");
  take("--hide", args->hide, "POSITIONS",
       "Let no later token read these positions, and show what becomes of the next token");
  take("--cut", args->cut, "QUERY:KEY",
       "Let one query not read one key, and show what becomes of the next token");
  take("--ablate", args->ablate, "LAYER.HEAD",
       "Take this head away, and show what becomes of the next token");
  take("--mean-ablate", args->mean_ablate, "LAYER.HEAD",
       "The same with the head's mean over the text in its place");
  command.add_flag("--lens", args->has_lens, "What each layer would say the next token is");
  take("-o,--out", args->out, "FILE", "Where taps or vectors go: a .safetensors file");
  add_context(command, args->context);
  take("--threads", args->threads, "N", "Threads (0: all cores)");
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
