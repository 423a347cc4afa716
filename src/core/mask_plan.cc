#include "core/mask_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace glasshead {
namespace {

constexpr index_t kLast = std::numeric_limits<index_t>::max();
constexpr index_t kRun = 256;  // keys whose flags are at hand at once

// One length for all, or one per batch entry.
index_t length_of(const std::vector<index_t>& lengths, index_t b) {
  return lengths.size() == 1 ? lengths[0] : lengths[static_cast<std::size_t>(b)];
}

bool hides(const BroadcastRow& bias, index_t j) {
  return bias.load(j) == -std::numeric_limits<double>::infinity();
}

// A row's query as the parts of a mask see it.
struct Query {
  index_t b, h, i, position;
  PairShape shape;
};

// The interval of keys that a part with an interval's shape allows; for other parts, all keys.
KeyRange interval(const Mask::Causal&, const Query& query) {
  return {0, saturating_add(query.position, 1)};
}
KeyRange interval(const Mask::Window& window, const Query& query) {
  const index_t begin = window.left ? saturating_sub(query.position, *window.left) : 0;
  const index_t end =
      window.right ? saturating_add(saturating_add(query.position, *window.right), 1) : kLast;
  return {begin, end};
}
KeyRange interval(const Mask::KeyLengths& part, const Query& query) {
  return {0, length_of(part.lengths, query.b)};
}
KeyRange interval(const Mask::Segments&, const Query&) { return {0, kLast}; }
KeyRange interval(const Mask::Prefix& part, const Query& query) {
  return {0, std::max(length_of(part.lengths, query.b), saturating_add(query.position, 1))};
}
KeyRange interval(const Mask::Explicit&, const Query&) { return {0, kLast}; }
KeyRange interval(const Mask::Where&, const Query&) { return {0, kLast}; }

// Calls hide(j) for every key of `keys` that the part hides without having an interval's shape.
template <class Hide>
void hide_inside(const Mask::Segments& part, const Query& query, KeyRange keys, const Hide& hide) {
  const index_t row = part.batch == 1 ? 0 : query.b;
  const index_t own = part.query_ids[static_cast<std::size_t>(row * query.shape.q_len + query.i)];
  for (index_t j = keys.begin; j < keys.end; ++j) {
    if (part.key_ids[static_cast<std::size_t>(row * query.shape.kv_len + j)] != own) hide(j);
  }
}
template <class Hide>
void hide_inside(const Mask::Explicit& part, const Query& query, KeyRange keys, const Hide& hide) {
  const BroadcastRow row = broadcast_row(part.allowed, query.b, query.h, query.i);
  const auto* flags = static_cast<const std::uint8_t*>(row.data) + row.offset;
  for (index_t j = keys.begin; j < keys.end; ++j) {
    if (flags[j * row.step] == 0) hide(j);
  }
}
template <class Part, class Hide>
void hide_inside(const Part&, const Query&, KeyRange, const Hide&) {}

Reason reason_of(const Mask::Part& part) {
  constexpr Reason kReasons[] = {Reason::causal, Reason::window, Reason::padding, Reason::segments,
                                 Reason::prefix, Reason::mask,   Reason::rule};
  static_assert(std::size(kReasons) == std::variant_size_v<Mask::Part>);
  return kReasons[part.index()];
}

}  // namespace

const char* name(Reason reason) {
  switch (reason) {
    case Reason::causal:
      return "causal";
    case Reason::window:
      return "window";
    case Reason::padding:
      return "padding";
    case Reason::segments:
      return "segments";
    case Reason::prefix:
      return "prefix";
    case Reason::mask:
      return "mask";
    case Reason::rule:
      return "rule";
    case Reason::bias:
      return "bias";
  }
  return "";
}

std::vector<std::string> Reasons::names() const {
  std::vector<std::string> list;
  for (int bit = 1; bit <= static_cast<int>(Reason::bias); bit *= 2) {
    const auto reason = static_cast<Reason>(bit);
    if (has(reason)) list.emplace_back(name(reason));
  }
  return list;
}

index_t resolve_query_start(const QueryStart& query_start, index_t q_len, index_t kv_len) {
  if (const auto* position = std::get_if<index_t>(&query_start)) return *position;
  const auto* align = std::get_if<Align>(&query_start);
  return align != nullptr && *align == Align::end ? kv_len - q_len : 0;
}

BroadcastRow broadcast_row(const Broadcast& values, index_t b, index_t h, index_t i) {
  BroadcastRow row{values.data, values.dtype, 0, 0};
  const index_t at[4] = {b, h, i, 0};
  for (int n = 0; n < values.rank; ++n) {
    const auto axis = static_cast<std::size_t>(n);
    const int full = 4 - values.rank + n;  // right-aligned
    if (values.shape[axis] == 1) continue;
    if (full == 3)
      row.step = values.strides[axis];
    else
      row.offset += at[full] * values.strides[axis];
  }
  return row;
}

