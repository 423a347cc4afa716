// glasshead run: a model at work, and any number in it as a file.
#include <chrono>
#include <cstdio>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/run_args.h"
#include "cli/values.h"

namespace glasshead::cli {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// "0.042 s", in words short enough for a line of progress.
std::string duration_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, seconds < 10 ? "%.3f s" : "%.1f s", seconds);
  return text;
}

std::string rate_text(index_t tokens, double seconds) {
  char text[64];
  std::snprintf(text, sizeof text, "%.1f", static_cast<double>(tokens) / seconds);
  return fmt::format("{} {} in {} ({} tokens/s)", tokens, tokens == 1 ? "token" : "tokens",
                     duration_text(seconds), text);
}

// One run of one model: what it needs on the way, and what is said about it.
class Run {
 public:
  Run(const RunArgs& args, const RunCall& call, const Context& context)
      : args_(args),
        call_(call),
        start_(Clock::now()),
        model_(Model::load(args.model)),
        load_seconds_(seconds_since(start_)),
        session_(model_, {}, context) {
    if (!call.taps.empty()) taps_ = std::make_unique<Taps>(call.taps);
    note(fmt::format("{}: {} ({}), {} parameters, read in {}", args.model, model_.family(),
                     name(model_.kind()), model_.parameters(), duration_text(load_seconds_)));
  }

  void run() {
    switch (model_.kind()) {
      case ModelKind::decoder:
        write_from(0, prompt());
        break;
      case ModelKind::encoder:
        most_probable();
        break;
      case ModelKind::encoder_decoder:
        write_from(session_.read(call_.ids, taps_.get()), {model_.decoder_start()});
        break;
    }
    if (taps_ == nullptr) return;
    const NamedTensors results = taps_->results();
    write_for("run", "-o", [&] { write_safetensors(args_.out, results); });
    note(fmt::format("{}: {} {}", args_.out, results.size(),
                     results.size() == 1 ? "tensor" : "tensors"));
  }

 private:
  void note(const std::string& text) const {
    if (!args_.is_quiet) std::fputs((text + "\n").c_str(), stderr);
  }

  // What the text begins with: what was given, else the token that texts of this model begin with.
  std::vector<index_t> prompt() const {
    if (!call_.ids.empty()) return call_.ids;
    if (!model_.bos())
      throw OptionError("run", {{"--tokens",
                                 "missing; this model's texts begin with no token of "
                                 "their own, so at least one is needed"}});
    return {*model_.bos()};
  }

  void write_from(index_t sequence, const std::vector<index_t>& ids) {
    GenerateOptions options = call_.generate;
    options.sequence = sequence;
    options.taps = taps_.get();
    const Clock::time_point begin = Clock::now();
    double first = 0;
    std::vector<index_t> written;
    options.on_token = [&](index_t id) {
      if (written.empty()) first = seconds_since(begin);
      if (!args_.is_json) {
        std::printf(written.empty() ? "%lld" : " %lld", static_cast<long long>(id));
        std::fflush(stdout);
      }
      written.push_back(id);
      return true;
    };
    const Generation made = generate(session_, ids, options);
    const double total = seconds_since(begin);
    if (written.empty()) first = total;
    if (!args_.is_json) std::puts("");
    const auto count = static_cast<index_t>(written.size());
    note(fmt::format("prompt: {}", rate_text(static_cast<index_t>(ids.size()), first)));
    if (count > 1) note(fmt::format("text: {}", rate_text(count - 1, total - first)));
    note(fmt::format("ended by {}", words_of(made.why)));
    if (!args_.is_json) return;
    print({{"model", args_.model},
           {"kind", name(model_.kind())},
           {"prompt", {{"ids", ids}}},
           {"ids", made.ids},
           {"stop", name(made.why)},
           {"seconds", {{"load", load_seconds_}, {"prompt", first}, {"text", total - first}}}});
  }

  static const char* words_of(StopReason why) {
    constexpr const char* kWords[] = {"its length", "an end token", "a stop text", "the reader"};
    return kWords[static_cast<int>(why)];
  }

  // An encoder: at each place the token that it finds most probable there.
  void most_probable() {
    const Clock::time_point begin = Clock::now();
    const View<const float, 2> rows = session_.encode({{.ids = call_.ids}}, taps_.get());
    std::vector<index_t> best;
    if (model_.has_logits()) {
      const View<const float, 2> logits = session_.logits(rows);
      for (index_t i = 0; i < logits.shape[0]; ++i)
        best.push_back(sample({logits.data + i * logits.strides[0], {logits.shape[1]}}, {}, {}, 0));
    }
    note(fmt::format("text: {}", rate_text(rows.shape[0], seconds_since(begin))));
    if (args_.is_json) {
      print({{"model", args_.model},
             {"kind", name(model_.kind())},
             {"prompt", {{"ids", call_.ids}}},
             {"ids", best}});
      return;
    }
    std::string text;
    for (const index_t id : best) text += (text.empty() ? "" : " ") + std::to_string(id);
    if (!text.empty()) write_result("", text + "\n");
  }

  static void print(const Json& json) {
    write_result("", json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  }

  const RunArgs& args_;
  const RunCall& call_;
  Clock::time_point start_;
  Model model_;
  double load_seconds_;
  Session session_;
  std::unique_ptr<Taps> taps_;
};

void run(const RunArgs& args) {
  std::vector<Problem> problems;
  const RunCall call = read_call(args, problems);
  if (!problems.empty()) throw OptionError("run", std::move(problems));
  const Context context({.isa = {}, .threads = call.threads, .parallel_for = nullptr});
  Run(args, call, context).run();
}

void add(CLI::App& command, int&) {
  auto args = std::make_shared<RunArgs>();
  command
      .add_option("model", args->model,
                  "A directory with config.json and .safetensors, or a "
                  ".gguf file")
      ->required()
      ->type_name("MODEL");
  command.add_option("--tokens", args->tokens, "The text as token ids: 1,403,407")
      ->type_name("IDS");
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
  command.add_option("--stop-tokens", args->stop_tokens, "End at one of these ids")
      ->type_name("IDS");
  command.add_flag("--ignore-eos", args->ignores_eos, "Go on after the model's end token");
  command
      .add_option("--tap", args->taps,
                  "A number of the run to write: decoder.2.self.weights; * for all layers")
      ->type_name("NAME");
  command.add_option("--heads", args->heads, "Of weights: these query heads")->type_name("H,...");
  command.add_option("--positions", args->rows, "Of weights: these query positions")
      ->type_name("FIRST:LAST");
  command.add_option("-o,--out", args->out, "Where the taps go: a .safetensors file")
      ->type_name("FILE");
  command.add_option("--threads", args->threads, "Threads (0: all cores)")->type_name("N");
  command.add_flag("--quiet", args->is_quiet, "No notes on stderr");
  command.add_flag("--json", args->is_json, "Print JSON");
  command.callback([args] { run(*args); });
}

}  // namespace

const Command kRun{"run", "Run a model: continue a text, and save any number on the way",
                   "# continue a text, given as token ids\n"
                   "glasshead run stories260K --tokens 1,403,407 --max-tokens 64\n"
                   "# what head 3 of layer 2 reads\n"
                   "glasshead run stories260K --tokens 1,403,407,261 --max-tokens 0 "
                   "--tap decoder.2.self.weights --heads 3 -o weights.safetensors\n",
                   add};

}  // namespace glasshead::cli
