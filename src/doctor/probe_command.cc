// The command line that writes a probe for a call.
#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "core/scale.h"
#include "glasshead/diagnose.h"
#include "wire/decimal.h"

namespace glasshead {
namespace {

constexpr std::size_t kMostInline = 64;  // ids of documents, in a command line

template <class T, class Text>
std::string list(const std::vector<T>& values, const Text& text) {
  std::string all;
  for (const T& value : values) all += (all.empty() ? "" : ",") + text(value);
  return all;
}
std::string list(const std::vector<index_t>& values) {
  return list(values, [](index_t n) { return std::to_string(n); });
}
std::string list(const std::vector<double>& values) { return list(values, wire::shortest); }

std::string start_text(const QueryStart& start) {
  if (const auto* align = std::get_if<Align>(&start))
    return *align == Align::start ? "start" : "end";
  const auto* position = std::get_if<index_t>(&start);
  return position == nullptr ? "" : std::to_string(*position);
}

struct MaskFlags {
  std::string operator()(const Mask::Causal&) const { return ""; }  // said with where queries start
  std::string operator()(const Mask::Window& window) const {
    const auto side = [](const std::optional<index_t>& n) { return n ? std::to_string(*n) : ""; };
    return " --window " + side(window.left) + "," + side(window.right);
  }
  std::string operator()(const Mask::KeyLengths& keys) const {
    return " --key-lengths " + list(keys.lengths);
  }
  std::string operator()(const Mask::Segments& ids) const {
    if (ids.batch != 1 || std::max(ids.query_ids.size(), ids.key_ids.size()) > kMostInline)
      return " --query-segments FILE --key-segments FILE";
    return " --query-segments " + list(ids.query_ids) + " --key-segments " + list(ids.key_ids);
  }
  std::string operator()(const Mask::Prefix& prefix) const {
    return " --prefix " + list(prefix.lengths);
  }
  std::string operator()(const Mask::Explicit&) const { return " --mask FILE"; }
  std::string operator()(const Mask::Where&) const { return " --mask FILE"; }
};

std::string mask_flags(const AttentionOptions& options) {
  std::string text;
  bool is_causal = false;
  for (const Mask::Part& part : options.mask.parts()) {
    is_causal = is_causal || std::holds_alternative<Mask::Causal>(part);
    text += std::visit(MaskFlags{}, part);
  }
  const std::string start = start_text(options.query_start);
  if (is_causal) return " --causal" + (start.empty() ? "" : "=" + start) + text;
  return text + (start.empty() ? "" : " --query-start " + start);
}

struct BiasFlags {
  index_t heads;
  std::string operator()(const Bias::Alibi& alibi) const {
    const bool is_papers = alibi.slopes == Bias::alibi_slopes(heads);
    return " --alibi" + (is_papers ? "" : "=" + list(alibi.slopes)) +
           (alibi.form == Bias::AlibiForm::key_index ? " --alibi-form key-index" : "");
  }
  std::string operator()(const Bias::T5& t5) const {
    return " --t5 FILE --t5-max-distance " + std::to_string(t5.max_distance) +
           (t5.is_bidirectional ? "" : " --t5-one-sided");
  }
  std::string operator()(const Bias::Dense&) const { return " --bias FILE"; }
};

std::string score_flags(const AttentionCase& call) {
  std::string text;
  const AttentionOptions& options = call.options;
  for (const Bias::Term& term : options.bias.terms())
    text += std::visit(BiasFlags{call.q.shape[1]}, term);
  if (options.scale && *options.scale != scale_of({}, call.k.shape[3]))
    text += " --scale " + wire::shortest(*options.scale);
  if (options.softcap > 0) text += " --softcap " + wire::shortest(options.softcap);
  if (!options.sinks.empty()) text += " --sinks " + list(options.sinks);
  return text;
}

std::string rotary_flags(const Rotary& rotary) {
  std::string text = std::string(" --rope ") + (rotary.is_adjacent ? "adjacent" : "halves");
  if (rotary.base != Rotary{}.base) text += " --rope-base " + wire::shortest(rotary.base);
  if (rotary.size != 0) text += " --rope-size " + std::to_string(rotary.size);
  return text;
}

}  // namespace

std::string probe_command(const AttentionCase& call) {
  std::string text = "glasshead doctor --probe DIR";
  const auto add = [&](const char* flag, index_t n, index_t unless) {
    if (n != unless) text += std::string(" ") + flag + " " + std::to_string(n);
  };
  const auto& q = call.q.shape;
  const index_t kv_heads = call.k.shape[1], kv_len = call.k.shape[2], d_v = call.v.shape[3];
  add("--batch", q[0], 1);
  add("--heads", q[1], 1);
  add("--kv-heads", kv_heads, q[1]);
  add("--q-len", q[2], 0);
  add("--kv-len", kv_len, 0);
  add("--d-k", q[3], 0);
  add("--d-v", d_v, q[3]);
  text += mask_flags(call.options) + score_flags(call);
  return call.rotary ? text + rotary_flags(*call.rotary) : text;
}

}  // namespace glasshead
