#include "model/changes.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/checked.h"
#include "base/fail.h"
#include "model/block.h"
#include "model/model_impl.h"

namespace glasshead::model {
namespace {

bool contains(const std::vector<index_t>& all, index_t one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

bool is_any(const std::vector<index_t>& some, index_t one) {
  return some.empty() || contains(some, one);
}

void check_each(const char* where, const std::vector<index_t>& found, index_t count,
                const char* what, std::vector<Problem>& problems) {
  for (const index_t n : found)
    if (n < 0 || n >= count)
      problems.push_back({"changes", fmt::format("{} {}; there are {} {}, numbered from 0", where,
                                                 n, count, what)});
}

index_t most_heads(const Model& model) {
  index_t most = 0;
  for (index_t n = 0; n < model.layers(); ++n) most = std::max(most, model.heads(n));
  return most;
}

// What attention makes of its inputs, and what is made outside the layers' pass, are not replaced.
bool can_be_patched(Point point) {
  switch (point) {
    case Point::self_scores:
    case Point::cross_scores:
    case Point::self_weights:
    case Point::cross_weights:
    case Point::self_lse:
    case Point::cross_lse:
    case Point::cross_k:
    case Point::cross_v:
    case Point::final_norm:
    case Point::logits:
      return false;
    default:
      return true;
  }
}

}  // namespace

Changes::Changes(const std::vector<Change>& changes, const Model& model,
                 std::vector<Problem>& problems) {
  for (const Change& change : changes)
    std::visit([&](const auto& one) { add(one, model, problems); }, change);
}

void Changes::add(const HidePairs& change, const Model& model, std::vector<Problem>& problems) {
  if (change.keys.empty()) problems.push_back({"changes", "pairs to hide without keys"});
  for (const std::vector<index_t>* some : {&change.keys, &change.queries})
    for (const index_t n : *some)
      if (n < 0)
        problems.push_back({"changes", fmt::format("position {}; positions count from 0", n)});
  check_each("layer", change.layers, model.layers(), "layers", problems);
  check_each("head", change.heads, most_heads(model), "heads", problems);
  hidden_.push_back(change);
}

void Changes::add(const ReplaceHead& change, const Model& model, std::vector<Problem>& problems) {
  const std::size_t before = problems.size();
  check_each("layer", {change.layer}, model.layers(), "layers", problems);
  if (problems.size() > before) return;
  const Attention& a =
      model.impl().last_stack().layers[static_cast<std::size_t>(change.layer)].self;
  check_each("head", {change.head}, a.heads, "heads", problems);
  if (!change.out.empty() && static_cast<index_t>(change.out.size()) != a.d_v)
    problems.push_back(
        {"changes", fmt::format("{} numbers for head {}.{}, whose out has {}", change.out.size(),
                                change.layer, change.head, a.d_v)});
  Values values{change.head, -1, change.out, a.d_v};
  values.values.resize(static_cast<std::size_t>(a.d_v), 0.0F);
  const char* const stack = model.kind() == ModelKind::encoder ? "encoder" : "decoder";
  patches_[name({stack, change.layer, Point::self_out})].push_back(std::move(values));
}

void Changes::add(const Patch& change, const Model& model, std::vector<Problem>& problems) {
  const auto wrong = [&](const std::string& what) {
    problems.push_back({"changes", change.name + ": " + what});
  };
  const std::vector<NamedPlace> places = places_of(model.impl().description);
  const auto at = std::find_if(places.begin(), places.end(),
                               [&](const NamedPlace& place) { return place.name == change.name; });
  if (at == places.end()) return wrong("this model has no such place");
  if (!can_be_patched(at->place.point)) return wrong("cannot be patched; what it is made of can");
  const std::vector<index_t>& shape = change.values.shape;
  if (change.position < 0 || (shape.size() != 2 && shape.size() != 3))
    return wrong(
        fmt::format("position {}, a tensor of rank {}; [tokens, size] or [heads, tokens, "
                    "size], from 0 on",
                    change.position, shape.size()));
  const std::optional<index_t> count = checked_size(shape);
  if (!count ||
      change.values.bytes.size() / size_of(change.values.dtype) != static_cast<std::size_t>(*count))
    return wrong(fmt::format("{} bytes, which are not the numbers of its shape",
                             change.values.bytes.size()));
  const index_t heads = shape.size() == 3 ? shape[0] : 1;
  const index_t rows = shape[shape.size() - 2], size = shape.back();
  if (heads * size != at->width)
    return wrong(fmt::format("rows of {} numbers; they have {} here", heads * size, at->width));
  Values values{-1, change.position, {}, at->width};
  values.values.resize(static_cast<std::size_t>(rows * values.width));
  for (index_t h = 0; h < heads; ++h)
    for (index_t i = 0; i < rows; ++i)
      for (index_t e = 0; e < size; ++e)
        values.values[static_cast<std::size_t>(i * values.width + h * size + e)] =
            static_cast<float>(change.values.load((h * rows + i) * size + e));
  patches_[change.name].push_back(std::move(values));
}

void Changes::narrow(std::vector<LayerCalls>& calls) const {
  for (std::size_t n = 0; n < calls.size(); ++n)
    for (const HidePairs& hidden : hidden_) {
      if (!is_any(hidden.layers, static_cast<index_t>(n))) continue;
      const auto may_read = [hidden](index_t, index_t h, index_t p, index_t j) {
        if (!contains(hidden.keys, j) || !is_any(hidden.heads, h)) return true;
        return hidden.queries.empty() ? p == j : !contains(hidden.queries, p);
      };
      const PairRuleOptions options{.per_batch = false, .per_head = !hidden.heads.empty()};
      calls[n].self.mask = calls[n].self.mask & Mask::where(PairRule(may_read, options));
    }
}

void Changes::apply(const Place& place, const View<float, 2>& rows, const std::vector<Span>& spans,
                    index_t groups) const {
  const auto at = patches_.find(name(place));
  if (at == patches_.end()) return;
  for (const Values& values : at->second) {
    const index_t column = values.head >= 0 ? values.head * (rows.shape[1] / groups) : 0;
    const auto count = static_cast<index_t>(values.values.size()) / values.width;
    for (const Span& span : spans)
      for (index_t i = 0; i < span.rows; ++i) {
        const index_t from = values.position < 0 ? 0 : span.position + i - values.position;
        if (from < 0 || from >= count) continue;
        std::copy_n(values.values.data() + from * values.width, values.width,
                    rows.data + (span.row + i) * rows.strides[0] + column);
      }
  }
}

}  // namespace glasshead::model

namespace glasshead {

ReplaceHead mean_of_head(index_t layer, index_t head, const FileTensor& out) {
  const std::vector<index_t>& shape = out.shape;
  if (shape.size() != 3 || shape[1] < 1)
    fail(ErrorKind::shape, "mean_of_head", "out",
         fmt::format("a tensor of rank {}; [heads, tokens, d_v] of at least one token is needed",
                     shape.size()));
  if (head < 0 || head >= shape[0])
    fail(ErrorKind::shape, "mean_of_head", "head",
         fmt::format("{}; out has {} heads, numbered from 0", head, shape[0]));
  const std::optional<index_t> count = checked_size(shape);
  if (!count || out.bytes.size() / size_of(out.dtype) != static_cast<std::size_t>(*count))
    fail(ErrorKind::shape, "mean_of_head", "out",
         fmt::format("{} bytes, which are not the numbers of its shape", out.bytes.size()));
  const index_t tokens = shape[1], size = shape[2];
  ReplaceHead change{.layer = layer, .head = head};
  for (index_t e = 0; e < size; ++e) {
    double sum = 0;
    for (index_t i = 0; i < tokens; ++i) sum += out.load((head * tokens + i) * size + e);
    change.out.push_back(static_cast<float>(sum / static_cast<double>(tokens)));
  }
  return change;
}

}  // namespace glasshead
