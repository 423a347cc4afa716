// What a case builds around attention: positions, norms, feed-forward, blocks, unembedding.
#include <fmt/format.h>

#include "wire/case_builder.h"

namespace glasshead::wire {
namespace {

// "activation"; `otherwise` when absent.
nn::Activation read_activation(CaseBuilder& build, JsonValue value, const std::string& path,
                               nn::Activation otherwise) {
  const auto kind = build.read.choice(value, path, {"none", "relu", "gelu", "gelu_tanh", "silu"});
  if (!kind) return otherwise;
  constexpr nn::Activation kKinds[] = {nn::Activation::none, nn::Activation::relu,
                                       nn::Activation::gelu, nn::Activation::gelu_tanh,
                                       nn::Activation::silu};
  return kKinds[*kind];
}

// W_<name> and b_<name>; tap names are the fields' names, but W and b alone, which are W_FFN,
// b_FFN.
nn::Projection read_projection(CaseBuilder& build, JsonValue parent, const std::string& path,
                               const std::string& prefix, const std::string& name) {
  const std::string suffix = name.empty() ? "" : "_" + name;
  const std::string tap = name.empty() ? "_FFN" : suffix;
  nn::Projection out;
  out.weight = build.input(parent.find("W" + suffix), join(path, "W" + suffix), prefix + "W" + tap);
  out.bias =
      build.input(parent.find("b" + suffix), join(path, "b" + suffix), prefix + "b" + tap, 1, 1);
  return out;
}

std::optional<nn::FeedForward> read_feed_forward(CaseBuilder& build, JsonValue value,
                                                 const std::string& path,
                                                 const std::string& prefix) {
  if (!build.read.object(value, path,
                         {"W", "b", "W_1", "b_1", "W_2", "b_2", "W_up", "b_up", "W_gate", "b_gate",
                          "W_down", "b_down", "activation"}))
    return std::nullopt;
  const auto need = [&](std::initializer_list<const char*> names) {
    for (const char* name : names)
      if (!value.find(name)) build.read.problem(join(path, name), "is missing");
  };
  const bool is_one = static_cast<bool>(value.find("W"));
  const bool is_two = value.find("W_1") || value.find("W_2");
  const bool is_gated = value.find("W_up") || value.find("W_gate") || value.find("W_down");
  if (static_cast<int>(is_one) + static_cast<int>(is_two) + static_cast<int>(is_gated) != 1) {
    build.read.problem(path,
                       "must have exactly one of these forms: W; W_1 and W_2; W_gate, W_up "
                       "and W_down");
    return std::nullopt;
  }
  nn::FeedForward out;
  const std::string activation = join(path, "activation");
  if (is_one) {
    out.up = read_projection(build, value, path, prefix, "");
    if (value.find("activation"))
      build.read.problem(activation,
                         "has no place in one linear layer x·W; W_1, W_2 have one "
                         "between them");
  } else if (is_two) {
    need({"W_1", "W_2"});
    out.up = read_projection(build, value, path, prefix, "1");
    out.down = read_projection(build, value, path, prefix, "2");
    out.activation =
        read_activation(build, value.find("activation"), activation, nn::Activation::relu);
  } else {
    need({"W_gate", "W_up", "W_down"});
    out.up = read_projection(build, value, path, prefix, "up");
    out.gate = read_projection(build, value, path, prefix, "gate");
    out.down = read_projection(build, value, path, prefix, "down");
    out.activation =
        read_activation(build, value.find("activation"), activation, nn::Activation::silu);
  }
  // Biases of a form that isn't there.
  for (const auto& [name, belongs] :
       {std::pair{"b", is_one}, std::pair{"b_1", is_two}, std::pair{"b_2", is_two},
        std::pair{"b_up", is_gated}, std::pair{"b_gate", is_gated}, std::pair{"b_down", is_gated}})
    if (!belongs && value.find(name))
      build.read.problem(join(path, name), "has no weight beside it");
  return out;
}

void read_norms(CaseBuilder& build, JsonValue parent, const std::string& path,
                const std::string& prefix, nn::Block& out) {
  std::optional<nn::NormPlacement> placement;
  if (const JsonValue norm = parent.find("norm")) {
    out.attention_norm = read_norm(build, norm, join(path, "norm"), prefix + "norm", &placement);
    if (out.cross_attention) out.cross_norm = out.attention_norm;
    if (out.feed_forward) out.feed_forward_norm = out.attention_norm;
  }
  const std::pair<const char*, nn::Norm*> own[] = {{"attention_norm", &out.attention_norm},
                                                   {"cross_norm", &out.cross_norm},
                                                   {"feed_forward_norm", &out.feed_forward_norm}};
  for (const auto& [name, norm] : own) {
    const JsonValue value = parent.find(name);
    if (!value) continue;
    const std::string at = join(path, name);
    if (parent.find("norm")) {
      build.read.problem(at,
                         "contradicts " + join(path, "norm") + ", which is for every sub-layer");
      continue;
    }
    std::optional<nn::NormPlacement> here;
    *norm = read_norm(build, value, at, prefix + name, &here);
    if (placement && here && *placement != *here)
      build.read.problem(join(at, "placement"), "differs from the block's other norm");
    if (here) placement = here;
    const bool has_layer = norm == &out.cross_norm          ? out.cross_attention.has_value()
                           : norm == &out.feed_forward_norm ? out.feed_forward.has_value()
                                                            : true;
    if (!has_layer) build.read.problem(at, "has no sub-layer to belong to");
  }
  if (placement) out.placement = *placement;
}

}  // namespace

nn::Norm read_norm(CaseBuilder& build, JsonValue value, const std::string& path,
                   const std::string& tap, std::optional<nn::NormPlacement>* placement) {
  nn::Norm out;
  const bool is_object =
      placement != nullptr
          ? build.read.object(value, path, {"kind", "gain", "bias", "eps", "placement"})
          : build.read.object(value, path, {"kind", "gain", "bias", "eps"});
  if (!is_object) return out;
  if (!value.find("kind")) build.read.problem(join(path, "kind"), "is missing: layer or rms");
  const auto kind = build.read.choice(value.find("kind"), join(path, "kind"), {"layer", "rms"});
  out.kind = kind == 1 ? nn::NormKind::rms : nn::NormKind::layer;
  out.gain = build.input(value.find("gain"), join(path, "gain"), tap + "_gain", 1, 1);
  out.bias = build.input(value.find("bias"), join(path, "bias"), tap + "_bias", 1, 1);
  if (kind == 1 && value.find("bias"))
    build.read.problem(join(path, "bias"), "has no place in an rms norm: it has a gain only");
  if (const auto eps = build.read.number(value.find("eps"), join(path, "eps"))) {
    if (*eps < 0) build.read.problem(join(path, "eps"), "is negative");
    out.eps = *eps;
  }
  if (placement != nullptr) {
    const auto where =
        build.read.choice(value.find("placement"), join(path, "placement"), {"pre", "post"});
    *placement = where == 1 ? nn::NormPlacement::post : nn::NormPlacement::pre;
  }
  return out;
}

nn::Block read_block(CaseBuilder& build, JsonValue parent, const std::string& path,
                     const std::string& prefix, bool has_given) {
  nn::Block out;
  const JsonValue cross = parent.find("cross_attention");
  out.is_cross = build.has_context && !cross;
  AttentionPlace place;
  place.path = join(path, "attention");
  place.prefix = prefix;
  place.keys =
      has_given ? build.c.key_labels : (out.is_cross ? build.context_labels : build.c.query_labels);
  place.has_given = has_given;
  out.attention.options.empty_row = EmptyRow::error;
  read_attention(build, parent.find("attention"), place, out.attention);
  if (cross) {
    AttentionPlace second;
    second.path = join(path, "cross_attention");
    second.prefix = prefix + "cross.";
    second.keys = build.context_labels;
    out.cross_attention.emplace();
    read_attention(build, cross, second, *out.cross_attention);
    if (!build.has_context)
      build.read.problem(second.path, "has no context to read: {\"context\": {\"X\": ...}}");
  }
  out.has_residual =
      build.read.boolean(parent.find("residual"), join(path, "residual")).value_or(false);
  if (const JsonValue value = parent.find("feed_forward"))
    out.feed_forward = read_feed_forward(build, value, join(path, "feed_forward"), prefix);
  read_norms(build, parent, path, prefix, out);
  return out;
}

void read_positions(CaseBuilder& build, JsonValue value) {
  const std::string path = "positions";
  if (!build.read.object(value, path, {"kind", "table", "base", "pairing", "rotary", "start"}))
    return;
  const auto at = [&](std::string_view name) { return join(path, name); };
  if (!value.find("kind"))
    build.read.problem(at("kind"), "is missing: none, sinusoidal, learned or rope");
  const auto kind =
      build.read.choice(value.find("kind"), at("kind"), {"none", "sinusoidal", "learned", "rope"});
  if (!kind) return;
  nn::Network& network = build.c.network;
  const bool is_learned = *kind == 2;
  const bool is_rope = *kind == 3;
  network.positions.kind = *kind == 1   ? nn::PositionKind::sinusoidal
                           : is_learned ? nn::PositionKind::learned
                                        : nn::PositionKind::none;
  network.first_position =
      build.read.integer(value.find("start"), at("start"), 0, kMostExtent).value_or(0);
  network.positions.table = build.input(value.find("table"), at("table"), "P");
  if (is_learned && !value.find("table"))
    build.read.problem(at("table"), "is missing: one row per position");
  const auto base = build.read.number(value.find("base"), at("base"));
  if (base && !(*base > 0)) build.read.problem(at("base"), "must be positive");
  const auto pairing =
      build.read.choice(value.find("pairing"), at("pairing"), {"halves", "adjacent"});
  const auto rotary = build.read.integer(value.find("rotary"), at("rotary"), 0, kMostExtent);
  const auto only = [&](const char* name, bool belongs, const char* kinds) {
    if (value.find(name) && !belongs)
      build.read.problem(at(name), std::string("belongs to the kind ") + kinds);
  };
  only("table", is_learned, "learned");
  only("base", is_rope || *kind == 1, "sinusoidal or rope");
  only("pairing", is_rope, "rope");
  only("rotary", is_rope, "rope");
  network.positions.base = base.value_or(network.positions.base);
  if (!is_rope) return;
  nn::Rope rope;
  rope.base = base.value_or(rope.base);
  rope.pairing = pairing == 1 ? nn::RopePairing::adjacent : nn::RopePairing::halves;
  rope.rotary = rotary.value_or(0);
  // Keys from a context stand at positions of their own, so only attention over itself is turned.
  for (nn::Block& block : network.blocks)
    if (!block.is_cross) block.attention.rope = rope;
}

void read_unembedding(CaseBuilder& build, JsonValue value) {
  if (!value) return;
  const std::string path = "unembed";
  nn::Unembedding out;
  if (value.is(JsonKind::string)) {
    if (!build.read.choice(value, path, {"tied"})) return;
    out.is_tied = true;
    if (build.find_input("E") == nullptr)
      build.read.problem(path, "is tied to the embedding table, and there is none: E or W_vocab");
  } else {
    if (!build.read.object(value, path, {"W", "bias", "softcap"})) return;
    out.is_tied = !value.find("W");
    out.weight = build.input(value.find("W"), join(path, "W"), "W_U");
    if (out.is_tied && build.find_input("E") == nullptr)
      build.read.problem(join(path, "W"),
                         "is missing, and there is no embedding table to be tied "
                         "to: E or W_vocab");
    out.bias = build.input(value.find("bias"), join(path, "bias"), "b_U", 1, 1);
    if (const auto softcap = build.read.number(value.find("softcap"), join(path, "softcap"))) {
      if (*softcap < 0) build.read.problem(join(path, "softcap"), "is negative");
      out.softcap = *softcap;
    }
  }
  build.c.network.embedding = build.find_input("E") != nullptr ? "E" : "";
  build.c.network.unembedding = out;
}

}  // namespace glasshead::wire
