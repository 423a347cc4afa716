#include "model/weights.h"

#include "base/fail.h"
#include "model/catalog/family.h"
#include "model/tensors.h"

namespace glasshead::model {
namespace {

AttentionWeights read_self(Tensors& tensors, const Description& model, const Stack& stack,
                           const Attention& self, Side side, index_t layer) {
  const index_t d = model.d_model;
  const index_t q = self.heads * self.d_k, k = self.kv_heads * self.d_k;
  const index_t v = self.kv_heads * self.d_v;
  AttentionWeights weights;
  weights.norm = tensors.norm(Slot::attention_norm, d, stack.norm, side, layer);
  if (stack.placement == Placement::sandwich)
    weights.after = tensors.norm(Slot::attention_after, d, stack.norm, side, layer);
  const bool is_packed = tensors.rule(Slot::qkv, side) != nullptr;
  const std::vector<Rows> rows = is_packed
                                     ? std::vector<Rows>{{Slot::qkv, q + k + v}}
                                     : std::vector<Rows>{{Slot::q, q}, {Slot::k, k}, {Slot::v, v}};
  weights.in = tensors.linear(rows, d, self.has_qkv_bias, side, layer);
  weights.out = tensors.linear({{Slot::attention_out, d}}, self.heads * self.d_v, self.has_out_bias,
                               side, layer);
  if (self.qk_norm) {
    weights.q_norm = tensors.norm(Slot::q_norm, self.d_k, *self.qk_norm, side, layer);
    weights.k_norm = tensors.norm(Slot::k_norm, self.d_k, *self.qk_norm, side, layer);
  }
  return weights;
}

AttentionWeights read_cross(Tensors& tensors, const Description& model, const Stack& stack,
                            const Attention& cross, Side side, index_t layer) {
  const index_t d = model.d_model;
  AttentionWeights weights;
  weights.norm = tensors.norm(Slot::cross_norm, d, stack.norm, side, layer);
  weights.in = tensors.linear({{Slot::cross_q, cross.heads * cross.d_k}}, d, cross.has_qkv_bias,
                              side, layer);
  weights.memory = tensors.linear(
      {{Slot::cross_k, cross.kv_heads * cross.d_k}, {Slot::cross_v, cross.kv_heads * cross.d_v}}, d,
      cross.has_qkv_bias, side, layer);
  weights.out = tensors.linear({{Slot::cross_out, d}}, cross.heads * cross.d_v, cross.has_out_bias,
                               side, layer);
  return weights;
}

FeedForwardWeights read_ffn(Tensors& tensors, const Description& model, const Stack& stack,
                            const FeedForward& ffn, Side side, index_t layer) {
  FeedForwardWeights weights;
  weights.norm = tensors.norm(Slot::ffn_norm, model.d_model, stack.norm, side, layer);
  if (stack.placement == Placement::sandwich)
    weights.after = tensors.norm(Slot::ffn_after, model.d_model, stack.norm, side, layer);
  const bool is_packed = tensors.rule(Slot::gate_up, side) != nullptr;
  const bool has_own_name = tensors.rule(Slot::up_alone, side) != nullptr;
  std::vector<Rows> rows;
  if (!ffn.is_gated)
    rows = {{has_own_name ? Slot::up_alone : Slot::up, ffn.width}};
  else if (is_packed)
    rows = {{Slot::gate_up, 2 * ffn.width}};
  else
    rows = {{Slot::gate, ffn.width}, {Slot::up, ffn.width}};
  weights.in = tensors.linear(rows, model.d_model, ffn.has_bias, side, layer);
  weights.out = tensors.linear({{Slot::down, model.d_model}}, ffn.width, ffn.has_bias, side, layer);
  return weights;
}

StackWeights read_stack(Tensors& tensors, const Description& model, const Stack& stack, Side side) {
  StackWeights weights;
  const std::size_t count = stack.layers.size();
  const double shared = static_cast<double>(count) / static_cast<double>(stack.distinct_layers);
  index_t read = 0;  // sets of weights so far: layers of one group follow each other
  for (std::size_t i = 0; i < count; ++i) {
    if (static_cast<index_t>(static_cast<double>(i) / shared) < read) {
      weights.layers.push_back(weights.layers.back());
      continue;
    }
    const Layer& layer = stack.layers[i];
    LayerWeights& made = weights.layers.emplace_back();
    made.self = read_self(tensors, model, stack, layer.self, side, read);
    if (layer.cross) made.cross = read_cross(tensors, model, stack, *layer.cross, side, read);
    made.ffn = read_ffn(tensors, model, stack, layer.ffn, side, read);
    ++read;
  }
  if (stack.has_final_norm)
    weights.final_norm = tensors.norm(Slot::final_norm, model.d_model, stack.norm, side, 0);
  if (stack.relative)
    weights.relative =
        tensors.table(Slot::relative, {stack.relative->buckets, stack.layers[0].self.heads}, side);
  return weights;
}

EmbeddingWeights read_embedding(Tensors& tensors, const Description& model) {
  const Embedding& embedding = model.embedding;
  EmbeddingWeights weights;
  weights.tokens =
      tensors.linear({{Slot::tokens, model.vocab}}, embedding.width, false, Side::only, 0);
  if (embedding.positions > 0)
    weights.positions =
        tensors.table(Slot::positions, {embedding.positions, embedding.width}, Side::only);
  if (embedding.token_types > 0)
    weights.token_types =
        tensors.table(Slot::token_types, {embedding.token_types, embedding.width}, Side::only);
  if (embedding.norm)
    weights.norm =
        tensors.norm(Slot::embedding_norm, embedding.width, *embedding.norm, Side::only, 0);
  if (embedding.is_projected)
    weights.projection = tensors.linear({{Slot::embedding_projection, model.d_model}},
                                        embedding.width, true, Side::only, 0);
  return weights;
}

HeadWeights read_head(Tensors& tensors, const Description& model, const nn::Linear& tokens) {
  const Head& head = model.head;
  HeadWeights weights;
  if (head.has_pooler)
    weights.pooler =
        tensors.linear({{Slot::pooler, model.d_model}}, model.d_model, true, Side::only, 0);
  if (!head.has_logits) return weights;
  const index_t width = head.transform ? model.embedding.width : model.d_model;
  if (head.transform) {
    weights.transform =
        tensors.linear({{Slot::transform, width}}, model.d_model, true, Side::only, 0);
    weights.transform_norm =
        tensors.norm(Slot::transform_norm, width, head.transform->norm, Side::only, 0);
  }
  weights.logits = head.is_tied
                       ? tokens
                       : tensors.linear({{Slot::logits, model.vocab}}, width, false, Side::only, 0);
  if (head.has_bias) weights.bias = tensors.bare(Slot::logits_bias, model.vocab);
  return weights;
}

Weights read(Tensors& tensors, const Description& model) {
  Weights weights;
  const bool has_both = model.encoder && model.decoder;
  weights.embedding = read_embedding(tensors, model);
  if (model.encoder)
    weights.encoder =
        read_stack(tensors, model, *model.encoder, has_both ? Side::encoder : Side::only);
  if (model.decoder)
    weights.decoder =
        read_stack(tensors, model, *model.decoder, has_both ? Side::decoder : Side::only);
  weights.head = read_head(tensors, model, weights.embedding.tokens);
  return weights;
}

// A stored copy of a tied tensor must be the same; a head that is not may be the model's own.
void check_copies(Tensors& tensors, const formats::Checkpoint& files, const Family& family,
                  Description& model) {
  const Names& names = names_of(family, files);
  const std::string tokens = tensors.name(Slot::tokens, Side::only, 0, ".weight");
  const std::string bias = tensors.name(Slot::logits_bias, Side::only, 0, "");
  for (const NameRule& rule : names.rules) {
    const bool is_head = rule.slot == Slot::logits && model.head.has_logits && model.head.is_tied;
    const bool is_bias = rule.slot == Slot::logits_bias_copy && model.head.has_logits;
    if (!is_head && !is_bias && rule.slot != Slot::tokens_copy) continue;
    const std::string name = tensor_name(rule.pattern, prefix_of(names, files), 0) +
                             (rule.layout == Layout::bare ? "" : ".weight");
    const std::string& twin = is_bias ? bias : tokens;
    if (tensors.is_copy(name, twin)) continue;
    if (is_head && family.may_untie)
      model.head.is_tied = false;
    else
      tensors.differs(name, twin);
  }
}

bool survey(Tensors& tensors, const formats::Checkpoint& files, const Family& family,
            Description& model, std::vector<Problem>& problems) {
  const std::size_t before = problems.size();
  check_copies(tensors, files, family, model);
  read(tensors, model);
  tensors.report_unused();
  return problems.size() == before;
}

}  // namespace

bool take_inventory(const formats::Checkpoint& files, Description& description, Inventory& out,
                    std::vector<Problem>& problems) {
  const Family* family = family_of(files, problems);
  if (family == nullptr) return false;
  Tensors tensors(files, *family, problems);
  if (!survey(tensors, files, *family, description, problems)) return false;
  out = tensors.inventory();
  return true;
}

bool load(const formats::Checkpoint& files, const LoadOptions& options, Loaded& out,
          std::vector<Problem>& problems) {
  if (!describe(files, options, out.description, problems)) return false;
  const Family* family = family_of(files, problems);
  Tensors tensors(files, *family, problems);
  if (!survey(tensors, files, *family, out.description, problems)) return false;
  tensors.build();
  out.weights = read(tensors, out.description);
  out.inventory = tensors.inventory();
  out.weights.parameters = out.inventory.parameters;
  out.weights.bytes = tensors.bytes();
  return true;
}

Loaded load(const formats::Checkpoint& files, const LoadOptions& options) {
  Loaded loaded;
  std::vector<Problem> problems;
  if (!load(files, options, loaded, problems)) fail(ErrorKind::format, "load", std::move(problems));
  return loaded;
}

}  // namespace glasshead::model
