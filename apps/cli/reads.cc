// glasshead reads: which tokens heads read, on real texts.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/model_files.h"
#include "cli/run_report.h"
#include "cli/token_label.h"
#include "cli/values.h"
#include "glasshead/model.h"
#include "glasshead/tokenizer.h"

namespace glasshead::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kShown = 3;  // keys of a row, or heads of a key

struct ReadsArgs {
  std::string model;
  std::optional<std::string> prompt, tokens, decoder_tokens, head, query;
  std::string context = "0", threads = "0";
  bool is_json = false;
};

struct Head {
  index_t layer = 0, head = 0;
};

std::optional<Head> read_head(const std::string& text) {
  const std::size_t dot = text.find('.');
  const std::optional<index_t> layer = parse_integer(text.substr(0, dot));
  const std::optional<index_t> head =
      dot == std::string::npos ? std::nullopt : parse_integer(text.substr(dot + 1));
  if (!layer || !head) return std::nullopt;
  return Head{*layer, *head};
}

std::string column(const std::string& text, std::size_t width) {
  std::size_t letters = 0;  // bytes that begin a character
  for (const char c : text) letters += (static_cast<unsigned char>(c) & 0xC0U) != 0x80U ? 1 : 0;
  return letters < width ? text + std::string(width - letters, ' ') : text;
}

class Reads {
 public:
  Reads(const ReadsArgs& args, const ModelOptions& options, const Context& context)
      : args_(args), model_(Model::load(args.model, options)), session_(model_, {}, context) {
    std::vector<Problem> problems;
    read_text(problems);
    read_written(problems);
    if (args.head) read_head_flag(problems);
    if (args.query) read_query_flag(problems);
    if (!problems.empty()) throw OptionError("reads", std::move(problems));
    for (const std::vector<index_t>* ids : {&ids_, &asking_})
      for (const index_t id : *ids)
        width_ = std::max<std::size_t>(width_, token_label(words_, id).size());
    width_ = std::min<std::size_t>(width_, 16);
  }

  void run() {
    if (args_.head)
      head();
    else
      query();
    if (args_.is_json)
      print(json_);
    else
      write_result("", lines_);
  }

 private:
  void read_text(std::vector<Problem>& problems) {
    if (args_.prompt) {
      words_ = load_words(args_.model);
      ids_ = ids_of(*words_, "--prompt", *args_.prompt);
    } else {
      ids_ = parse_integers("--tokens", *args_.tokens, problems).value_or(std::vector<index_t>{});
    }
    if (ids_.empty() && problems.empty())
      problems.push_back(
          {args_.prompt ? "--prompt" : "--tokens", "no token; at least one is needed"});
    json_ = {{"model", args_.model}, {"tokens", shown(ids_)}};
  }
  // Whose rows are shown: the text's own, or of an encoder-decoder the tokens that are written
  // about it.
  void read_written(std::vector<Problem>& problems) {
    asking_ = ids_;
    if (model_.kind() != ModelKind::encoder_decoder) {
      if (args_.decoder_tokens)
        problems.push_back(
            {"--decoder-tokens",
             fmt::format("this model is {} {}; only an encoder-decoder writes "
                         "about a text",
                         model_.kind() == ModelKind::encoder ? "an" : "a", name(model_.kind()))});
      return;
    }
    asking_ = {model_.decoder_start()};
    if (args_.decoder_tokens)
      asking_ = parse_integers("--decoder-tokens", *args_.decoder_tokens, problems)
                    .value_or(std::vector<index_t>{});
    json_["decoder_tokens"] = shown(asking_);
  }
  void read_head_flag(std::vector<Problem>& problems) {
    const std::optional<Head> head = read_head(*args_.head);
    if (head) head_ = *head;
    if (!head)
      problems.push_back({"--head", *args_.head + ": LAYER.HEAD is needed, both from 0: 9.6"});
    else if (head->layer < 0 || head->layer >= model_.layers())
      problems.push_back({"--head", fmt::format("{}: there are {} layers, numbered from 0",
                                                *args_.head, model_.layers())});
    else if (head->head < 0 || head->head >= model_.heads(head->layer))
      problems.push_back(
          {"--head", fmt::format("{}: layer {} has {} heads, numbered from 0", *args_.head,
                                 head->layer, model_.heads(head->layer))});
  }
  void read_query_flag(std::vector<Problem>& problems) {
    const auto count = static_cast<index_t>(asking_.size());
    const std::optional<index_t> at = parse_integer(*args_.query);
    if (at && *at >= -count && *at < count)
      query_ = *at < 0 ? *at + count : *at;
    else
      problems.push_back({"--query", fmt::format("{}: there are {} tokens: 0 to {}, or -{} to -1 "
                                                 "from the end",
                                                 *args_.query, count, count - 1, count)});
  }

