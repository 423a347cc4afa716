#include "cli/trace_model.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "cli/model_files.h"
#include "cli/token_label.h"
#include "cli/values.h"

namespace glasshead::cli {
namespace {

// The vocabulary beside the model; none where only ids are given and it has none.
std::optional<Tokenizer> vocabulary(const TraceArgs& args) {
  if (args.prompt) return load_words(args.name);
  if (!Tokenizer::is_available()) return std::nullopt;
  try {
    return Tokenizer::load(args.name);
  } catch (const Error&) {
    return std::nullopt;
  }
}

HeadTokens with_labels(std::vector<index_t> ids, const std::optional<Tokenizer>& words) {
  HeadTokens tokens;
  for (const index_t id : ids) tokens.labels.push_back(token_label(words, id));
  tokens.ids = std::move(ids);
  return tokens;
}

const char* text_flag(const TraceArgs& args) { return args.prompt ? "--prompt" : "--tokens"; }

HeadTexts read_texts(const TraceArgs& args, const std::optional<Tokenizer>& words,
                     std::vector<Problem>& problems) {
  std::vector<index_t> ids, written;
  if (args.prompt.has_value() == args.tokens.has_value()) {
    problems.push_back({"--prompt", args.prompt
                                        ? "does not go with --tokens; the text is given in one way"
                                        : "missing; a model needs a text to read: --prompt TEXT or "
                                          "--tokens IDS"});
  } else {
    ids =
        args.prompt
            ? ids_of(*words, "--prompt", *args.prompt)
            : parse_integers("--tokens", *args.tokens, problems).value_or(std::vector<index_t>{0});
    if (ids.empty()) problems.push_back({text_flag(args), "has no token; at least one is needed"});
  }
  if (args.decoder_tokens)
    written = parse_integers("--decoder-tokens", *args.decoder_tokens, problems)
                  .value_or(std::vector<index_t>{});
  return {with_labels(std::move(ids), words), with_labels(std::move(written), words)};
}

// A number that has to be given, from 0.
std::optional<index_t> number_of(const char* flag, const std::string& text, index_t count,
                                 const std::string& what, std::vector<Problem>& problems) {
  const std::string right = fmt::format("there are {} {}, numbered from 0", count, what);
  const std::optional<index_t> number = parse_integer(text);
  if (number && *number >= 0 && *number < count) return number;
  problems.push_back({flag, (text.empty() ? "missing" : text) + "; " + right});
  return std::nullopt;
}

void check_kind(const TraceArgs& args, const Model& model, std::vector<Problem>& problems) {
  if (model.kind() == ModelKind::encoder_decoder) {
    if (args.encoder && args.cross)
      problems.push_back({"--cross", "does not go with --encoder, which reads its own text alone"});
    if (args.encoder && args.decoder_tokens)
      problems.push_back({"--decoder-tokens", "does not go with --encoder, which reads none"});
    return;
  }
  const std::string kind =
      fmt::format("this model is {} {}; only an encoder-decoder has ",
                  model.kind() == ModelKind::encoder ? "an" : "a", name(model.kind()));
  if (args.cross) problems.push_back({"--cross", kind + "cross-attention"});
  if (args.encoder) problems.push_back({"--encoder", kind + "two halves to choose from"});
  if (args.decoder_tokens)
    problems.push_back({"--decoder-tokens", kind + "a decoder beside what reads the text"});
}

// Which tokens ask; `text` counts from the end where negative.
index_t query_of(const std::string& text, index_t count, std::vector<Problem>& problems) {
  if (text.empty()) return count - 1;
  const std::optional<index_t> at = parse_integer(text);
  if (at && *at >= -count && *at < count) return *at < 0 ? *at + count : *at;
  problems.push_back(
      {"--query", fmt::format("{}; there are {} tokens: 0 to {}, or -{} to -1 from the end", text,
                              count, count - 1, count)});
  return 0;
}

HeadPlace place_of(const TraceArgs& args, const Model& model, const HeadTexts& texts,
                   std::vector<Problem>& problems) {
  HeadPlace place;
  check_kind(args, model, problems);
  const bool has_both = model.kind() == ModelKind::encoder_decoder;
  place.is_cross = args.cross && has_both && !args.encoder;
  place.is_encoder = args.encoder && has_both;
  const model::HeadLayers layers = layers_for(model, place);
  const std::optional<index_t> layer =
      number_of("--layer", args.layer, layers.count, "layers", problems);
  if (layer) place.layer = *layer;
  const index_t heads = layer ? heads_of(model, place) : layers.most_heads;
  place.head = number_of("--head", args.head, heads, "heads", problems).value_or(0);
  const bool is_written = has_both && !args.encoder;
  const auto count =
      static_cast<index_t>(is_written ? texts.written.ids.size() : texts.read.ids.size());
  if (count > 0) place.query = query_of(args.query, count, problems);
  return place;
}

// The library names its arguments; whoever types a command knows the flags.
std::vector<Problem> in_flags(const TraceArgs& args, const Model& model,
                              std::vector<Problem> problems) {
  const bool has_both = model.kind() == ModelKind::encoder_decoder;
  for (Problem& problem : problems) {
    if (problem.where.starts_with("parts["))
      problem.where = has_both ? "--decoder-tokens" : text_flag(args);
    if (problem.where.starts_with("text")) problem.where = text_flag(args);
  }
  return problems;
}

}  // namespace

bool is_model(const std::string& path) {
  std::error_code ignored;
  return ends_with(path, ".gguf") || ends_with(path, ".safetensors") ||
         std::filesystem::is_directory(path, ignored);
}

void refuse_model_flags(const TraceArgs& args, std::vector<Problem>& problems) {
  std::error_code ignored;
  const bool is_path = args.name.find('/') != std::string::npos;
  const bool is_missing = is_path && !std::filesystem::exists(args.name, ignored);
  const std::string why =
      is_missing ? "reads a head of a model; " + args.name + ": no such file"
                 : "reads a head of a model, and " + args.name +
                       " is a case; a model is a directory, a .safetensors or a .gguf file";
  const std::pair<const char*, bool> flags[] = {
      {"--prompt", args.prompt.has_value()},
      {"--tokens", args.tokens.has_value()},
      {"--layer", !args.layer.empty()},
      {"--cross", args.cross},
      {"--encoder", args.encoder},
      {"--decoder-tokens", args.decoder_tokens.has_value()},
      {"--save-case", !args.save_case.empty()}};
  for (const auto& [flag, is_given] : flags)
    if (is_given) problems.push_back({flag, why});
}

ModelHead read_head(const TraceArgs& args) {
  std::vector<Problem> problems;
  const std::optional<Tokenizer> words = vocabulary(args);
  HeadTexts texts = read_texts(args, words, problems);
  const auto length =
      static_cast<index_t>(std::max(texts.read.ids.size(), texts.written.ids.size()));
  const Model model = Model::load(args.name, {.context = length});
  if (model.kind() == ModelKind::encoder_decoder && texts.written.ids.empty())
    texts.written = with_labels({model.decoder_start()}, words);
  const HeadPlace place = place_of(args, model, texts, problems);
  if (!problems.empty()) throw OptionError("trace", std::move(problems));
  try {
    return head_at(model, place, texts);
  } catch (const OptionError& error) {
    throw OptionError("trace", in_flags(args, model, error.problems()));
  }
}

}  // namespace glasshead::cli
