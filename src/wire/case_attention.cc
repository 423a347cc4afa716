// The "attention" object of a case: projections or q, k, v themselves, mask, bias, the options.
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include <fmt/format.h>

#include "wire/broadcast.h"
#include "wire/case_builder.h"

namespace glasshead::wire {
namespace {

// A tensor of a mask or a bias, kept alive by the Broadcast that views it.
template <class T>
Broadcast broadcast_of(const std::vector<index_t>& shape, std::vector<T> values) {
  auto owner = std::make_shared<const std::vector<T>>(std::move(values));
  return dense_broadcast(owner->data(), dtype_of<T>(), shape, owner);
}

// One form of a mask or a bias: an object with one field, which says the kind.
JsonValue only_field(CaseBuilder& build, JsonValue value, const std::string& path,
                     std::initializer_list<std::string_view> kinds, std::size_t extra_fields = 0) {
  if (!build.read.object(value, path, kinds)) return {};
  if (value.size() >= 1 && value.size() <= 1 + extra_fields) return value.first();
  build.read.problem(path, value.size() == 0
                               ? "is empty where one field says the kind"
                               : "several fields where one says the kind; a list of objects "
                                 "combines several");
  return {};
}

std::vector<index_t> read_keys(CaseBuilder& build, JsonValue value, const std::string& path,
                               const std::vector<std::string>& labels) {
  std::vector<index_t> keys;
  if (!build.read.list(value, path, "labels or indices of keys")) return keys;
  index_t n = 0;
  for (JsonValue element = value.first(); element; element = element.next(), ++n) {
    if (!element.is(JsonKind::string) && !element.is(JsonKind::number)) {
      build.read.problem(join(path, n), describe(element) + " where a label or an index belongs");
      continue;
    }
    std::string why_not;
    if (const std::optional<index_t> key = find_row(labels, element.text(), why_not))
      keys.push_back(*key);
    else
      build.read.problem(join(path, n), why_not);
  }
  return keys;
}

std::optional<Mask> read_window(CaseBuilder& build, JsonValue value, const std::string& path) {
  if (!build.read.list(value, path, "two numbers, [left, right]")) return std::nullopt;
  if (value.size() != 2) {
    build.read.problem(path, fmt::format("{} numbers where two belong: [left, right]; null is no "
                                         "limit on that side",
                                         value.size()));
    return std::nullopt;
  }
  std::array<std::optional<index_t>, 2> sides;
  const std::size_t before = build.read.problem_count();
  const JsonValue left = value.first();
  const JsonValue right = left.next();
  if (!left.is(JsonKind::null)) sides[0] = build.read.integer(left, join(path, 0), 0, kMostExtent);
  if (!right.is(JsonKind::null))
    sides[1] = build.read.integer(right, join(path, 1), 0, kMostExtent);
  if (build.read.problem_count() != before) return std::nullopt;
  return Mask::window(sides[0], sides[1]);
}

std::optional<Mask> read_segments(CaseBuilder& build, JsonValue value, const std::string& path) {
  const std::size_t before = build.read.problem_count();
  std::vector<index_t> query;
  std::vector<index_t> keys;
  if (value.is(JsonKind::array)) {
    query = keys = build.read.integers(value, path, -kMostExtent, kMostExtent);
  } else if (build.read.object(value, path, {"query", "keys"})) {
    for (const char* name : {"query", "keys"})
      if (!value.find(name)) build.read.problem(join(path, name), "is missing");
    query =
        build.read.integers(value.find("query"), join(path, "query"), -kMostExtent, kMostExtent);
    keys = build.read.integers(value.find("keys"), join(path, "keys"), -kMostExtent, kMostExtent);
  }
  if (build.read.problem_count() != before) return std::nullopt;
  return Mask::segments(1, std::move(query), std::move(keys));
}

std::optional<Mask> read_allowed(CaseBuilder& build, JsonValue value, const std::string& path) {
  const std::optional<GivenTensor> given = build.read.tensor(value, path, 2, 3);
  if (!given) return std::nullopt;
  std::vector<std::uint8_t> bits;
  for (const double x : given->tensor.values) {
    if (x != 0 && x != 1) {
      build.read.problem(path,
                         "numbers other than 0 (hidden) and 1 (allowed); numbers to add to "
                         "the scores are a bias: {\"dense\": ...}");
      return std::nullopt;
    }
    bits.push_back(x != 0 ? 1 : 0);
  }
  return Mask::allowed(broadcast_of(given->tensor.shape, std::move(bits)));
}

std::optional<Mask> read_mask_part(CaseBuilder& build, JsonValue value, const std::string& path,
                                   const AttentionPlace& place) {
  if (value.is(JsonKind::string)) {
    const std::optional<std::size_t> kind = build.read.choice(value, path, {"none", "causal"});
    if (!kind) return std::nullopt;
    return *kind == 0 ? Mask() : Mask::causal();
  }
  const JsonValue part = only_field(
      build, value, path, {"window", "key_lengths", "prefix", "segments", "allowed", "hide_keys"});
  if (!part) return std::nullopt;
  const std::string_view kind = part.key();
  const std::string at = join(path, kind);
  if (kind == "window") return read_window(build, part, at);
  if (kind == "segments") return read_segments(build, part, at);
  if (kind == "allowed") return read_allowed(build, part, at);
  if (kind == "hide_keys") {
    const std::vector<index_t> keys = read_keys(build, part, at, place.keys);
    return hide_keys(keys, static_cast<index_t>(place.keys.size()));
  }
  if (kind == "key_lengths") {
    std::vector<index_t> lengths;
    if (part.is(JsonKind::array))
      lengths = build.read.integers(part, at, 0, kMostExtent);
    else if (const auto length = build.read.integer(part, at, 0, kMostExtent))
      lengths = {*length};
    return Mask::key_lengths(std::move(lengths));
  }
  if (kind == "prefix") {
    const std::optional<index_t> length = build.read.integer(part, at, 0, kMostExtent);
    return Mask::prefix({length.value_or(0)});
  }
  return std::nullopt;
}

void read_mask(CaseBuilder& build, JsonValue value, const AttentionPlace& place, Mask& out) {
  if (!value) return;
  const std::string path = join(place.path, "mask");
  if (!value.is(JsonKind::array)) {
    if (std::optional<Mask> mask = read_mask_part(build, value, path, place))
      out = std::move(*mask);
    return;
  }
  index_t n = 0;
  for (JsonValue part = value.first(); part; part = part.next(), ++n)
    if (const std::optional<Mask> mask = read_mask_part(build, part, join(path, n), place))
      out = out & *mask;
}

std::optional<Bias> read_alibi(CaseBuilder& build, JsonValue value, const std::string& path,
                               index_t heads) {
  const JsonValue slopes = value.find("alibi");
  const std::string at = join(path, "alibi");
  const std::optional<std::size_t> form =
      build.read.choice(value.find("form"), join(path, "form"), {"distance", "key_index"});
  const Bias::AlibiForm alibi_form =
      form == 1 ? Bias::AlibiForm::key_index : Bias::AlibiForm::distance;
  if (slopes.is(JsonKind::string)) {
    if (!build.read.choice(slopes, at, {"auto"})) return std::nullopt;
    return Bias::alibi(Bias::alibi_slopes(heads), alibi_form);
  }
  return Bias::alibi(build.read.numbers(slopes, at), alibi_form);
}

std::optional<Bias> read_t5(CaseBuilder& build, JsonValue value, const std::string& path,
                            index_t heads) {
  if (!build.read.object(value, path, {"table", "max_distance", "bidirectional"}))
    return std::nullopt;
  Bias::T5 t5;
  t5.heads = heads;
  if (!value.find("table")) build.read.problem(join(path, "table"), "is missing");
  const auto table = build.read.tensor(value.find("table"), join(path, "table"), 2, 2);
  t5.max_distance =
      build.read.integer(value.find("max_distance"), join(path, "max_distance"), 1, kMostExtent)
          .value_or(t5.max_distance);
  t5.is_bidirectional =
      build.read.boolean(value.find("bidirectional"), join(path, "bidirectional")).value_or(true);
  if (!table) return std::nullopt;
  if (table->tensor.shape[1] != heads) {
    build.read.problem(join(path, "table"),
                       fmt::format("{} columns where there are {} heads: one row per bucket, one "
                                   "column per head",
                                   table->tensor.shape[1], heads));
    return std::nullopt;
  }
  t5.buckets = table->tensor.shape[0];
  t5.table = table->tensor.values;
  return Bias::t5(std::move(t5));
}

std::optional<Bias> read_bias_term(CaseBuilder& build, JsonValue value, const std::string& path,
                                   index_t heads) {
  if (value.find("alibi")) {
    if (!build.read.object(value, path, {"alibi", "form"})) return std::nullopt;
    return read_alibi(build, value, path, heads);
  }
  const JsonValue term = only_field(build, value, path, {"alibi", "t5", "dense"});
  if (!term) return std::nullopt;
  if (term.key() == "t5") return read_t5(build, term, join(path, "t5"), heads);
  if (term.key() != "dense") return std::nullopt;
  std::optional<GivenTensor> given =
      build.read.tensor(term, join(path, "dense"), 2, 3, /*may_hide=*/true);
  if (!given) return std::nullopt;
  return Bias::dense(broadcast_of(given->tensor.shape, std::move(given->tensor.values)));
}

void read_bias(CaseBuilder& build, JsonValue value, const std::string& path, index_t heads,
               Bias& out) {
  if (!value) return;
  if (!value.is(JsonKind::array)) {
    if (std::optional<Bias> bias = read_bias_term(build, value, path, heads))
      out = std::move(*bias);
    return;
  }
  index_t n = 0;
  for (JsonValue term = value.first(); term; term = term.next(), ++n)
    if (const std::optional<Bias> bias = read_bias_term(build, term, join(path, n), heads))
      out = out + *bias;
}

void read_query_start(CaseBuilder& build, JsonValue value, const std::string& path,
                      QueryStart& out) {
  if (!value) return;
  if (value.is(JsonKind::number)) {
    if (const auto start = build.read.integer(value, path, -kMostExtent, kMostExtent)) out = *start;
    return;
  }
  if (const auto align = build.read.choice(value, path, {"start", "end"}))
    out = *align == 0 ? Align::start : Align::end;
}

void read_dropout(CaseBuilder& build, JsonValue value, const std::string& path, Dropout& out) {
  if (!build.read.object(value, path, {"p", "seed"})) return;
  if (const auto p = build.read.number(value.find("p"), join(path, "p"))) {
    if (*p >= 0 && *p < 1)
      out.p = *p;
    else
      build.read.problem(join(path, "p"), fmt::format("{}; it must be at least 0 and less than 1",
                                                      excerpt(value.find("p").text())));
  }
  if (out.p > 0 && !value.find("seed"))
    build.read.problem(join(path, "seed"),
                       "is missing; p needs a seed, a whole number that decides what is dropped");
  out.seed = static_cast<std::uint64_t>(
      build.read.integer(value.find("seed"), join(path, "seed"), 0, kMostExtent).value_or(0));
}

void read_options(CaseBuilder& build, JsonValue value, const AttentionPlace& place,
                  nn::Attention& out) {
  // Nothing here has a say in a matrix's size.
  const CaseReader::ShapesStand stand(build.read);
  const auto at = [&](std::string_view name) { return join(place.path, name); };
  AttentionOptions& options = out.options;
  options.scale = build.read.number(value.find("scale"), at("scale"));
  if (const auto softcap = build.read.number(value.find("softcap"), at("softcap"))) {
    if (*softcap < 0)
      build.read.problem(at("softcap"), "is negative; a positive number, or 0 for none");
    else
      options.softcap = *softcap;
  }
  read_mask(build, value.find("mask"), place, options.mask);
  read_bias(build, value.find("bias"), at("bias"), out.heads, options.bias);
  const JsonValue sinks = value.find("sinks");
  if (sinks && sinks.is(JsonKind::number)) {
    if (const auto sink = build.read.number(sinks, at("sinks")))
      options.sinks.assign(static_cast<std::size_t>(out.heads), *sink);
  } else {
    options.sinks = build.read.numbers(sinks, at("sinks"));
    if (sinks && static_cast<index_t>(options.sinks.size()) != out.heads &&
        sinks.is(JsonKind::array))
      build.read.problem(at("sinks"), fmt::format("{} numbers where there are {} heads: one each",
                                                  options.sinks.size(), out.heads));
  }
  read_query_start(build, value.find("query_start"), at("query_start"), options.query_start);
  const auto empty_row =
      build.read.choice(value.find("empty_row"), at("empty_row"), {"error", "zero"});
  options.empty_row = empty_row == 1 ? EmptyRow::zero : EmptyRow::error;
  read_dropout(build, value.find("dropout"), at("dropout"), options.dropout);
}

}  // namespace

Mask allowed_pairs(index_t queries, index_t keys, std::vector<std::uint8_t> allowed) {
  return Mask::allowed(broadcast_of({queries, keys}, std::move(allowed)));
}

Mask hide_keys(const std::vector<index_t>& keys, index_t key_count) {
  std::vector<std::uint8_t> allowed(static_cast<std::size_t>(key_count), 1);
  for (const index_t key : keys) allowed[static_cast<std::size_t>(key)] = 0;
  return Mask::allowed(broadcast_of({key_count}, std::move(allowed)));
}

void read_given(CaseBuilder& build, JsonValue attention) {
  if (!attention.is(JsonKind::object)) return;
  for (const char* name : {"q", "k", "v"})
    build.input(attention.find(name), join("attention", name), name, 2, 3);
}

void read_attention(CaseBuilder& build, JsonValue value, const AttentionPlace& place,
                    nn::Attention& out) {
  const auto at = [&](std::string_view name) { return join(place.path, name); };
  out.options.empty_row = EmptyRow::error;
  const bool is_object =
      place.has_given
          ? build.read.object(value, place.path,
                              {"heads", "kv_heads",    "W_Q",       "W_K",     "W_V",  "W_O",
                               "b_Q",   "b_K",         "b_V",       "b_O",     "q",    "k",
                               "v",     "scale",       "softcap",   "softmax", "mask", "bias",
                               "sinks", "query_start", "empty_row", "dropout"})
          : build.read.object(value, place.path,
                              {"heads", "kv_heads", "W_Q", "W_K", "W_V", "W_O", "b_Q", "b_K", "b_V",
                               "b_O", "scale", "softcap", "mask", "bias", "sinks", "query_start",
                               "empty_row", "dropout"});
  if (!is_object) return;
  constexpr index_t kMostHeads = 4096;
  out.heads = build.read.integer(value.find("heads"), at("heads"), 1, kMostHeads).value_or(1);
  out.kv_heads =
      build.read.integer(value.find("kv_heads"), at("kv_heads"), 1, kMostHeads).value_or(out.heads);
  const std::pair<const char*, nn::Projection*> projections[] = {
      {"Q", &out.query}, {"K", &out.key}, {"V", &out.value}, {"O", &out.output}};
  for (const auto& [letter, projection] : projections) {
    const std::string weight = std::string("W_") + letter;
    const std::string bias = std::string("b_") + letter;
    projection->weight = build.input(value.find(weight), at(weight), place.prefix + weight);
    projection->bias = build.input(value.find(bias), at(bias), place.prefix + bias, 1, 1);
  }
  if (place.has_given) {
    const std::tuple<const char*, std::string*, const char*, const char*> given[] = {
        {"q", &out.given_q, "W_Q", "b_Q"},
        {"k", &out.given_k, "W_K", "b_K"},
        {"v", &out.given_v, "W_V", "b_V"}};
    for (const auto& [name, tap, weight, bias] : given) {
      if (!value.find(name)) continue;
      *tap = name;
      for (const char* other : {weight, bias})
        if (value.find(other))
          build.read.problem(at(other), fmt::format("contradicts {}: {} is given, so nothing is "
                                                    "projected",
                                                    at(name), name));
    }
    if (const auto softmax =
            build.read.choice(value.find("softmax"), at("softmax"), {"row", "none"}))
      build.c.has_softmax = *softmax == 0;
  }
  read_options(build, value, place, out);
}

}  // namespace glasshead::wire