  Json shown(const std::vector<index_t>& ids) const {
    Json tokens = Json::array();
    for (const index_t id : ids) tokens.push_back({{"id", id}, {"token", word(id)}});
    return tokens;
  }
  std::string word(index_t id) const {
    const bool is_known = words_ && id >= 0 && id < words_->size();
    return is_known ? words_->token(id) : std::to_string(id);
  }
  std::string token(index_t at) const {
    return token_label(words_, ids_[static_cast<std::size_t>(at)]);
  }
  std::string asker(index_t at) const {
    return token_label(words_, asking_[static_cast<std::size_t>(at)]);
  }

  // What the taps of some weights have kept, of every layer asked for.
  NamedTensors weights(Tap tap) {
    const bool is_encoder = model_.kind() == ModelKind::encoder;
    const bool is_cross = model_.kind() == ModelKind::encoder_decoder;
    tap.name = (is_encoder ? "encoder." : "decoder.") + tap.name +
               (is_cross ? ".cross.weights" : ".self.weights");
    Taps taps({std::move(tap)});
    try {
      if (is_encoder)
        session_.encode({{.ids = ids_}}, &taps);
      else
        session_.forward({{is_cross ? session_.read(ids_, &taps) : 0, asking_}}, LogitRows::none,
                         &taps);
    } catch (const OptionError& error) {
      std::vector<Problem> problems = error.problems();
      for (Problem& problem : problems) {
        const bool is_written = is_cross && problem.where.starts_with("parts[");
        problem.where = is_written ? "--decoder-tokens" : args_.prompt ? "--prompt" : "--tokens";
      }
      throw OptionError("reads", std::move(problems));
    }
    return taps.results();
  }

  // One head: for each token the keys that it reads most.
  void head() {
    const FileTensor rows =
        weights({.name = std::to_string(head_.layer), .heads = {head_.head}})[0].second;
    const auto n = static_cast<index_t>(ids_.size());
    json_["head"] = {{"layer", head_.layer}, {"head", head_.head}};
    json_["rows"] = Json::array();
    for (index_t i = 0; i < static_cast<index_t>(asking_.size()); ++i) {
      std::vector<std::pair<double, index_t>> keys;
      std::vector<double> all;
      for (index_t j = 0; j < n; ++j) {
        all.push_back(rows.load(i * n + j));
        keys.emplace_back(-all.back(), j);
      }
      std::sort(keys.begin(), keys.end());
      lines_ += fmt::format("{:>4} {}", i, column(asker(i), width_));
      for (std::size_t m = 0; m < std::min(kShown, keys.size()) && keys[m].first < 0; ++m)
        lines_ += fmt::format("  {:>4} {} {}", keys[m].second,
                              column(token(keys[m].second), width_), decimals(-keys[m].first, 4));
      lines_ += "\n";
      json_["rows"].push_back(std::move(all));
    }
  }

  // One query: for each key what all heads together give it, and which heads read it most.
  void query() {
    const NamedTensors layers = weights({.name = "*", .positions = std::pair{query_, query_}});
    std::vector<Key> keys(ids_.size());
    json_["query"] = query_;
    json_["weights"] = Json::array();
    double heads = 0;
    for (std::size_t layer = 0; layer < layers.size(); ++layer) {
      const FileTensor& rows = layers[layer].second;
      Json of_layer = Json::array();
      for (index_t head = 0; head < rows.shape[0]; ++head) {
        of_layer.push_back(add_row(keys, rows, {static_cast<index_t>(layer), head}));
        heads += 1;
      }
      json_["weights"].push_back(std::move(of_layer));
    }
    lines_ += fmt::format("{} {} in {} heads of {} layers\n", query_, asker(query_), heads,
                          layers.size());
    lines_ += fmt::format("     {}    mean  most of  strongest heads\n", column("key", width_));
    for (std::size_t j = 0; j < keys.size(); ++j) {
      Key& key = keys[j];
      if (key.heads.empty()) continue;
      std::sort(key.heads.begin(), key.heads.end());
      lines_ +=
          fmt::format("{:>4} {}  {}  {:>7} ", j, column(token(static_cast<index_t>(j)), width_),
                      decimals(key.sum / heads, 4), key.most);
      for (std::size_t m = 0; m < std::min(kShown, key.heads.size()); ++m)
        lines_ += fmt::format(" {}.{} {}", key.heads[m].layer, key.heads[m].head,
                              decimals(key.heads[m].weight, 4));
      lines_ += "\n";
    }
  }

