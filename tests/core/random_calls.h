// Random whole calls: numbers, types and layouts over the masks, biases and starts of tile_cases.h,
// with shared heads, softcap, sinks, dropout; and parts of a call, cut out so that each row of the
// part is a row of the whole. Everything follows from a seed.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "naive.h"
#include "testing.h"
#include "tile_cases.h"

namespace glasshead::test {

// What a call's numbers look like.
enum class Kind : std::uint8_t { normal, large, whole, huge, tiny, special };

class CallDraw : public TileDraw {
 public:
  explicit CallDraw(std::uint64_t seed) : TileDraw(seed), seed_(seed) {}

  DType type() {
    const DType types[] = {DType::f32, DType::f32, DType::f64, DType::bf16, DType::f16};
    return types[below(5)];
  }

  Layout layout() {
    Layout made;
    for (std::size_t n = 3; n > 0 && one_in(2); --n)
      std::swap(made.order[n], made.order[static_cast<std::size_t>(below(4))]);
    made.gap = one_in(4) ? within(2, 3) : 1;
    made.backwards = one_in(6) ? static_cast<int>(below(4)) : -1;
    return made;
  }

  // kv_heads, d_k and d_v beside the shape of the pairs.
  struct Shape {
    PairShape pairs;
    index_t kv_heads = 1, d_k = 1, d_v = 1;
  };

  // Options of every kind over pairs of this shape.
  AttentionOptions options(const PairShape& s) {
    AttentionOptions made;
    const index_t parts[] = {0, 1, 1, 2, 3};
    for (index_t n = parts[below(5)]; n > 0; --n) made.mask = made.mask & part(s);
    for (index_t n = one_in(2) ? 0 : within(1, 2); n > 0; --n) made.bias = made.bias + term(s);
    made.query_start = near_start(s);
    if (one_in(4)) made.scale = one_in(6) ? 0.0 : number();
    if (one_in(4)) made.softcap = static_cast<double>(within(1, 30)) / 2;
    if (one_in(3))
      for (index_t h = 0; h < s.heads; ++h) made.sinks.push_back(2 * number());
    if (one_in(4)) made.dropout = {static_cast<double>(within(1, 9)) / 10, seed_};
    return made;
  }

  Attention call(const Shape& shape, Kind kind) {
    const PairShape& s = shape.pairs;
    Attention made{block({s.batch, s.heads, s.q_len, shape.d_k}, kind),
                   block({s.batch, shape.kv_heads, s.kv_len, shape.d_k}, kind),
                   block({s.batch, shape.kv_heads, s.kv_len, shape.d_v}, kind), options(s)};
    made.q_layout = layout();
    made.k_layout = layout();
    made.v_layout = layout();
    return made;
  }

  QueryStart near_start(const PairShape& s) {
    switch (below(3)) {
      case 0:
        return Align::end;
      case 1:
        return Align::start;
      default:
        return within(-s.q_len - 3, s.kv_len + 3);
    }
  }

  Block block(const std::array<index_t, 4>& shape, Kind kind) {
    Block made(shape, 0.0);
    const auto stream = static_cast<std::uint64_t>(below(1 << 30));
    for (std::size_t n = 0; n < made.x.size(); ++n)
      made.x[n] = number(standard_normal(seed_, n, stream), kind);
    return made;
  }

 private:
  double number(double normal, Kind kind) {
    switch (kind) {
      case Kind::large:
        return 6 * normal;
      case Kind::whole:
        return std::nearbyint(normal);
      case Kind::huge:  // f16 has its own infinity, products of f32 overflow
        return normal * (one_in(40) ? 0x1p124 : 0x1p62);
      case Kind::tiny:  // products underflow, some numbers are subnormal
        return normal * (one_in(4) ? 0x1p-127 : one_in(2) ? 0x1p-24 : 0x1p-70);
      case Kind::special: {
        const double rare[] = {0.0, -0.0, kInf, -kInf, kNan, -kNan, kFloatMin, 0x1p-149};
        return one_in(60) ? rare[below(8)] : normal;
      }
      case Kind::normal:
        break;
    }
    return normal;
  }
  using TileDraw::number;