MaskPlan::MaskPlan(const AttentionOptions& options, const PairShape& shape)
    : mask_(options.mask),
      intervals_(options.mask, shape.kv_len),
      shape_(shape),
      query_start_(resolve_query_start(options.query_start, shape.q_len, shape.kv_len)) {
  for (const Mask::Part& part : mask_.parts()) {
    if (const auto* where = std::get_if<Mask::Where>(&part))
      rules_.push_back(map_of(where->rule, where->version, shape, query_start_));
  }
  for (const Bias::Term& term : options.bias.terms()) {
    if (const auto* dense = std::get_if<Bias::Dense>(&term)) dense_.push_back(dense->values);
  }
}

Reasons MaskPlan::reasons(index_t b, index_t h, index_t i, index_t j) const {
  Reasons found;
  const Query query{b, h, i, position(i), shape_};
  for (const Mask::Part& part : mask_.parts()) {
    std::visit(
        [&](const auto& rule) {
          const KeyRange keys = interval(rule, query);
          bool is_hidden = j < keys.begin || j >= keys.end;
          hide_inside(rule, query, {j, j + 1}, [&](index_t) { is_hidden = true; });
          if (is_hidden) found.add(reason_of(part));
        },
        part);
  }
  for (const auto& rule : rules_) {
    if (!rule->allowed(b, h, i, j)) found.add(Reason::rule);
  }
  for (const Broadcast& values : dense_) {
    if (hides(broadcast_row(values, b, h, i), j)) found.add(Reason::bias);
  }
  return found;
}

KeyRange MaskPlan::key_range(index_t b, index_t, index_t i) const {
  const KeyRange keys = intervals_.at(b, position(i));
  return keys.is_empty() ? KeyRange{} : keys;
}

// flags[j - keys.begin] for j in `keys`.
index_t MaskPlan::fill(index_t b, index_t h, index_t i, KeyRange keys, std::uint8_t* flags) const {
  const KeyRange inside = key_range(b, h, i);
  for (index_t j = keys.begin; j < keys.end; ++j)
    flags[j - keys.begin] = j >= inside.begin && j < inside.end ? 1 : 0;
  const Query query{b, h, i, position(i), shape_};
  for (const Mask::Part& part : mask_.parts()) {
    std::visit(
        [&](const auto& rule) {
          hide_inside(rule, query, keys, [&](index_t j) { flags[j - keys.begin] = 0; });
        },
        part);
  }
  for (const auto& rule : rules_) {
    for (index_t j = keys.begin; j < keys.end; ++j) {
      if (!rule->allowed(b, h, i, j)) flags[j - keys.begin] = 0;
    }
  }
  for (const Broadcast& values : dense_) {
    const BroadcastRow row = broadcast_row(values, b, h, i);
    for (index_t j = keys.begin; j < keys.end; ++j) {
      if (hides(row, j)) flags[j - keys.begin] = 0;
    }
  }
  index_t count = 0;
  for (index_t j = keys.begin; j < keys.end; ++j) count += flags[j - keys.begin];
  return count;
}

index_t MaskPlan::fill_row(index_t b, index_t h, index_t i, KeyRange keys,
                           std::uint8_t* allowed) const {
  return keys.is_empty() ? 0 : fill(b, h, i, keys, allowed + keys.begin);
}

bool MaskPlan::has_allowed(index_t b, index_t h, index_t i) const {
  const KeyRange keys = key_range(b, h, i);
  const bool only_intervals =
      rules_.empty() && dense_.empty() &&
      std::none_of(mask_.parts().begin(), mask_.parts().end(), [](const Mask::Part& part) {
        return std::holds_alternative<Mask::Segments>(part) ||
               std::holds_alternative<Mask::Explicit>(part);
      });
  if (only_intervals || keys.is_empty()) return !keys.is_empty();
  std::uint8_t flags[kRun];
  for (index_t j = keys.begin; j < keys.end; j += kRun)
    if (fill(b, h, i, {j, std::min(j + kRun, keys.end)}, flags) > 0) return true;
  return false;
}

index_t MaskPlan::count_allowed(index_t b, index_t h, index_t i) const {
  std::uint8_t flags[kRun];
  const KeyRange keys = key_range(b, h, i);
  index_t count = 0;
  for (index_t j = keys.begin; j < keys.end; j += kRun)
    count += fill(b, h, i, {j, std::min(j + kRun, keys.end)}, flags);
  return count;
}

}  // namespace glasshead