  struct Reader {
    index_t layer = 0, head = 0;
    double weight = 0;
    bool operator<(const Reader& other) const {
      if (weight != other.weight) return weight > other.weight;
      return layer != other.layer ? layer < other.layer : head < other.head;
    }
  };
  struct Key {
    double sum = 0;
    int most = 0;  // heads whose largest weight it has
    std::vector<Reader> heads;
  };

  static Json add_row(std::vector<Key>& keys, const FileTensor& rows, const Head& head) {
    const auto n = static_cast<index_t>(keys.size());
    Json all = Json::array();
    index_t best = 0;
    for (index_t j = 0; j < n; ++j) {
      const double weight = rows.load(head.head * n + j);
      all.push_back(weight);
      if (weight > rows.load(head.head * n + best)) best = j;
      Key& key = keys[static_cast<std::size_t>(j)];
      key.sum += weight;
      if (weight > 0) key.heads.push_back({head.layer, head.head, weight});
    }
    ++keys[static_cast<std::size_t>(best)].most;
    return all;
  }

  const ReadsArgs& args_;
  Model model_;
  Session session_;
  std::optional<Tokenizer> words_;
  std::vector<index_t> ids_;     // whose keys are read
  std::vector<index_t> asking_;  // whose queries
  Head head_;
  index_t query_ = 0;
  std::size_t width_ = 3;
  std::string lines_;
  Json json_;
};

void run(const ReadsArgs& args) {
  std::vector<Problem> problems;
  if (args.prompt.has_value() == args.tokens.has_value())
    problems.push_back({"--prompt", args.prompt
                                        ? "does not go with --tokens; the text is given in one way"
                                        : "missing; --prompt TEXT or --tokens IDS is needed"});
  if (args.head.has_value() == args.query.has_value())
    problems.push_back({"--head", args.head ? "does not go with --query: one head, or one token"
                                            : "missing; --head LAYER.HEAD or --query N is needed"});
  const std::optional<index_t> length = parse_integer(args.context);
  if (!length || *length < 0)
    problems.push_back({"--context", args.context + ": a whole number, 0 or more, is needed"});
  const std::optional<index_t> threads = parse_integer(args.threads);
  if (!threads || *threads < 0 || *threads > 1024)
    problems.push_back({"--threads", args.threads + ": a whole number from 0 to 1024 is needed"});
  if (!problems.empty()) throw OptionError("reads", std::move(problems));
  const Context context(
      {.isa = {}, .threads = static_cast<int>(*threads), .parallel_for = nullptr});
  Reads(args, {.context = *length}, context).run();
}

void add(CLI::App& command, int&) {
  auto args = std::make_shared<ReadsArgs>();
  add_model(command, args->model);
  command.add_option("--prompt", args->prompt, "The text that is read")->type_name("TEXT");
  command.add_option("--tokens", args->tokens, "The text as token ids: 1,403,407")
      ->type_name("IDS");
  command
      .add_option("--decoder-tokens", args->decoder_tokens,
                  "Of an encoder-decoder, whose cross-attention is shown: the ids that its decoder "
                  "reads (default: the first alone)")
      ->type_name("IDS");
  command.add_option("--head", args->head, "One head: what each token reads most")
      ->type_name("LAYER.HEAD");
  command
      .add_option("--query", args->query,
                  "One token: what it reads, in every head of every layer (-1: the last)")
      ->type_name("N");
  add_context(command, args->context);
  command.add_option("--threads", args->threads, "Threads (0: all cores)")->type_name("N");
  command.add_flag("--json", args->is_json, "Print JSON, with every weight");
  command.callback([args] { run(*args); });
}

}  // namespace

const Command kReads{
    "reads", "Show which tokens a head reads, or which tokens one token reads in every head",
    "# what each token reads in head 5 of layer 10\n"
    "glasshead reads rxnmapper-albert --prompt \"CCO>>CC=O\" --head 10.5\n"
    "# what the last token reads, in every head of every layer\n"
    "glasshead reads SmolLM2.gguf --prompt \"The animal slept because it\" --query -1\n",
    add};

}  // namespace glasshead::cli
