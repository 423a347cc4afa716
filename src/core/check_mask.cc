#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "base/checked.h"
#include "core/validate.h"

namespace glasshead {
namespace {

constexpr index_t kEntriesNamed = 4;

std::string pairs_text(const PairShape& pairs) {
  return shape_text(std::array<index_t, 4>{pairs.batch, pairs.heads, pairs.q_len, pairs.kv_len});
}

void check_part(const Mask::Causal&, const PairShape&, Findings&) {}

void check_part(const Mask::Window& window, const PairShape&, Findings& findings) {
  const auto side = [&](const char* which, const std::optional<index_t>& keys) {
    if (!keys || *keys >= 0) return;
    findings.option("mask.window",
                    fmt::format("{} is {}; the number of {} keys beside the query's "
                                "own position, 0 or more, or no limit",
                                which, *keys, which[0] == 'l' ? "earlier" : "later"));
  };
  side("left", window.left);
  side("right", window.right);
}

// Lengths, one for all or one per batch entry, each in [0, kv_len].
void check_lengths(const std::string& where, const std::vector<index_t>& lengths,
                   const PairShape& pairs, Findings& findings) {
  const auto count = static_cast<index_t>(lengths.size());
  if (count != 1 && count != pairs.batch) {
    findings.shape(where, fmt::format("{} lengths where batch is {}; one for all, or one for each "
                                      "of the batch",
                                      count, pairs.batch));
  }
  index_t wrong = 0;
  for (index_t b = 0; b < count; ++b) {
    const index_t length = lengths[static_cast<std::size_t>(b)];
    if (length >= 0 && length <= pairs.kv_len) continue;
    if (++wrong > kEntriesNamed) continue;
    findings.option(where, fmt::format("lengths[{}] is {}; a length lies between 0 and kv_len = {}",
                                       b, length, pairs.kv_len));
  }
  if (wrong > kEntriesNamed)
    findings.option(where, fmt::format("{} more lengths are out of range", wrong - kEntriesNamed));
}

void check_part(const Mask::KeyLengths& part, const PairShape& pairs, Findings& findings) {
  check_lengths("mask.key_lengths", part.lengths, pairs, findings);
}

void check_part(const Mask::Prefix& part, const PairShape& pairs, Findings& findings) {
  check_lengths("mask.prefix", part.lengths, pairs, findings);
}

void check_part(const Mask::Segments& part, const PairShape& pairs, Findings& findings) {
  if (part.batch != 1 && part.batch != pairs.batch) {
    findings.shape("mask.segments", fmt::format("batch {} where q has {}; 1, or q's batch",
                                                part.batch, pairs.batch));
    return;
  }
  const auto ids = [&](const char* which, const std::vector<index_t>& found, const char* axis,
                       index_t length) {
    const std::optional<index_t> wanted = checked_mul(part.batch, length);
    if (wanted && static_cast<index_t>(found.size()) == *wanted) return;
    findings.shape("mask.segments", fmt::format("{} has {} ids; [batch, {}] = [{},{}] are needed",
                                                which, found.size(), axis, part.batch, length));
  };
  ids("query_ids", part.query_ids, "q_len", pairs.q_len);
  ids("key_ids", part.key_ids, "kv_len", pairs.kv_len);
}

void check_part(const Mask::Explicit& part, const PairShape& pairs, Findings& findings) {
  if (part.allowed.dtype != DType::u8) {
    findings.option("mask.allowed",
                    fmt::format("has dtype {}; a mask is bool (1 = may attend), numbers to add to "
                                "the scores are a dense bias",
                                name(part.allowed.dtype)));
  }
  check_broadcast("mask.allowed", part.allowed, pairs, findings);
}

void check_part(const Mask::Where& part, const PairShape&, Findings& findings) {
  if (part.rule.predicate()) return;
  findings.option("mask.where",
                  "the predicate is null; a function of (b, h, query position, key position) says "
                  "which pairs may attend");
}

}  // namespace

void check_broadcast(const std::string& where, const Broadcast& values, const PairShape& pairs,
                     Findings& findings) {
  if (values.rank < 0 || values.rank > 4) {
    findings.shape(where, fmt::format("has rank {}; rank 0 to 4 is broadcast, aligned at the "
                                      "right, to [batch, heads, q_len, kv_len] = {}",
                                      values.rank, pairs_text(pairs)));
    return;
  }
  const auto rank = static_cast<std::size_t>(values.rank);
  const std::span<const index_t> shape(values.shape.data(), rank);
  const index_t full[4] = {pairs.batch, pairs.heads, pairs.q_len, pairs.kv_len};
  bool is_sound = true;
  bool has_elements = true;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const std::size_t at = 4 - rank + axis;
    has_elements = has_elements && shape[axis] != 0;
    if (shape[axis] == 1 || shape[axis] == full[at]) continue;
    is_sound = false;
    findings.shape(where, fmt::format("axis {} has {} where {} is right ({} {}, aligned at "
                                      "the right to [batch, heads, q_len, kv_len] = {})",
                                      kPairAxes[at], shape[axis],
                                      full[at] == 1 ? "1" : fmt::format("{} or 1", full[at]), where,
                                      shape_text(shape), pairs_text(pairs)));
  }
  if (!is_sound || !has_elements) return;
  if (!spans_memory(shape, std::span<const index_t>(values.strides.data(), rank), values.dtype))
    findings.shape(where,
                   shape_text(shape) + " with these strides reaches beyond 64-bit addresses");
  if (values.data == nullptr)
    findings.option(where, "data is null, but " + shape_text(shape) + " has elements");
}

void check_mask(const Mask& mask, const PairShape& pairs, Findings& findings) {
  for (const Mask::Part& part : mask.parts())
    std::visit([&](const auto& rule) { check_part(rule, pairs, findings); }, part);
}

}  // namespace glasshead
