#include "port/dump.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "base/shape_text.h"
#include "model/model_impl.h"
#include "port/names.h"

namespace glasshead::port {
namespace {

// What rounding may do between a part's rows and its numbers, in parts of the largest of them. It
// grows like a random walk with the parts between. f32: the tiny models differ from transformers in
// f64 by less than 5e-6 (tests/port/right_test.cc), and scores that are tens large multiply that.
// f16 and bf16: eight rounding errors of one number, 2^-11 and 2^-8. That is a choice: it was tried
// on right numbers rounded once, not on programs that compute in these types.
double allowed(DType type) {
  switch (type) {
    case DType::bf16:
      return 0x1p-5;
    case DType::f16:
      return 0x1p-8;
    default:
      return 5e-5;
  }
}

bool is_floating(DType type) {
  return type == DType::f64 || type == DType::f32 || type == DType::f16 || type == DType::bf16;
}

const FileTensor* find(const NamedTensors& tensors, const std::string& name) {
  for (const auto& [key, tensor] : tensors)
    if (key == name) return &tensor;
  return nullptr;
}

bool is_text(const std::string& name) {
  for (const char* given :
       {"ids", "input_ids", "types", "token_type_ids", "decoder_ids", "decoder_input_ids"})
    if (name == given) return true;
  return false;
}

// The names that a place may have in the file: as the mapping says, else its own.
struct Wanted {
  std::string name;
  std::size_t rule = 0;
  bool is_mapped = false;
};
std::vector<Wanted> wanted(const model::NamedPlace& place, const PortOptions& options) {
  std::vector<Wanted> names;
  for (std::size_t n = 0; n < options.names.size(); ++n) {
    const auto& [ours, theirs] = options.names[n];
    if (filled(ours, place.place.layer) == place.name &&
        (place.place.layer >= 0 || !has_hole(ours)))
      names.push_back({filled(theirs, place.place.layer), n, true});
  }
  if (names.empty()) names.push_back({place.name});
  return names;
}

}  // namespace

Dump::Dump(const Runner& runner, const Model& model, const NamedTensors& activations,
           const PortOptions& options, std::vector<Problem>& problems) {
  std::set<std::string> used;
  std::vector<bool> is_place(options.names.size(), false), is_found(options.names.size(), false);
  for (const model::NamedPlace& place : runner.places())
    for (const Wanted& name : wanted(place, options)) {
      if (name.is_mapped) is_place[name.rule] = true;
      const FileTensor* const tensor = find(activations, name.name);
      if (tensor == nullptr) continue;
      if (name.is_mapped) is_found[name.rule] = true;
      used.insert(name.name);
      add(runner, model, place, name.name, *tensor, problems);
      break;
    }
  for (std::size_t n = 0; n < options.names.size(); ++n) {
    const auto& [ours, theirs] = options.names[n];
    if (!is_place[n])
      problems.push_back({"names", fmt::format("{}: this model has no such place; {} is one", ours,
                                               runner.places()[runner.places().size() / 2].name)});
    else if (!is_found[n])
      problems.push_back({"names", fmt::format("{}: {}: no tensor of the activations has this name",
                                               ours, theirs)});
  }
  for (const auto& [name, tensor] : activations)
    if (used.count(name) == 0 && !is_text(name)) notes_.push_back(name);
  if (all_.empty() && problems.empty())
    problems.push_back(
        {"activations",
         fmt::format("no tensor has the name of a place, as decoder.0.self.q or logits; {}",
                     activations.empty() ? std::string("there are none")
                                         : "the first is " + activations.front().first +
                                               ": give a file of names")});
  DType narrowest = DType::f64;
  for (const Dumped& one : all_)
    if (size_of(one.tensor->dtype) < size_of(narrowest) ||
        (one.tensor->dtype == DType::bf16 && narrowest == DType::f16))
      narrowest = one.tensor->dtype;
  arithmetic_ = options.arithmetic.value_or(narrowest == DType::f64 ? DType::f32 : narrowest);
}

void Dump::add(const Runner& runner, const Model& model, const model::NamedPlace& place,
               const std::string& theirs, const FileTensor& tensor,
               std::vector<Problem>& problems) {
  const model::Description& d = model.impl().description;
  const std::size_t piece = runner.piece_of(place);
  const bool is_encoder = runner.pieces()[piece].is_encoder;
  const model::Attention* attention = nullptr;
  if (place.place.layer >= 0) {
    const model::Layer& layer =
        (is_encoder ? *d.encoder : *d.decoder).layers[static_cast<std::size_t>(place.place.layer)];
    const bool is_cross = place.place.point >= model::Point::cross_norm &&
                          place.place.point <= model::Point::cross_projected;
    attention = is_cross ? &*layer.cross : &layer.self;
  }
  if (!is_floating(tensor.dtype)) {
    problems.push_back(
        {theirs, fmt::format("holds {}; floating-point numbers are needed",
                             tensor.stored.empty() ? name(tensor.dtype) : tensor.stored)});
    return;
  }
  Dumped one{place, piece, theirs, &tensor, {}, {}};
  one.shape = shape_of(place, attention, runner.tokens(is_encoder), runner.tokens(true));
  one.layouts = layouts_of(one.shape, tensor);
  // Many programs make the last token's logits alone.
  if (place.place.point == model::Point::logits && one.layouts.empty() &&
      tensor.size() == place.width) {
    Layout last{"of the last token alone", {}};
    const index_t all = one.shape.sizes[0] * place.width;
    for (index_t n = 0; n < all; ++n)
      last.at.push_back(n >= all - place.width ? n - (all - place.width) : -1);
    one.layouts.push_back(std::move(last));
  }
  if (one.layouts.empty()) {
    std::string axes;
    for (const std::string& axis : one.shape.axes) axes += (axes.empty() ? "" : ", ") + axis;
    std::string hint = ", in any order of the axes and with any axes of 1";
    for (const index_t more : {-1, 1}) {
      const index_t tokens = runner.tokens(is_encoder) + more;
      if (!layouts_of(shape_of(place, attention, tokens, runner.tokens(true) + more), tensor)
               .empty())
        hint = fmt::format("; it fits a text of {}: are a BOS or an end token counted by both?",
                           tokens);
    }
    problems.push_back(
        {theirs, fmt::format("has shape {}; {} here is {} [{}]{}", file_shape_text(tensor.shape),
                             place.name, file_shape_text(one.shape.sizes), axes, hint)});
    return;
  }
  all_.push_back(std::move(one));
}

PortPlace Dump::compare(const Dumped& dumped, const FileTensor& ours, index_t parts) const {
  PortPlace best;
  best.error = HUGE_VAL;
  bool is_first = true;
  double largest = 0;
  for (index_t n = 0; n < ours.size(); ++n)
    if (std::isfinite(ours.load(n))) largest = std::max(largest, std::fabs(ours.load(n)));
  for (const Layout& layout : dumped.layouts) {
    double most = 0;
    index_t worst = 0;
    for (index_t n = 0; n < ours.size(); ++n) {
      const index_t at = layout.at[static_cast<std::size_t>(n)];
      if (at < 0) continue;
      const double a = ours.load(n), b = dumped.tensor->load(at);
      const bool is_same = a == b || (std::isnan(a) && std::isnan(b));
      const double off = is_same ? 0 : std::fabs(a - b);
      if (off <= most) continue;  // not so for NaN
      most = std::isnan(off) ? HUGE_VAL : off;
      worst = n;
      if (most == HUGE_VAL) break;
    }
    const double error = most == 0 ? 0 : largest == 0 ? HUGE_VAL : most / largest;
    if (!is_first && error >= best.error) continue;
    is_first = false;
    best.error = error;
    best.layout = layout.words;
    best.right = ours.load(worst);
    best.found =
        dumped.tensor->load(std::max<index_t>(layout.at[static_cast<std::size_t>(worst)], 0));
    best.worst.assign(ours.shape.size(), 0);
    index_t rest = worst;
    for (std::size_t a = ours.shape.size(); a-- > 0; rest /= ours.shape[a])
      best.worst[a] = rest % ours.shape[a];
  }
  best.name = dumped.place.name;
  best.theirs = dumped.theirs;
  best.tolerance =
      allowed(arithmetic_) * std::sqrt(static_cast<double>(std::max<index_t>(parts, 1)));
  best.is_right = best.error <= best.tolerance;
  return best;
}

std::optional<FileTensor> Dump::numbers(const Dumped& dumped, const std::string& layout) {
  for (const Layout& one : dumped.layouts) {
    if (one.words != layout) continue;
    FileTensor tensor = make_tensor(DType::f32, dumped.shape.sizes);
    auto* const to = reinterpret_cast<float*>(tensor.bytes.data());
    for (index_t n = 0; n < tensor.size(); ++n) {
      const index_t at = one.at[static_cast<std::size_t>(n)];
      if (at < 0) return std::nullopt;
      to[n] = static_cast<float>(dumped.tensor->load(at));
    }
    return tensor;
  }
  return std::nullopt;
}

}  // namespace glasshead::port
