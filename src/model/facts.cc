#include <algorithm>

#include <fmt/format.h>

#include "base/fail.h"
#include "core/findings.h"
#include "glasshead/model_facts.h"
#include "model/catalog/family.h"
#include "model/known_models.h"
#include "model/parameters.h"
#include "model/places.h"
#include "model/weights.h"

namespace glasshead {
namespace {

// Bases are whole numbers in every published model.
std::string base_text(double base) {
  if (!(base < 1e15)) return number_text(base);
  return base == static_cast<double>(static_cast<index_t>(base))
             ? std::to_string(static_cast<index_t>(base))
             : "about " + std::to_string(static_cast<index_t>(base));
}

std::string positions_of(const model::Stack& stack, const model::Attention& attention) {
  if (attention.has_relative && stack.relative)
    return fmt::format("relative, {} buckets up to distance {}", stack.relative->buckets,
                       stack.relative->max_distance);
  if (attention.rotary < 0) return "none";
  const model::Rotary& rotary = stack.rotaries[static_cast<std::size_t>(attention.rotary)];
  std::string text = "rotary, base " + base_text(rotary.base);
  const auto turning = static_cast<index_t>(2 * rotary.frequencies.size());
  if (turning != attention.d_k) text += fmt::format(", {} of {}", turning, attention.d_k);
  if (!rotary.scaling.empty()) text += ", " + rotary.scaling;
  return text;
}

AttentionFacts attention_facts(const model::Stack& stack, const model::Attention& attention) {
  return {.heads = attention.heads,
          .kv_heads = attention.kv_heads,
          .d_k = attention.d_k,
          .d_v = attention.d_v,
          .scale = attention.scale,
          .softcap = attention.softcap,
          .is_causal = attention.is_causal,
          .window = attention.window,
          .positions = positions_of(stack, attention),
          .has_qk_norm = attention.qk_norm.has_value()};
}

StackFacts stack_facts(const char* name, const model::Stack& stack) {
  StackFacts facts{.name = name,
                   .norm = model::name(stack.norm.kind),
                   .eps = stack.norm.eps,
                   .placement = model::name(stack.placement),
                   .layers = {},
                   .distinct_layers = stack.distinct_layers};
  for (const model::Layer& layer : stack.layers) {
    LayerFacts& made = facts.layers.emplace_back();
    made.self = attention_facts(stack, layer.self);
    if (layer.cross) made.cross = attention_facts(stack, *layer.cross);
    made.d_ff = layer.ffn.width;
    made.activation = nn::name(layer.ffn.activation);
    made.is_gated = layer.ffn.is_gated;
  }
  return facts;
}

ModelFacts facts_of(const model::Description& model, const std::string& name) {
  ModelFacts facts;
  facts.name = name;
  facts.family = model.family;
  facts.kind = glasshead::name(model.kind);
  facts.vocab = model.vocab;
  facts.d_model = model.d_model;
  facts.context_length = model.context_length;
  facts.position_limit = model.position_limit;
  facts.learned_positions = model.embedding.positions;
  facts.has_logits = model.head.has_logits;
  facts.has_tied_head = model.head.has_logits && model.head.is_tied;
  if (model.encoder) facts.stacks.push_back(stack_facts("encoder", *model.encoder));
  if (model.decoder) facts.stacks.push_back(stack_facts("decoder", *model.decoder));
  return facts;
}

void add_stored(const formats::StoredTensor& tensor, std::vector<StoredFacts>& stored) {
  const std::string type = name(tensor.type);
  auto at = std::find_if(stored.begin(), stored.end(),
                         [&](const StoredFacts& one) { return one.type == type; });
  if (at == stored.end()) at = stored.insert(stored.end(), {.type = type});
  index_t count = 1;
  for (const index_t extent : tensor.shape) count *= extent;
  ++at->tensors;
  at->parameters += count;
  at->bytes += static_cast<index_t>(tensor.bytes.size());
}

ModelFacts facts_of_files(const std::string& path) {
  const formats::Checkpoint files = formats::Checkpoint::open(path);
  model::Description description;
  model::Inventory inventory;
  std::vector<Problem> problems;
  if (!model::describe(files, {}, description, problems) ||
      !model::take_inventory(files, description, inventory, problems))
    fail(ErrorKind::format, "model_facts", std::move(problems));
  ModelFacts facts = facts_of(description, path);
  facts.format = files.format() == formats::CheckpointFormat::gguf ? "gguf" : "safetensors";
  facts.parameters = inventory.parameters;
  facts.bytes = inventory.bytes;
  for (const formats::StoredTensor* tensor : inventory.used) add_stored(*tensor, facts.stored);
  std::sort(facts.stored.begin(), facts.stored.end(),
            [](const StoredFacts& a, const StoredFacts& b) {
              return a.bytes != b.bytes ? a.bytes > b.bytes : a.type < b.type;
            });
  return facts;
}

model::Description known_description(const std::string& config) {
  formats::Checkpoint files;
  model::Description description;
  std::vector<Problem> problems;
  if (!formats::Checkpoint::parse_safetensors(model::no_tensors(), config, files, problems) ||
      !model::describe(files, {.has_tensors = false}, description, problems))
    fail(ErrorKind::format, "model_facts", std::move(problems));
  return description;
}

model::Description description_of_files(const std::string& path) {
  const formats::Checkpoint files = formats::Checkpoint::open(path);
  model::Description description;
  std::vector<Problem> problems;
  if (!model::describe(files, {}, description, problems))
    fail(ErrorKind::format, "model_places", std::move(problems));
  return description;
}

// "decoder.5.self.q" -> "decoder.*.self.q"
std::string pattern_of(const model::NamedPlace& at) {
  if (at.place.layer < 0) return at.name;
  const std::string layer = "." + std::to_string(at.place.layer) + ".";
  std::string name = at.name;
  return name.replace(name.find(layer), layer.size(), ".*.");
}

const model::Stack& stack_of(const model::Description& model, const model::Place& place) {
  return *(std::string(place.stack) == "encoder" ? model.encoder : model.decoder);
}

std::vector<std::string> shape_of(const model::Description& model, const model::NamedPlace& at) {
  using model::Point;
  const Point point = at.place.point;
  const auto size = [](index_t n) { return std::to_string(n); };
  if (at.place.layer < 0 || point < Point::self_q || point > Point::cross_projected ||
      point == Point::self_projected || point == Point::cross_norm ||
      point == Point::cross_projected)
    return {"tokens", size(at.width)};
  const model::Layer& layer =
      stack_of(model, at.place).layers[static_cast<std::size_t>(at.place.layer)];
  const model::Attention& a = point > Point::self_projected ? *layer.cross : layer.self;
  switch (point) {
    case Point::self_k:
    case Point::self_v:
    case Point::cross_k:
    case Point::cross_v: {
      const bool is_cross = point == Point::cross_k || point == Point::cross_v;
      return {size(a.kv_heads), is_cross ? "keys" : "tokens", size(at.width / a.kv_heads)};
    }
    case Point::self_scores:
    case Point::cross_scores:
    case Point::self_weights:
    case Point::cross_weights:
      return {size(a.heads), "tokens", "keys"};
    case Point::self_lse:
    case Point::cross_lse:
      return {size(a.heads), "tokens"};
    default:
      return {size(a.heads), "tokens", size(at.width / a.heads)};
  }
}

}  // namespace

std::vector<PlaceFacts> model_places(const std::string& path_or_name) {
  const std::optional<std::string> config = model::known_config(path_or_name);
  const model::Description model =
      config ? known_description(*config) : description_of_files(path_or_name);
  std::vector<PlaceFacts> places;
  for (const model::NamedPlace& at : model::places_of(model)) {
    PlaceFacts one{.name = pattern_of(at), .layers = {}, .shape = shape_of(model, at)};
    auto same = std::find_if(places.begin(), places.end(), [&](const PlaceFacts& other) {
      return other.name == one.name && other.shape == one.shape;
    });
    if (same == places.end()) same = places.insert(places.end(), std::move(one));
    if (at.place.layer >= 0) same->layers.push_back(at.place.layer);
  }
  return places;
}

ModelFacts model_facts(const std::string& path_or_name) {
  const std::optional<std::string> config = model::known_config(path_or_name);
  if (!config) return facts_of_files(path_or_name);
  const model::Description description = known_description(*config);
  ModelFacts facts = facts_of(description, path_or_name);
  facts.parameters = model::count_parameters(description);
  facts.bytes = 2 * facts.parameters;
  return facts;
}

std::vector<FamilyFacts> model_families() {
  std::vector<FamilyFacts> all;
  for (const model::Family* family : model::families())
    all.push_back({.name = family->name,
                   .model_types = {family->model_types.begin(), family->model_types.end()},
                   .gguf = {family->gguf.begin(), family->gguf.end()},
                   .examples = family->examples,
                   .norm = family->norm,
                   .positions = family->positions,
                   .attention = family->attention,
                   .feed_forward = family->feed_forward});
  return all;
}

}  // namespace glasshead
