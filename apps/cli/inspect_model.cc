#include "cli/inspect_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "glasshead/model_facts.h"

namespace glasshead::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr index_t kContextIfNotSaid = 512;  // T5's files name no length; it was trained on this

std::string grouped(index_t n) {
  std::string digits = std::to_string(n);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

std::string three_digits(double x) {
  if (x >= 99.95) return fmt::format("{:.0f}", x);
  return x >= 9.995 ? fmt::format("{:.1f}", x) : fmt::format("{:.2f}", x);
}

// "1.34 GB": powers of ten, as disks and networks count.
std::string with_unit(double x, const char* unit) {
  constexpr std::array<const char*, 7> kPrefixes{"", "k", "M", "G", "T", "P", "E"};
  std::size_t at = 0;
  while (x >= 999.5 && at + 1 < kPrefixes.size()) {
    x /= 1000;
    ++at;
  }
  const std::string number = at == 0 ? fmt::format("{:.0f}", x) : three_digits(x);
  return number + " " + kPrefixes[at] + unit;
}

std::string bytes_text(double bytes) { return with_unit(bytes, "B"); }

// Layers of one kind, and which they are.
struct LayerKind {
  LayerFacts layer;
  std::vector<index_t> at;
};

std::vector<LayerKind> kinds_of(const StackFacts& stack) {
  std::vector<LayerKind> kinds;
  for (std::size_t i = 0; i < stack.layers.size(); ++i) {
    auto same = std::find_if(kinds.begin(), kinds.end(),
                             [&](const LayerKind& kind) { return kind.layer == stack.layers[i]; });
    if (same == kinds.end()) same = kinds.insert(kinds.end(), {stack.layers[i], {}});
    same->at.push_back(static_cast<index_t>(i));
  }
  return kinds;
}

std::string heads_text(const AttentionFacts& attention) {
  const index_t share = attention.heads / attention.kv_heads;
  const std::string text = fmt::format("{} query heads of {}, ", attention.heads, attention.d_k);
  if (share == 1) return text + "each with keys and values of its own";
  return text + fmt::format("{} key/value {}: {} share one", attention.kv_heads,
                            attention.kv_heads == 1 ? "head" : "heads", share);
}

std::string sight_text(const AttentionFacts& attention) {
  if (!attention.is_causal) return "all tokens";
  if (attention.window == 0) return "all earlier tokens";
  return fmt::format("a window of {} tokens", grouped(attention.window));
}

std::string line(const std::string& label, const std::string& value) {
  return fmt::format("{:<15}{}\n", label, value);
}

std::string attention_lines(const ModelFacts& model, const AttentionFacts& attention,
                            bool is_cross) {
  std::string text = line(is_cross ? "  cross" : "  attention", heads_text(attention));
  if (is_cross) return text;
  text += line("  sees", sight_text(attention));
  const bool is_learned = attention.positions == "none" && model.learned_positions > 0;
  text += line("  positions", is_learned ? "learned, added to the embedding" : attention.positions);
  std::string more = fmt::format("{:.6g}", attention.scale);
  if (attention.softcap > 0) more += fmt::format(", softcap {:g}", attention.softcap);
  if (attention.has_qk_norm) more += ", heads of q and k normalised";
  return text + line("  scale", more);
}

std::string stack_lines(const ModelFacts& model, const StackFacts& stack) {
  const std::vector<LayerKind> kinds = kinds_of(stack);
  const std::size_t layers = stack.layers.size();
  std::string head = fmt::format("{} layers, {} {}", layers, stack.norm,
                                 stack.placement == "pre"    ? "before each half"
                                 : stack.placement == "post" ? "after each half"
                                                             : "before and after each half");
  head += fmt::format(", epsilon {:g}", stack.eps);
  if (stack.distinct_layers < static_cast<index_t>(layers))
    head += fmt::format("; {} with weights of {} own, shared", stack.distinct_layers,
                        stack.distinct_layers == 1 ? "its" : "their");
  std::string text = line(stack.name, head);
  for (const LayerKind& kind : kinds) {
    if (kinds.size() > 1) text += line("  layers", ranges(kind.at));
    text += attention_lines(model, kind.layer.self, false);
    if (kind.layer.cross) text += attention_lines(model, *kind.layer.cross, true);
    text += line("  feed-forward",
                 fmt::format("{}, {}{}", grouped(kind.layer.d_ff),
                             kind.layer.is_gated ? "gated " : "", kind.layer.activation));
  }
  return text;
}

std::string stored_text(const ModelFacts& model) {
  if (model.format.empty())
    return bytes_text(static_cast<double>(model.bytes)) + " in 16 bits (no files)";
  std::string types;
  for (const StoredFacts& one : model.stored)
    types += fmt::format("{}{} in {}", types.empty() ? "" : ", ",
                         bytes_text(static_cast<double>(one.bytes)), one.type);
  return model.stored.size() == 1 ? types
                                  : bytes_text(static_cast<double>(model.bytes)) + ": " + types;
}

std::string context_text(const ModelFacts& model) {
  if (model.context_length == 0) return "no length given";
  std::string text = "made for " + grouped(model.context_length) + " tokens";
  if (model.position_limit > 0) text += fmt::format("; at most {}", grouped(model.position_limit));
  return text;
}

bool has_decoder(const ModelFacts& model) { return model.kind != "encoder"; }

std::string cost_lines(const ModelFacts& model, const ModelCost& cost) {
  std::string text = fmt::format("\nAt {} tokens\n", grouped(cost.tokens));
  if (has_decoder(model)) {
    std::string cache = bytes_text(static_cast<double>(cost.cache_bytes)) + " in f32, " +
                        bytes_text(static_cast<double>(cost.cache_bytes) / 2) + " in 16 bits";
    if (cost.cache_bytes_per_head != cost.cache_bytes)
      cache += fmt::format(
          " ({:.3g} times less than if every head had its own)",
          static_cast<double>(cost.cache_bytes_per_head) / static_cast<double>(cost.cache_bytes));
    text += line("  KV cache", cache);
    if (cost.cache_bytes_windows != cost.cache_bytes)
      text += line("", bytes_text(static_cast<double>(cost.cache_bytes_windows)) +
                           " of it within the windows");
  }
  const double share = cost.attention_flops / (cost.attention_flops + cost.matrix_flops);
  text += line("  to read", fmt::format("{} in attention, {} in matrices: attention is {:.1f} %",
                                        with_unit(cost.attention_flops, "FLOP"),
                                        with_unit(cost.matrix_flops, "FLOP"), 100 * share));
  if (has_decoder(model))
    text += line("  next token", fmt::format("{} in attention, {} in matrices",
                                             with_unit(cost.attention_flops_next, "FLOP"),
                                             with_unit(cost.matrix_flops_next, "FLOP")));
  return text + line("  all weights", bytes_text(cost.weights_bytes) +
                                          " if every head's were stored in f32; none have to be");
}

std::string plain_text(const ModelFacts& model, const ModelCost& cost) {
  std::string text =
      line("model", model.name + (model.format.empty() ? " (a published configuration)"
                                                       : " (" + model.format + ")"));
  text += line("family", model.family + ", " + model.kind);
  text += line("parameters", grouped(model.parameters));
  text += line("weights", stored_text(model));
  text += line("width", grouped(model.d_model));
  text +=
      line("vocabulary", grouped(model.vocab) + (model.has_tied_head ? ", head tied to it" : ""));
  text += line("context", context_text(model));
  for (const StackFacts& stack : model.stacks) text += stack_lines(model, stack);
  return text + cost_lines(model, cost);
}

Json attention_json(const AttentionFacts& attention) {
  return {{"heads", attention.heads},
          {"kv_heads", attention.kv_heads},
          {"d_k", attention.d_k},
          {"d_v", attention.d_v},
          {"scale", attention.scale},
          {"softcap", attention.softcap},
          {"is_causal", attention.is_causal},
          {"window", attention.window},
          {"positions", attention.positions},
          {"has_qk_norm", attention.has_qk_norm}};
}

Json stack_json(const StackFacts& stack) {
  Json layers = Json::array();
  for (const LayerFacts& layer : stack.layers) {
    Json one{{"self", attention_json(layer.self)}};
    if (layer.cross) one["cross"] = attention_json(*layer.cross);
    one["d_ff"] = layer.d_ff;
    one["activation"] = layer.activation;
    one["is_gated"] = layer.is_gated;
    layers.push_back(one);
  }
  return {{"name", stack.name},
          {"norm", stack.norm},
          {"eps", stack.eps},
          {"placement", stack.placement},
          {"distinct_layers", stack.distinct_layers},
          {"layers", layers}};
}

Json model_json(const ModelFacts& model, const ModelCost& cost) {
  Json stored = Json::array(), stacks = Json::array();
  for (const StoredFacts& one : model.stored)
    stored.push_back({{"type", one.type},
                      {"tensors", one.tensors},
                      {"parameters", one.parameters},
                      {"bytes", one.bytes}});
  for (const StackFacts& stack : model.stacks) stacks.push_back(stack_json(stack));
  return {{"name", model.name},
          {"format", model.format},
          {"family", model.family},
          {"kind", model.kind},
          {"parameters", model.parameters},
          {"bytes", model.bytes},
          {"stored", stored},
          {"vocab", model.vocab},
          {"d_model", model.d_model},
          {"context_length", model.context_length},
          {"position_limit", model.position_limit},
          {"learned_positions", model.learned_positions},
          {"has_logits", model.has_logits},
          {"has_tied_head", model.has_tied_head},
          {"stacks", stacks},
          {"cost",
           {{"tokens", cost.tokens},
            {"cache_bytes", cost.cache_bytes},
            {"cache_bytes_windows", cost.cache_bytes_windows},
            {"cache_bytes_per_head", cost.cache_bytes_per_head},
            {"attention_flops", cost.attention_flops},
            {"matrix_flops", cost.matrix_flops},
            {"attention_flops_next", cost.attention_flops_next},
            {"matrix_flops_next", cost.matrix_flops_next},
            {"weights_bytes", cost.weights_bytes}}}};
}

std::string json_text(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + ("`" + word + "`");
  return text.empty() ? "-" : text;
}

}  // namespace

