// The whole description, from ids to the next token.
#include "nn/network.h"

#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/fail.h"
#include "core/steps.h"
#include "nn/walk.h"

namespace glasshead::nn {
namespace {

bool is_given(const Projection& projection) {
  return !projection.weight.empty() || !projection.bias.empty();
}

// Whether the first layers read X; an attention over given q, k and v need not.
bool reads_x(const Network& network) {
  if (network.blocks.empty() || network.positions.kind != PositionKind::none) return true;
  const Block& first = network.blocks[0];
  const Attention& attention = first.attention;
  const bool has_pre_norm =
      first.placement == NormPlacement::pre && first.attention_norm.kind != NormKind::none;
  return attention.given_q.empty() || first.has_residual || has_pre_norm ||
         (!first.is_cross && (attention.given_k.empty() || attention.given_v.empty()));
}

}  // namespace

Value Walk::positioned(const Value& x) {
  const Positions& positions = network_.positions;
  const index_t first = network_.first_position + (cache_ ? cache_->earlier : 0);
  const std::vector<StepNumber> start{{"first_position", static_cast<double>(first)}};
  if (positions.kind == PositionKind::sinusoidal) {
    if (!(positions.base > 0) || !std::isfinite(positions.base))
      problem("positions.base", "must be a finite number above 0");
    return add(find_op("sinusoidal"), {"x0", x.shape, "x0"}, {x.tap},
               {{"base", positions.base}, start[0]});
  }
  if (positions.kind == PositionKind::none) return x;
  const Value table = matrix_input(positions.table, "a row for each position, [rows, d_model]");
  if (table.is_known() && x.is_known()) {
    if (table.columns() != x.columns())
      problem(table.tap,
              fmt::format("{} where {} is {}: columns must equal d_model = {}",
                          size_text(*table.shape), x.tap, size_text(*x.shape), x.columns()));
    if (table.rows() < first + x.rows())
      problem(table.tap, fmt::format("has {} rows where positions go up to {}: each needs a row",
                                     table.rows(), first + x.rows() - 1));
  }
  return add(find_op("learned"), {"x0", x.shape, "x0"}, {x.tap, table.tap}, start);
}

Value Walk::begin() {
  if (network_.first_position < 0) problem("first_position", "must be 0 or more");
  if (network_.ids.empty()) {
    if (!reads_x(network_)) return {"X", std::nullopt, "X"};
    return positioned(matrix_input("X", "one row per token, [n, d_model]"));
  }
  const auto ids = input(network_.ids, "token ids [n]");
  if (ids && ids->size() != 1)
    problem(network_.ids, size_text(*ids) + ": token ids are one row of whole numbers");
  if (network_.embedding.empty()) {
    problem("embedding", "is missing: ids pick rows of it");
    return {"X", std::nullopt, "X"};
  }
  const Value table = matrix_input(network_.embedding, "an embedding table [vocab, d_model]");
  Value x{"X", std::nullopt, table.tap};
  if (ids && ids->size() == 1 && table.is_known()) x.shape = Shape{(*ids)[0], table.columns()};
  return positioned(add(find_op("lookup"), std::move(x), {network_.ids, table.tap}));
}

Value Walk::sublayer(const Attention& attention, const Norm& norm, const Block& block,
                     const Place& place, const Value& x) {
  const bool is_second = &attention != &block.attention;
  const std::string tap = place.prefix + "attention_normed";
  const std::string field = place.field + "_norm";
  const bool is_pre = block.placement == NormPlacement::pre;
  Value out = is_pre ? this->norm(norm, tap, field, x) : x;
  out = attend(attention, is_second || block.is_cross, place, out);
  if (block.has_residual) out = residual(place.prefix + "residual", x, out);
  return is_pre ? out : this->norm(norm, tap, field, out);
}

Value Walk::feed_forward(const FeedForward& layers, const Place& place, const Value& x) {
  const std::string& p = place.prefix;
  const bool has_gate = is_given(layers.gate);
  if (!is_given(layers.down)) {
    if (has_gate || layers.activation != Activation::none)
      problem(place.field + ".down",
              "is missing: an activation or a gate needs a second linear layer");
    return project("ff_out", p + "ff_out", x, layers.up, {"d_model", "d_model"});
  }
  const auto activated = [&](const Value& from, const std::string& tap) {
    if (layers.activation == Activation::none) return from;
    return add(find_op(name(layers.activation)), {tap, from.shape, from.source}, {from.tap});
  };
  Value inner;
  if (has_gate) {
    const Value gate = project("ff_gate", p + "ff_gate", x, layers.gate, {"d_model", "d_ff"});
    const Value bent = activated(gate, p + "ff_gate_activated");
    const Value up = project("ff_up", p + "ff_up", x, layers.up, {"d_model", "d_ff"});
    if (gate.is_known() && up.is_known() && gate.columns() != up.columns())
      problem(gate.source, fmt::format("gives {} columns where {} gives {}: gate and up must have "
                                       "the same d_ff",
                                       gate.columns(), up.source, up.columns()));
    inner = add(find_op("times"), {p + "ff_activated", up.shape, up.source}, {bent.tap, up.tap});
  } else {
    inner = activated(project("ff_up", p + "ff_up", x, layers.up, {"d_model", "d_ff"}),
                      p + "ff_activated");
  }
  return project("ff_out", p + "ff_out", inner, layers.down, {"d_ff", "d_model"});
}

Value Walk::block(const Block& block, const Place& place, const Value& x) {
  Value out = sublayer(block.attention, block.attention_norm, block,
                       {place.field + "attention", place.prefix}, x);
  if (block.cross_attention)
    out = sublayer(*block.cross_attention, block.cross_norm, block,
                   {place.field + "cross_attention", place.prefix + "cross."}, out);
  if (!block.feed_forward) return out;
  const std::string tap = place.prefix + "ff_normed";
  const std::string field = place.field + "feed_forward_norm";
  const bool is_pre = block.placement == NormPlacement::pre;
  const Value in = out;
  if (is_pre) out = norm(block.feed_forward_norm, tap, field, in);
  out = feed_forward(*block.feed_forward, {place.field + "feed_forward", place.prefix}, out);
  if (block.has_residual) out = residual(place.prefix + "ff_residual", in, out);
  return is_pre ? out : norm(block.feed_forward_norm, tap, field, out);
}

void Walk::end(Value h) {
  h = norm(network_.final_norm, "final_normed", "final_norm", h);
  if (!network_.unembedding) return;
  const Unembedding& last = *network_.unembedding;
  Value logits{"logits", std::nullopt, last.weight};
  if (last.is_tied) {
    if (network_.embedding.empty()) {
      problem("unembedding", "is tied, but there is no embedding table to tie it to");
      return;
    }
    if (!last.weight.empty())
      problem("unembedding.weight", "is given, but the unembedding is tied to the embedding table");
    const Value table = matrix_input(network_.embedding, "an embedding table [vocab, d_model]");
    if (table.is_known() && h.is_known() && table.columns() != h.columns())
      problem(table.tap,
              fmt::format("{} where {} is {}: columns must equal d_model = {}",
                          size_text(*table.shape), h.tap, size_text(*h.shape), h.columns()));
    logits.source = table.tap;
    if (table.is_known() && h.is_known()) logits.shape = Shape{h.rows(), table.rows()};
    std::vector<std::string> reads{h.tap, table.tap};
    if (!last.bias.empty()) {
      check_row(last.bias, "a row [vocab]", logits);
      reads.push_back(last.bias);
    }
    logits = add(find_op("logits_tied"), std::move(logits), std::move(reads));
  } else if (last.weight.empty()) {
    problem("unembedding.weight", "is missing; wanted: a matrix [d_model, vocab]");
    return;
  } else {
    logits = project("logits", "logits", h, {last.weight, last.bias}, {"d_model", "vocab"});
  }
  if (!(last.softcap >= 0) || !std::isfinite(last.softcap))
    problem("unembedding.softcap", "must be a finite number, 0 or more");
  if (last.softcap > 0)
    logits = add(find_attention_op("capped"), {"logits_capped", logits.shape, logits.source},
                 {logits.tap}, {{"softcap", last.softcap}});
  if (logits.is_known() && logits.columns() == 0)
    problem(logits.source, "gives no logits: the vocabulary is empty");
  const Value p =
      add(find_op("probabilities"), {"probabilities", logits.shape, logits.source}, {logits.tap});
  add(find_op("next_token"), {"next_token", std::nullopt, "next_token"}, {p.tap});
}

void Walk::run() {
  Value x = begin();
  for (std::size_t n = 0; n < network_.blocks.size(); ++n) {
    const std::string name = network_.blocks.size() == 1 ? "" : fmt::format("block.{}.", n);
    x = block(network_.blocks[n], {name, name}, x);
  }
  end(std::move(x));
}

Shapes shapes_of(const std::vector<std::pair<std::string, TraceTensor>>& inputs) {
  Shapes shapes;
  for (const auto& [tap, tensor] : inputs) shapes[tap] = tensor.shape;
  return shapes;
}

std::vector<Problem> check(const Network& network, const Shapes& inputs) {
  Walk walk(network, inputs, std::nullopt);
  walk.run();
  return std::move(walk.problems);
}

std::vector<Step> steps(const Network& network, const Shapes& inputs) {
  Walk walk(network, inputs, std::nullopt);
  walk.run();
  if (!walk.problems.empty()) fail(ErrorKind::shape, "nn::steps", std::move(walk.problems));
  return std::move(walk.list);
}

}  // namespace glasshead::nn
