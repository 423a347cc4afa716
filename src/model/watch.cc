#include "model/watch.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "base/fail.h"
#include "base/math.h"
#include "core/kv_input.h"
#include "glasshead/attention_weights.h"
#include "model/model_impl.h"

namespace glasshead {
namespace model {

Tensor<float, 4> keys_of(const KvCache& cache, index_t sequence) {
  const KvInput input = cache.input({sequence});
  const KvSource& source = input.state().source;
  Tensor<float, 4> keys({1, source.kv_heads, input.length(0), source.d_k});
  for (const KvPiece& piece : source.sequences[0])
    for (index_t g = 0; g < source.kv_heads; ++g)
      for (index_t j = piece.begin; j < piece.end; ++j) {
        const float* const from =
            static_cast<const float*>(piece.k) + source.k.offset(g, j - piece.begin);
        for (index_t d = 0; d < source.d_k; ++d) keys(0, g, j, d) = from[d * source.k.step];
      }
  return keys;
}

void ScoreRows::see(const SeenTile& tile) {
  for (index_t r = 0; r < tile.rows.count; ++r) {
    const index_t i = tile.rows.i[r], h = place_of[static_cast<std::size_t>(tile.rows.h[r])];
    if (h < 0 || i < begin || i >= end) continue;
    float* const to = values.data() + ((i - begin) * heads + h) * keys;
    for (index_t j = tile.keys.begin; j < tile.keys.end; ++j)
      to[j] = tile.scores[(j - tile.keys.begin) * tile.key_step + r * tile.row_step];
  }
}

}  // namespace model

namespace {

using model::Place;
using model::Point;
using model::Span;

bool is_scores(Point point) { return point == Point::self_scores || point == Point::cross_scores; }
bool is_of_pairs(Point point) {
  return is_scores(point) || point == Point::self_weights || point == Point::cross_weights;
}

void check_tap(const Tap& tap, const model::NamedPlace& at, std::vector<Problem>& problems) {
  if (tap.positions && (tap.positions->first < 0 || tap.positions->second < tap.positions->first))
    problems.push_back(
        {"taps", fmt::format("{}: positions [{}, {}]; first and last, from 0", tap.name,
                             tap.positions->first, tap.positions->second)});
  if (!is_of_pairs(at.place.point) && (tap.positions || !tap.heads.empty())) {
    problems.push_back(
        {"taps",
         fmt::format("{}: heads and positions are chosen of scores and weights alone", tap.name)});
    return;
  }
  for (const index_t head : tap.heads)
    if (head < 0 || head >= at.heads)
      problems.push_back({"taps", fmt::format("{}: head {}; {} has {}, numbered from 0", tap.name,
                                              head, at.name, at.heads)});
}

void append(std::vector<float>& to, const float* from, index_t count) {
  to.insert(to.end(), from, from + count);
}

void store(FileTensor& tensor, index_t at, const float* from, index_t count) {
  std::memcpy(tensor.bytes.data() + static_cast<std::size_t>(at) * sizeof(float), from,
              static_cast<std::size_t>(count) * sizeof(float));
}

FileTensor plain(const Taps::Impl::Kept& kept) {
  FileTensor tensor = make_tensor(DType::f32, {kept.tokens, kept.width});
  if (!kept.values.empty()) store(tensor, 0, kept.values.data(), kept.tokens * kept.width);
  return tensor;
}

// [tokens, heads·d] -> [heads, tokens, d]; the row states [tokens, heads] -> [heads, tokens].
FileTensor by_heads(const Taps::Impl::Kept& kept) {
  const index_t d = kept.width / kept.groups;
  const bool is_state = kept.point == Point::self_lse || kept.point == Point::cross_lse;
  std::vector<index_t> shape{kept.groups, kept.tokens};
  if (!is_state) shape.push_back(d);
  FileTensor tensor = make_tensor(DType::f32, std::move(shape));
  for (index_t i = 0; i < kept.tokens; ++i)
    for (index_t h = 0; h < kept.groups; ++h)
      store(tensor, (h * kept.tokens + i) * d, kept.values.data() + i * kept.width + h * d, d);
  return tensor;
}

// Rows that know fewer keys than the last hide those.
FileTensor of_pairs(const Taps::Impl::Kept& kept) {
  const auto heads = static_cast<index_t>(kept.heads.size());
  const auto rows = heads == 0 ? 0 : static_cast<index_t>(kept.pairs.size()) / heads;
  const index_t keys = kept.keys;
  FileTensor tensor = make_tensor(DType::f32, {heads, rows, keys});
  const std::vector<float> hidden(
      static_cast<std::size_t>(keys),
      is_scores(kept.point) ? -std::numeric_limits<float>::infinity() : 0.0F);
  for (index_t i = 0; i < rows; ++i)
    for (index_t h = 0; h < heads; ++h) {
      const std::vector<float>& row = kept.pairs[static_cast<std::size_t>(i * heads + h)];
      const auto length = static_cast<index_t>(row.size()), at = (h * rows + i) * keys;
      store(tensor, at, row.data(), length);
      store(tensor, at + length, hidden.data(), keys - length);
    }
  return tensor;
}

}  // namespace

void Taps::Impl::resolve(const Model& model, std::vector<Problem>& problems) {
  const std::vector<model::NamedPlace> places = places_of(model.impl().description);
  std::map<std::string, Kept> found;
  for (const Tap& tap : wanted) {
    bool is_found = false;
    for (const model::NamedPlace& at : places) {
      if (!model::matches(tap.name, at.name)) continue;
      is_found = true;
      check_tap(tap, at, problems);
      Kept& kept_there = found[at.name];
      kept_there.point = at.place.point;
      kept_there.taps.push_back(&tap);
    }
    if (!is_found)
      problems.push_back({"taps", fmt::format("{}: this model has no such place; {} is one",
                                              tap.name, places[places.size() / 2].name)});
  }
  if (of != nullptr && of != &model.impl())
    problems.push_back({"taps", "they hold numbers of another model; new ones are needed"});
  if (!problems.empty() || of != nullptr) return;  // taps that have been resolved stay so
  of = &model.impl();
  kept = std::move(found);
  for (const model::NamedPlace& at : places)
    if (kept.count(at.name) > 0) order.push_back(at.name);
}

void Taps::Impl::see(const Place& place, const View<const float, 2>& rows,
                     const std::vector<Span>& spans, index_t groups) {
  const auto at = kept.find(name(place));
  if (at == kept.end()) return;
  Kept& to = at->second;
  to.groups = groups;
  to.width = rows.shape[1];
  for (const Span& span : spans) {
    if (span.place != sequence) continue;
    for (index_t i = 0; i < span.rows; ++i)
      append(to.values, rows.data + (span.row + i) * rows.strides[0], rows.shape[1]);
    to.tokens += span.rows;
  }
}

void Taps::Impl::see_lse(const Place& place, const RowState& state) {
  const auto at = kept.find(name(place));
  if (at == kept.end()) return;
  Kept& to = at->second;
  to.groups = to.width = state.max.shape[1];
  const ConstTensor<3> max = state.max, sum = state.sum;
  for (index_t i = 0; i < max.shape[2]; ++i)
    for (index_t h = 0; h < max.shape[1]; ++h) {
      const double l = sum.load(0, h, i);
      to.values.push_back(l == 0 ? static_cast<float>(max.load(0, h, i))
                                 : static_cast<float>(max.load(0, h, i) + math::log(l)));
    }
  to.tokens += max.shape[2];
}

Taps::Impl::Rows Taps::Impl::wanted_rows(Kept& kept, const Span& span, index_t heads) {
  std::vector<bool> has_head(static_cast<std::size_t>(heads), false);
  index_t first = span.position + span.rows, last = -1;
  for (const Tap* tap : kept.taps) {
    for (const index_t h : tap->heads) has_head[static_cast<std::size_t>(h)] = true;
    if (tap->heads.empty()) std::fill(has_head.begin(), has_head.end(), true);
    first = std::min(first, tap->positions ? tap->positions->first : index_t{0});
    last = std::max(last, tap->positions ? tap->positions->second : span.position + span.rows - 1);
  }
  kept.heads.clear();
  for (index_t h = 0; h < heads; ++h)
    if (has_head[static_cast<std::size_t>(h)]) kept.heads.push_back(h);
  return {std::max<index_t>(first - span.position, 0),
          std::min(last - span.position + 1, span.rows)};
}

void Taps::Impl::see_weights(const Place& place, const Span& span, const model::AttentionCall& call,
                             const Context& context) {
  const auto at = kept.find(name(place));
  if (at == kept.end() || span.place != sequence) return;
  Kept& to = at->second;
  const index_t keys = to.keys = call.k.shape[2];
  const auto [begin, end] = wanted_rows(to, span, call.q.shape[1]);
  if (begin >= end) return;
  std::vector<std::vector<float>> rows(static_cast<std::size_t>(end - begin) * to.heads.size());
  for (std::size_t n = 0; n < to.heads.size(); ++n) {
    const index_t h = to.heads[n];
    Tensor<float, 4> weights({1, 1, end - begin, keys});
    attention_weights(call.q, call.k, call.state, call.options, {h, h + 1, begin, end}, weights,
                      context);
    for (index_t i = 0; i < end - begin; ++i)
      append(rows[static_cast<std::size_t>(i) * to.heads.size() + n], weights.data() + i * keys,
             keys);
  }
  for (std::vector<float>& row : rows) to.pairs.push_back(std::move(row));
}

model::ScoreRows Taps::Impl::score_rows(const Place& place, const Span& span, index_t heads,
                                        index_t keys) {
  Kept& to = kept.at(name(place));
  model::ScoreRows rows;
  to.keys = keys;
  const auto [begin, end] = wanted_rows(to, span, heads);
  rows.begin = begin;
  rows.end = std::max(begin, end);
  rows.keys = keys;
  rows.heads = static_cast<index_t>(to.heads.size());
  rows.place_of.assign(static_cast<std::size_t>(heads), -1);
  for (std::size_t n = 0; n < to.heads.size(); ++n)
    rows.place_of[static_cast<std::size_t>(to.heads[n])] = static_cast<index_t>(n);
  rows.values.assign(static_cast<std::size_t>((rows.end - rows.begin) * rows.heads * keys),
                     -std::numeric_limits<float>::infinity());
  return rows;
}

void Taps::Impl::keep_scores(const Place& place, const model::ScoreRows& rows) {
  Kept& to = kept.at(name(place));
  for (index_t n = 0; n < (rows.end - rows.begin) * rows.heads; ++n) {
    const auto begin = rows.values.begin() + n * rows.keys;
    to.pairs.emplace_back(begin, begin + rows.keys);
  }
}

Taps::Taps(std::vector<Tap> taps, index_t sequence) : impl_(std::make_unique<Impl>()) {
  impl_->wanted = std::move(taps);
  impl_->sequence = sequence;
}
Taps::~Taps() = default;
Taps::Taps(Taps&&) noexcept = default;
Taps& Taps::operator=(Taps&&) noexcept = default;

NamedTensors Taps::results() const {
  NamedTensors results;
  for (const std::string& at : impl_->order) {
    const Impl::Kept& kept = impl_->kept.at(at);
    if (is_of_pairs(kept.point))
      results.emplace_back(at, of_pairs(kept));
    else if (kept.groups > 0)
      results.emplace_back(at, by_heads(kept));
    else
      results.emplace_back(at, plain(kept));
  }
  return results;
}

}  // namespace glasshead