  std::uint64_t seed_;
};

// The same tensor over the indices [begin, end) of an axis of [batch, heads, q_len, kv_len].
inline Broadcast part_of(Broadcast whole, int axis, index_t begin, index_t end) {
  const int at = axis - (4 - whole.rank);
  if (at < 0 || whole.shape[static_cast<std::size_t>(at)] == 1) return whole;
  const auto n = static_cast<std::size_t>(at);
  whole.data = static_cast<const char*>(whole.data) +
               begin * whole.strides[n] * static_cast<index_t>(size_of(whole.dtype));
  whole.shape[n] = end - begin;
  return whole;
}
inline void take_tensors(AttentionOptions& options, int axis, index_t begin, index_t end) {
  for (Mask::Part& part : options.mask.parts())
    if (auto* given = std::get_if<Mask::Explicit>(&part))
      given->allowed = part_of(given->allowed, axis, begin, end);
  for (Bias::Term& term : options.bias.terms())
    if (auto* dense = std::get_if<Bias::Dense>(&term))
      dense->values = part_of(dense->values, axis, begin, end);
}
inline Block take(const Block& whole, std::size_t axis, index_t begin, index_t end) {
  std::array<index_t, 4> shape = whole.shape;
  shape[axis] = end - begin;
  Block part(shape, 0.0);
  std::array<index_t, 4> at{};
  for (at[0] = 0; at[0] < shape[0]; ++at[0])
    for (at[1] = 0; at[1] < shape[1]; ++at[1])
      for (at[2] = 0; at[2] < shape[2]; ++at[2])
        for (at[3] = 0; at[3] < shape[3]; ++at[3]) {
          std::array<index_t, 4> from = at;
          from[axis] += begin;
          part(at[0], at[1], at[2], at[3]) = whole(from[0], from[1], from[2], from[3]);
        }
  return part;
}
// `width` ids a row, of which [begin, end) stay.
inline void take_ids(std::vector<index_t>& ids, index_t width, index_t begin, index_t end) {
  std::vector<index_t> taken;
  for (index_t row = 0; row < static_cast<index_t>(ids.size()) / width; ++row)
    for (index_t n = begin; n < end; ++n)
      taken.push_back(ids[static_cast<std::size_t>(row * width + n)]);
  ids = std::move(taken);
}

// Query rows [begin, end). Dropout counts rows from the call's first, so a part has none.
inline Attention rows_of(const Attention& whole, index_t begin, index_t end) {
  Attention part = whole;
  part.q = take(whole.q, 2, begin, end);
  part.options.query_start = naive_position(whole, begin);
  part.options.dropout = {};
  take_tensors(part.options, 2, begin, end);
  for (Mask::Part& rule : part.options.mask.parts())
    if (auto* segments = std::get_if<Mask::Segments>(&rule))
      take_ids(segments->query_ids, whole.q.shape[2], begin, end);
  return part;
}

// The first `end` keys, where a causal mask hides the others.
inline Attention keys_of(const Attention& whole, index_t end) {
  Attention part = whole;
  part.options.query_start = naive_position(whole, 0);
  part.k = take(whole.k, 2, 0, end);
  part.v = take(whole.v, 2, 0, end);
  take_tensors(part.options, 3, 0, end);
  for (Mask::Part& rule : part.options.mask.parts()) {
    if (auto* segments = std::get_if<Mask::Segments>(&rule))
      take_ids(segments->key_ids, whole.k.shape[2], 0, end);
    if (auto* lengths = std::get_if<Mask::KeyLengths>(&rule))
      for (index_t& length : lengths->lengths) length = std::min(length, end);
    if (auto* prefix = std::get_if<Mask::Prefix>(&rule))
      for (index_t& length : prefix->lengths) length = std::min(length, end);
  }
  return part;
}

// Batch entry b alone. Dropout and rules count batch entries, so a part has no dropout.
inline Attention entry_of(const Attention& whole, index_t b) {
  Attention part = whole;
  part.q = take(whole.q, 0, b, b + 1);
  part.k = take(whole.k, 0, b, b + 1);
  part.v = take(whole.v, 0, b, b + 1);
  part.options.dropout = {};
  take_tensors(part.options, 0, b, b + 1);
  const auto one = [b](std::vector<index_t>& list) {
    if (list.size() > 1) list = {list[static_cast<std::size_t>(b)]};
  };
  for (Mask::Part& rule : part.options.mask.parts()) {
    if (auto* lengths = std::get_if<Mask::KeyLengths>(&rule)) one(lengths->lengths);
    if (auto* prefix = std::get_if<Mask::Prefix>(&rule)) one(prefix->lengths);
    if (auto* segments = std::get_if<Mask::Segments>(&rule); segments && segments->batch > 1) {
      segments->batch = 1;
      const index_t q_len = whole.q.shape[2], kv_len = whole.k.shape[2];
      take_ids(segments->query_ids, whole.q.shape[0] * q_len, b * q_len, (b + 1) * q_len);
      take_ids(segments->key_ids, whole.q.shape[0] * kv_len, b * kv_len, (b + 1) * kv_len);
    }
    if (auto* where = std::get_if<Mask::Where>(&rule)) {
      const PairRule of_all = where->rule;
      const index_t entry = of_all.options().per_batch ? b : 0;
      where->rule =
          PairRule([of_all, entry](index_t, index_t h, index_t p,
                                   index_t j) { return of_all.predicate()(entry, h, p, j); },
                   of_all.options());
    }
  }
  return part;
}

}  // namespace glasshead::test
