// glasshead heads: what every head of a model does with a text.
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/heads_report.h"
#include "cli/model_files.h"
#include "cli/run_report.h"
#include "cli/values.h"
#include "glasshead/head_study.h"
#include "wire/display.h"

namespace glasshead::cli {
namespace {

constexpr index_t kMostThreads = 1024;
constexpr index_t kMostTokens = index_t{1} << 40;
constexpr index_t kAboutText = 128;  // tokens that an encoder-decoder writes about its text

struct HeadsArgs {
  std::string model, out;
  std::optional<std::string> prompt, tokens, max_tokens, sort, top;
  std::string cell = "64", context = "0", threads = "0";
  bool is_json = false, is_quiet = false;
};

struct HeadsCall {
  std::vector<index_t> ids;
  std::optional<index_t> max_tokens;
  ModelOptions model;
  HeadOrder order;
  index_t cell = 64;
  int threads = 0;
};

index_t whole(const char* flag, const std::string& text, index_t least, index_t most,
              std::vector<Problem>& problems) {
  const std::optional<index_t> value = parse_integer(text);
  if (value && *value >= least && *value <= most) return *value;
  problems.push_back(
      {flag, fmt::format("{}: a whole number from {} to {} is needed", text, least, most)});
  return least;
}

HeadsCall read_call(const HeadsArgs& args) {
  std::vector<Problem> problems;
  HeadsCall call;
  if (args.prompt && args.tokens)
    problems.push_back({"--tokens", "does not go with --prompt; the text is given in one way"});
  if (!args.prompt && !args.tokens)
    problems.push_back({"--prompt",
                        "missing: heads are looked at while they read a text; give "
                        "--prompt TEXT or --tokens IDS"});
  if (args.tokens)
    call.ids = parse_integers("--tokens", *args.tokens, problems).value_or(std::vector<index_t>{});
  if (args.max_tokens)
    call.max_tokens = whole("--max-tokens", *args.max_tokens, 0, kMostTokens, problems);
  call.model.context = whole("--context", args.context, 0, kMostTokens, problems);
  call.order.metric = args.sort;
  if (args.top) call.order.most = whole("--top", *args.top, 1, kMostTokens, problems);
  if (args.top && !args.sort)
    problems.push_back({"--top", "goes with --sort, which says what the first ones are"});
  call.cell = whole("--cell", args.cell, 1, kMostTokens, problems);
  if (args.cell != "64" && args.out.empty())
    problems.push_back({"--cell", "is of the pictures that -o FILE.safetensors keeps"});
  if (!args.out.empty() && !args.out.ends_with(".safetensors"))
    problems.push_back({"-o", args.out + ": several tensors are written, as .safetensors"});
  need_writable("-o", args.out, problems);
  call.threads = static_cast<int>(whole("--threads", args.threads, 0, kMostThreads, problems));
  if (!problems.empty()) throw OptionError("heads", std::move(problems));
  return call;
}

// Lets the model read the text and write what follows it (an encoder-decoder: about it); nothing
// where none is to be written.
std::optional<Generation> look(Session& session, const HeadsCall& call,
                               const std::optional<Tokenizer>& words, HeadStudy& heads) {
  const Model& model = session.model();
  const bool is_about = model.kind() == ModelKind::encoder_decoder;
  GenerateOptions options{.max_tokens = call.max_tokens.value_or(is_about ? kAboutText : 0),
                          .heads = &heads};
  if (words && words->eos()) options.stop_ids.push_back(*words->eos());
  if (model.kind() == ModelKind::encoder) {
    if (call.max_tokens)
      throw OptionError("heads",
                        {{"--max-tokens", "this model is an encoder, and writes no text"}});
    session.encode({{.ids = call.ids}}, nullptr, &heads);
    return std::nullopt;
  }
  if (is_about) {
    options.sequence = session.read(call.ids, nullptr, &heads);
    return generate(session, {model.decoder_start()}, options);
  }
  if (options.max_tokens > 0) return generate(session, call.ids, options);
  session.forward({{.ids = call.ids}}, LogitRows::none, nullptr, &heads);
  return std::nullopt;
}

// As the vocabulary has it, or as ids: one line.
std::string text_of(const std::vector<index_t>& ids, const std::optional<Tokenizer>& words) {
  if (words) return wire::escape_controls(words->decode(ids));
  return fmt::format("{}", fmt::join(ids, " "));
}

void run(const HeadsArgs& args) {
  HeadsCall call = read_call(args);
  const Context context({.isa = {}, .threads = call.threads, .parallel_for = nullptr});
  const auto note = [&](const std::string& text) {
    if (!args.is_quiet) std::fputs((text + "\n").c_str(), stderr);
  };
  const auto start = std::chrono::steady_clock::now();
  const Model model = Model::load(args.model, call.model);
  std::optional<Tokenizer> words;
  if (args.prompt) {
    words = load_words(args.model);
    call.ids = ids_of(*words, "--prompt", *args.prompt);
    if (call.ids.empty()) throw OptionError("heads", {{"--prompt", "a text of no tokens"}});
  }
  note(fmt::format("{}: {} ({}), {} parameters, read in {}", args.model, model.family(),
                   name(model.kind()), model.parameters(), duration_text(seconds_since(start))));
  HeadStudy heads({.cell = args.out.empty() ? 0 : call.cell});
  std::optional<Generation> written;
  const auto begin = std::chrono::steady_clock::now();
  try {
    Session session(model, {}, context);
    written = look(session, call, words, heads);
  } catch (const OptionError& error) {
    std::vector<Problem> problems = error.problems();
    for (Problem& problem : problems)
      if (problem.where.starts_with("parts[") || problem.where.starts_with("text"))
        problem.where = args.prompt ? "--prompt" : "--tokens";
    throw OptionError("heads", std::move(problems));
  }
  const std::size_t tokens = call.ids.size() + (written ? written->ids.size() : 0);
  note(fmt::format("text: {}", rate_text(static_cast<index_t>(tokens), seconds_since(begin))));
  if (written) note(fmt::format("written: {}", text_of(written->ids, words)));
  if (!args.out.empty()) {
    const NamedTensors results = heads.results();
    write_for("heads", "-o", [&] { write_safetensors(args.out, results); });
    note(fmt::format("{}: {} tensors", args.out, results.size()));
  }
  const std::vector<HeadMetrics> found = in_order(heads.metrics(), call.order);
  if (args.is_json)
    print(heads_json(model, {args.model, call.ids, written}, found));
  else
    write_result("", heads_table(model, found));
}

void add(CLI::App& command, int&) {
  auto args = std::make_shared<HeadsArgs>();
  add_model(command, args->model);
  command.add_option("--prompt", args->prompt, "The text to read")->type_name("TEXT");
  command.add_option("--tokens", args->tokens, "The text as token ids: 1,403,407")
      ->type_name("IDS");
  command
      .add_option("--max-tokens", args->max_tokens,
                  "Let the model write N tokens behind the text, the most probable ones, and look "
                  "at these, too (0; an encoder-decoder, about the text: 128)")
      ->type_name("N");
  command
      .add_option("--sort", args->sort,
                  "The largest first of one number (without it: layer by layer)")
      ->type_name("first|previous|self|entropy|distance|induction")
      ->check(one_of(head_metric_names()));
  command.add_option("--top", args->top, "Of --sort the first N alone")->type_name("N");
  command
      .add_option("-o,--out", args->out,
                  "Keep all numbers, and two pictures of every head: a .safetensors file")
      ->type_name("FILE");
  command.add_option("--cell", args->cell, "Pairs of a picture's cell: N x N (64)")->type_name("N");
  add_context(command, args->context);
  command.add_option("--threads", args->threads, "Threads (0: all cores)")->type_name("N");
  command.add_flag("--quiet", args->is_quiet, "No notes on stderr");
  command.add_flag("--json", args->is_json, "Print JSON");
  command.callback([args] { run(*args); });
}

}  // namespace

const Command kHeads{
    "heads", "Show what every head of a model attends to, on average over a text",
    "# the ten heads that most repeat what stood behind a token before\n"
    "glasshead heads stories260K --prompt \"One two three. One two three. One two\" "
    "--sort induction --top 10\n"
    "# all heads while the model goes on with the text\n"
    "glasshead heads stories260K --prompt \"Once upon a time\" --max-tokens 64\n"
    "# all heads, with pictures of their weights\n"
    "glasshead heads stories260K --tokens 1,403,407,261,378 -o heads.safetensors\n",
    add};

}  // namespace glasshead::cli