std::string ranges(const std::vector<index_t>& numbers) {
  std::string text;
  for (std::size_t begin = 0; begin < numbers.size();) {
    std::size_t end = begin;
    while (end + 1 < numbers.size() && numbers[end + 1] == numbers[end] + 1) ++end;
    text += (text.empty() ? "" : ", ") + std::to_string(numbers[begin]);
    if (end > begin) text += (end == begin + 1 ? ", " : "-") + std::to_string(numbers[end]);
    begin = end + 1;
  }
  return text;
}

std::string model_report(const std::string& path_or_name, std::optional<index_t> context,
                         bool is_json) {
  const ModelFacts model = model_facts(path_or_name);
  const index_t made_for = model.context_length > 0 ? model.context_length : kContextIfNotSaid;
  const ModelCost cost = model_cost(model, context.value_or(made_for));
  return is_json ? json_text(model_json(model, cost)) : plain_text(model, cost);
}

std::string families_report(bool is_json) {
  const std::vector<FamilyFacts> families = model_families();
  if (!is_json) {
    std::string text =
        "| model_type | GGUF | models | norm | positions | attention | feed-forward |\n"
        "|---|---|---|---|---|---|---|\n";
    for (const FamilyFacts& one : families)
      text += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", joined(one.model_types),
                          joined(one.gguf), one.examples, one.norm, one.positions, one.attention,
                          one.feed_forward);
    return text;
  }
  Json json = Json::array();
  for (const FamilyFacts& one : families)
    json.push_back({{"name", one.name},
                    {"model_types", one.model_types},
                    {"gguf", one.gguf},
                    {"examples", one.examples},
                    {"norm", one.norm},
                    {"positions", one.positions},
                    {"attention", one.attention},
                    {"feed_forward", one.feed_forward}});
  return json_text(json);
}

std::string models_report(bool is_json) {
  if (is_json) return json_text(known_models());
  std::string text;
  for (const std::string& name : known_models()) text += name + "\n";
  return text;
}

}  // namespace glasshead::cli
