#include "cli/run_args.h"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <utility>
#include <variant>

#include "cli/command.h"
#include "cli/values.h"

namespace glasshead::cli {
namespace {

bool is_given(const RunArgs& args, const std::string& flag) {
  return std::find(args.given.begin(), args.given.end(), flag) != args.given.end();
}

constexpr index_t kMostTokens = index_t{1} << 40;  // more is a slip
constexpr index_t kMostThreads = 1024;

class Values {
 public:
  explicit Values(std::vector<Problem>& problems) : problems_(problems) {}

  index_t whole(const char* flag, const std::string& text, index_t least, index_t most) {
    const std::optional<index_t> value = parse_integer(text);
    if (value && *value >= least && *value <= most) return *value;
    problems_.push_back({flag, text + ": a whole number from " + std::to_string(least) + " to " +
                                   std::to_string(most) + " is needed"});
    return least;
  }
  // `off` where it is none, so that nothing else is said about it.
  double number(const char* flag, const std::string& text, double off) {
    const std::optional<double> value = parse_number(text);
    if (value) return *value;
    problems_.push_back({flag, text + ": a number is needed"});
    return off;
  }

 private:
  std::vector<Problem>& problems_;
};

// The library's words for what is out of range, under the flags' names.
void check_sampling(const Sampling& sampling, std::vector<Problem>& problems) {
  for (Problem& problem : check(sampling)) {
    for (char& c : problem.where)
      if (c == '_') c = '-';
    problems.push_back({"--" + problem.where, std::move(problem.what)});
  }
  if (sampling.temperature == 0 && (sampling.top_k > 0 || sampling.top_p < 1 || sampling.min_p > 0))
    problems.push_back({"--temperature",
                        "is 0, which takes the most probable token: --top-k, "
                        "--top-p and --min-p "
                        "choose nothing then; give a temperature above 0"});
}

// "3,5" of --heads, "2:6" (first and last) or "4" of --positions, for taps of
// scores and weights.
void read_taps(const RunArgs& args, RunCall& call, std::vector<Problem>& problems) {
  if (args.taps.empty() != args.out.empty() && args.embed.empty())
    problems.push_back(args.taps.empty()
                           ? Problem{"-o", "goes with --tap NAME, which says what to write"}
                           : Problem{"--tap", "no file for it; give -o FILE.safetensors"});
  if (args.taps.empty() && !(args.heads.empty() && args.rows.empty()))
    problems.push_back(
        {"--heads", "--heads and --positions go with --tap of some scores or weights"});
  if (!args.embed.empty() && !args.taps.empty())
    problems.push_back({"--tap", "does not go with --embed; --fill or --tokens read one text"});
  if (!args.out.empty() && args.embed.empty() && !args.out.ends_with(".safetensors"))
    problems.push_back({"-o", args.out + ": several tensors are written, as .safetensors"});
  need_writable("-o", args.out, problems);
  Tap tap;
  if (!args.heads.empty())
    tap.heads = parse_integers("--heads", args.heads, problems).value_or(std::vector<index_t>{});
  if (!args.rows.empty()) {
    const std::size_t colon = args.rows.find(':');
    const std::optional<index_t> first = parse_integer(args.rows.substr(0, colon));
    const std::optional<index_t> last =
        colon == std::string::npos ? first : parse_integer(args.rows.substr(colon + 1));
    if (first && last && *first >= 0 && *last >= *first)
      tap.positions = {*first, *last};
    else
      problems.push_back({"--positions", args.rows + ": a position, or FIRST:LAST, from 0"});
  }
  const auto is_of_pairs = [](const std::string& name) {
    return name.ends_with(".weights") || name.ends_with(".scores");
  };
  if (std::none_of(args.taps.begin(), args.taps.end(), is_of_pairs))
    for (const char* flag : {"--heads", "--positions"})
      if (is_given(args, flag))
        problems.push_back({flag, "chosen of scores and weights alone: no --tap names any"});
  for (const std::string& name : args.taps) {
    tap.name = name;
    Tap one = tap;
    if (!is_of_pairs(name)) {
      one.heads.clear();
      one.positions.reset();
    }
    call.taps.push_back(std::move(one));
  }
}

// A text is given in one way.
void check_texts(const RunArgs& args, RunCall& call, std::vector<Problem>& problems) {
  const std::pair<const char*, bool> ways[] = {
      {"--prompt", args.prompt.has_value()},       {"--chat", args.chat.has_value()},
      {"--tokens", args.tokens.has_value()},       {"--fill", args.fill.has_value()},
      {"--translate", args.translate.has_value()}, {"--embed", !args.embed.empty()}};
  const char* first = nullptr;
  for (const auto& [flag, is_given] : ways) {
    if (!is_given) continue;
    if (first != nullptr)
      problems.push_back(
          {flag, std::string("does not go with ") + first + "; the text is given in one way"});
    first = first == nullptr ? flag : first;
  }
  call.has_text = first != nullptr && !args.tokens;
  if (!args.stop.empty() && !call.has_text)
    problems.push_back({"--stop", "needs a text: with --tokens give --stop-tokens"});
}

// "9.6": layer and head.
std::optional<ReplaceHead> read_head(const char* flag, const std::string& text,
                                     std::vector<Problem>& problems) {
  const std::size_t dot = text.find('.');
  const std::optional<index_t> layer = parse_integer(text.substr(0, dot));
  const std::optional<index_t> head =
      dot == std::string::npos ? std::nullopt : parse_integer(text.substr(dot + 1));
  if (layer && head) return ReplaceHead{.layer = *layer, .head = *head};
  problems.push_back({flag, text + ": LAYER.HEAD is needed, both from 0: 9.6"});
  return std::nullopt;
}

// "12:3": query 12 may not read key 3.
void read_cut(const std::string& text, RunCall& call, std::vector<Problem>& problems) {
  const std::size_t colon = text.find(':');
  const std::optional<index_t> query = parse_integer(text.substr(0, colon));
  const std::optional<index_t> key =
      colon == std::string::npos ? std::nullopt : parse_integer(text.substr(colon + 1));
  if (query && key && *key >= 0 && *query >= *key)
    call.changes.push_back(HidePairs{.keys = {*key}, .queries = {*query}});
  else
    problems.push_back({"--cut", text + ": QUERY:KEY is needed, positions from 0, the key at or "
                                        "before the query: 12:3"});
}

// "3,7" of --hide, and those above.
void read_changes(const RunArgs& args, RunCall& call, std::vector<Problem>& problems) {
  if (!args.hide.empty())
    if (const auto keys = parse_integers("--hide", args.hide, problems))
      call.changes.push_back(HidePairs{.keys = *keys});
  for (const std::string& text : args.cut) read_cut(text, call, problems);
  for (const std::string& text : args.ablate)
    if (const auto head = read_head("--ablate", text, problems)) call.changes.push_back(*head);
  for (const std::string& text : args.mean_ablate)
    if (const auto head = read_head("--mean-ablate", text, problems)) call.to_mean.push_back(*head);
  for (const Change& change : call.changes)
    for (const ReplaceHead& mean : call.to_mean)
      if (const auto* zero = std::get_if<ReplaceHead>(&change);
          zero != nullptr && zero->layer == mean.layer && zero->head == mean.head)
        problems.push_back({"--mean-ablate", std::to_string(mean.layer) + "." +
                                                 std::to_string(mean.head) +
                                                 " is taken away by --ablate already"});
  const bool is_looked_at = args.has_lens || call.has_changes();
  if (is_looked_at && (args.fill || args.translate || !args.embed.empty()))
    problems.push_back(
        {looking_flag(args), "shows a decoder's next token: --prompt, --chat or --tokens"});
  if (is_looked_at)
    refuse_writing_flags(
        args, std::string("does not go with ") + looking_flag(args) + ", which writes no text",
        problems);
  if (is_looked_at && !args.taps.empty())
    problems.push_back({"--tap", std::string("does not go with ") + looking_flag(args) +
                                     ", which reads the text more than once"});
}

// What nothing would read.
void check_unread(const RunArgs& args, const RunCall& call, std::vector<Problem>& problems) {
  if (args.fill || !args.embed.empty())
    refuse_writing_flags(args,
                         std::string("does not go with ") + (args.fill ? "--fill" : "--embed") +
                             ", which writes no text",
                         problems);
  else if (call.beams > 1)
    refuse_drawing_flags(args, "does not go with --beams, which draws nothing", problems);
}

void refuse(const RunArgs& args, std::initializer_list<const char*> flags, const std::string& why,
            std::vector<Problem>& problems) {
  for (const char* flag : flags)
    if (is_given(args, flag)) problems.push_back({flag, why});
}

}  // namespace

void refuse_drawing_flags(const RunArgs& args, const std::string& why,
                          std::vector<Problem>& problems) {
  refuse(args,
         {"--temperature", "--top-k", "--top-p", "--min-p", "--repetition-penalty", "--seed",
          "--stop", "--stop-tokens", "--ignore-eos"},
         why, problems);
}

void refuse_writing_flags(const RunArgs& args, const std::string& why,
                          std::vector<Problem>& problems) {
  refuse(args, {"--max-tokens", "--beams"}, why, problems);
  refuse_drawing_flags(args, why, problems);
}

const char* looking_flag(const RunArgs& args) {
  if (args.has_lens) return "--lens";
  if (!args.hide.empty()) return "--hide";
  if (!args.cut.empty()) return "--cut";
  return args.ablate.empty() ? "--mean-ablate" : "--ablate";
}

RunCall read_call(const RunArgs& args, std::vector<Problem>& problems) {
  RunCall call;
  Values values(problems);
  if (args.tokens)
    call.ids = parse_integers("--tokens", *args.tokens, problems).value_or(std::vector<index_t>{});
  GenerateOptions& g = call.generate;
  g.max_tokens = values.whole("--max-tokens", args.max_tokens, 0, kMostTokens);
  g.sampling.temperature = values.number("--temperature", args.temperature, 1);
  g.sampling.top_k = values.whole("--top-k", args.top_k, 0, std::numeric_limits<index_t>::max());
  g.sampling.top_p = values.number("--top-p", args.top_p, 1);
  g.sampling.min_p = values.number("--min-p", args.min_p, 0);
  g.sampling.repetition_penalty = values.number("--repetition-penalty", args.repetition_penalty, 1);
  const std::optional<std::uint64_t> seed = parse_seed(args.seed);
  if (!seed)
    problems.push_back({"--seed", args.seed + ": a whole number from 0 to 2^64 - 1 is needed"});
  g.sampling.seed = seed.value_or(0);
  check_sampling(g.sampling, problems);
  g.stops_at_eos = !args.ignores_eos;
  for (const std::string& text : args.stop_tokens)
    for (const index_t id :
         parse_integers("--stop-tokens", text, problems).value_or(std::vector<index_t>{}))
      g.stop_ids.push_back(id);
  call.beams = values.whole("--beams", args.beams, 1, kMostThreads);
  call.threads = static_cast<int>(values.whole("--threads", args.threads, 0, kMostThreads));
  call.model.context = values.whole("--context", args.context, 0, kMostTokens);
  check_texts(args, call, problems);
  read_taps(args, call, problems);
  read_changes(args, call, problems);
  check_unread(args, call, problems);
  return call;
}

}  // namespace glasshead::cli
