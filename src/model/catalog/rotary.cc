#include "model/catalog/rotary.h"

#include <cmath>

#include <fmt/format.h>

#include "base/math.h"
#include "nn/rope_scaling.h"

namespace glasshead::model {
namespace {

// What a configuration says, before it is worked out.
struct Spec {
  std::string type = "default";
  double base = 0;
  double partial = 1;
  double factor = 0;            // 0: not given
  double original_length = 0;   // 0: not given
  double attention_factor = 0;  // 0: not given
  double low = 0, high = 0;     // of llama3
  nn::Yarn yarn;
  std::vector<double> long_factors, short_factors;

  bool operator==(const Spec& other) const {
    return type == other.type && base == other.base && partial == other.partial &&
           factor == other.factor && original_length == other.original_length &&
           attention_factor == other.attention_factor && low == other.low && high == other.high &&
           yarn.beta_fast == other.yarn.beta_fast && yarn.beta_slow == other.yarn.beta_slow &&
           yarn.mscale == other.yarn.mscale && yarn.mscale_all_dim == other.yarn.mscale_all_dim &&
           yarn.is_truncated == other.yarn.is_truncated && long_factors == other.long_factors &&
           short_factors == other.short_factors;
  }
};

// The fields of one object ("rope_scaling", "rope_parameters/full_attention").
Spec read_object(Fields& fields, const std::string& object, const Spec& defaults) {
  Spec spec = defaults;
  const auto at = [&](const char* name) { return object + "/" + name; };
  const auto positive = [&](const char* name, double otherwise) {
    const std::string path = at(name);
    return fields.positive_or({path.c_str()}, otherwise);
  };
  const auto numbers = [&](const char* name) {
    const std::string path = at(name);
    return fields.numbers({path.c_str()});
  };
  const std::string type = at("type"), rope_type = at("rope_type"), truncate = at("truncate");
  const std::string sections = at("mrope_section");
  fields.refuse({sections.c_str()}, "positions of several dimensions are not built");
  spec.type = fields.text_or({rope_type.c_str()}, fields.text_or({type.c_str()}, spec.type));
  spec.base = positive("rope_theta", spec.base);
  spec.partial = positive("partial_rotary_factor", spec.partial);
  spec.factor = positive("factor", 0);
  spec.original_length = positive("original_max_position_embeddings", spec.original_length);
  spec.attention_factor = positive("attention_factor", 0);
  spec.low = positive("low_freq_factor", 0);
  spec.high = positive("high_freq_factor", 0);
  spec.yarn.beta_fast = positive("beta_fast", spec.yarn.beta_fast);
  spec.yarn.beta_slow = positive("beta_slow", spec.yarn.beta_slow);
  spec.yarn.mscale = positive("mscale", 0);
  spec.yarn.mscale_all_dim = positive("mscale_all_dim", 0);
  spec.yarn.is_truncated = fields.flag_or({truncate.c_str()}, true);
  spec.long_factors = numbers("long_factor");
  spec.short_factors = numbers("short_factor");
  return spec;
}

Spec read_config(Fields& fields, const RotaryDefaults& defaults) {
  Spec plain;
  plain.base = fields.positive_or(defaults.base_key, defaults.base);
  plain.partial = fields.positive_or({"partial_rotary_factor"}, 1);
  plain.original_length = fields.positive_or({"original_max_position_embeddings"}, 0);
  const bool has_old = defaults.may_scale && fields.has({"rope_scaling"});
  Spec old_form = has_old ? read_object(fields, "rope_scaling", plain) : plain;
  if (!fields.has({"rope_parameters"})) return old_form;

  std::string object = "rope_parameters";
  const std::string nested = object + "/" + defaults.layer_type;
  if (defaults.layer_type.empty() && fields.has({"rope_parameters/full_attention"}))
    fields.problem({"rope_parameters"}, "has kinds of layers, which this family hasn't");
  if (!defaults.layer_type.empty() && fields.has({nested.c_str()})) object = nested;
  // A nested object that is for other layers alone leaves these with the plain form.
  else if (!defaults.may_scale)
    return plain;
  const Spec new_form = read_object(fields, object, plain);
  const bool has_both_bases = fields.has(defaults.base_key) && new_form.base != plain.base;
  if (has_both_bases || (has_old && !(old_form == new_form)))
    fields.problem({object.c_str()},
                   "says something else than rope_theta and rope_scaling, which are given as well");
  return new_form;
}

Spec read_gguf(Fields& fields, const RotaryDefaults& defaults) {
  Spec spec;
  spec.base = fields.positive_or(defaults.base_key, defaults.base);
  const index_t rotary = fields.size_or({nullptr, "rope.dimension_count"}, defaults.head_size,
                                        std::max<index_t>(defaults.head_size, 1));
  if (defaults.head_size > 0)
    spec.partial = static_cast<double>(rotary) / static_cast<double>(defaults.head_size);
  if (!defaults.may_scale) return spec;
  spec.type = fields.text_or({nullptr, "rope.scaling.type"}, "none");
  spec.factor = fields.positive_or({nullptr, "rope.scaling.factor"},
                                   fields.positive_or({nullptr, "rope.scale_linear"}, 0));
  if (fields.has({nullptr, "rope.scale_linear"}) && spec.type == "none" && spec.factor != 1)
    spec.type = "linear";
  spec.original_length = fields.positive_or({nullptr, "rope.scaling.original_context_length"}, 0);
  spec.attention_factor = fields.positive_or({nullptr, "rope.scaling.attn_factor"}, 0);
  spec.yarn.beta_fast =
      fields.positive_or({nullptr, "rope.scaling.yarn_beta_fast"}, spec.yarn.beta_fast);
  spec.yarn.beta_slow =
      fields.positive_or({nullptr, "rope.scaling.yarn_beta_slow"}, spec.yarn.beta_slow);
  fields.refuse({nullptr, "rope.scaling.yarn_log_multiplier"}, "this form of YaRN is not built");
  if (const auto factors = fields.tensor_numbers("rope_factors_long.weight", rotary / 2))
    spec.long_factors = *factors;
  if (const auto factors = fields.tensor_numbers("rope_factors_short.weight", rotary / 2))
    spec.short_factors = *factors;
  if (!spec.long_factors.empty() || !spec.short_factors.empty()) spec.type = "longrope";
  return spec;
}

// The object that a scaling's fields are in, for messages.
Key scaling_key(const Fields& fields, const char* gguf) {
  return {fields.has({"rope_parameters"}) ? "rope_parameters" : "rope_scaling", gguf};
}

bool need(Fields& fields, bool holds, const char* what) {
  if (!holds) fields.problem(scaling_key(fields, "rope.scaling.type"), what);
  return holds;
}

bool are_positive(const std::vector<double>& numbers) {
  for (const double number : numbers)
    if (!(number > 0)) return false;
  return true;
}

void scale_long(Fields& fields, const Spec& spec, Rotary& rotary, Description& out) {
  const std::size_t pairs = rotary.frequencies.size();
  if (!need(fields, spec.long_factors.size() == pairs && spec.short_factors.size() == pairs,
            fmt::format("longrope needs long and short factors, {} of each: one for each pair of "
                        "coordinates that turn",
                        pairs)
                .c_str()) ||
      !need(fields, are_positive(spec.long_factors) && are_positive(spec.short_factors),
            "longrope's factors must be above 0"))
    return;
  const double longest = static_cast<double>(out.context_length);
  const double original = spec.original_length > 0 ? spec.original_length : longest;
  if (!need(fields, original > 1, "longrope needs the length the model was first trained on"))
    return;
  // Chosen once, for the length asked for: changing over in mid-text would contradict cached keys.
  const bool is_long = static_cast<double>(fields.options().context) > original;
  nn::stretch(rotary.frequencies, is_long ? spec.long_factors : spec.short_factors);
  rotary.scaling = is_long ? "longrope (long)" : "longrope (short)";
  if (!is_long && longest > original) out.position_limit = static_cast<index_t>(original);
  const double ratio = spec.factor > 0 && !fields.is_gguf() ? spec.factor : longest / original;
  rotary.amplitude =
      spec.attention_factor > 0 ? spec.attention_factor : nn::longrope_amplitude(ratio, original);
}

void scale_yarn(Fields& fields, const Spec& spec, Rotary& rotary, const Description& out) {
  nn::Rope rope{.pairing = rotary.pairing,
                .base = spec.base,
                .rotary = 2 * static_cast<index_t>(rotary.frequencies.size()),
                .yarn = spec.yarn};
  rope.yarn->original_length =
      spec.original_length > 0 ? spec.original_length : static_cast<double>(out.context_length);
  rope.yarn->factor = spec.factor > 0
                          ? spec.factor
                          : static_cast<double>(out.context_length) / rope.yarn->original_length;
  for (const Problem& problem : nn::check(rope, rope.rotary, ""))
    fields.problem(scaling_key(fields, "rope.scaling.type"),
                   "yarn" + problem.where + ": " + problem.what);
  if (!fields.is_fine()) return;
  rotary.frequencies = nn::rope_frequencies(rope, rope.rotary);
  rotary.amplitude = nn::yarn_amplitude(*rope.yarn);
  if (spec.attention_factor > 0)  // GGUF's multiplies, config.json's replaces
    rotary.amplitude = spec.attention_factor * (fields.is_gguf() ? rotary.amplitude : 1);
}

void scale(Fields& fields, const Spec& spec, Rotary& rotary, Description& out) {
  rotary.scaling = spec.type;
  if (spec.type == "default" || spec.type == "none" || spec.type.empty()) {
    rotary.scaling = "";
  } else if (spec.type == "linear") {
    if (need(fields, spec.factor > 0, "linear scaling needs its factor"))
      nn::stretch(rotary.frequencies, spec.factor);
  } else if (spec.type == "llama3") {
    const nn::Llama3Scaling llama3{
        spec.factor, spec.low, spec.high,
        spec.original_length > 0 ? spec.original_length : static_cast<double>(out.context_length)};
    if (need(fields,
             llama3.factor > 0 && llama3.low > 0 && llama3.high > llama3.low &&
                 llama3.original_length > 0,
             "llama3 scaling needs factor, low_freq_factor < high_freq_factor, and "
             "original_max_position_embeddings, all above 0"))
      nn::stretch(rotary.frequencies, llama3);
  } else if (spec.type == "yarn") {
    scale_yarn(fields, spec, rotary, out);
  } else if (spec.type == "longrope") {
    scale_long(fields, spec, rotary, out);
  } else if (spec.type == "dynamic") {
    // Within the length it was made for it is plain RoPE; beyond, every key would have to change.
    if (need(fields, out.context_length > 0, "dynamic scaling needs max_position_embeddings"))
      out.position_limit = out.context_length;
  } else {
    need(fields, false,
         fmt::format("\"{}\": this kind of rotary scaling is not built; must be default, linear, "
                     "dynamic, yarn, longrope or llama3",
                     spec.type.size() > 40 ? "..." : spec.type)
             .c_str());
  }
}

}  // namespace

Rotary read_rotary(Fields& fields, const RotaryDefaults& defaults, Description& out) {
  Rotary rotary{.pairing = defaults.pairing};
  const bool was_fine = fields.is_fine();
  Spec spec = fields.is_gguf() ? read_gguf(fields, defaults) : read_config(fields, defaults);
  if (defaults.is_always_longrope && (spec.type == "su" || spec.type == "yarn"))
    spec.type = "longrope";
  rotary.base = spec.base;
  const auto turning =
      static_cast<index_t>(static_cast<double>(defaults.head_size) * std::min(spec.partial, 2.0));
  if (defaults.head_size > 0 && (turning < 2 || turning % 2 != 0 || turning > defaults.head_size))
    fields.problem({"partial_rotary_factor", "rope.dimension_count"},
                   fmt::format("{} of a head's {} coordinates would turn; must be an even number "
                               "from 2 to {}",
                               turning, defaults.head_size, defaults.head_size));
  if (!was_fine || !fields.is_fine()) return rotary;
  rotary.frequencies =
      nn::rope_frequencies({.base = spec.base, .rotary = turning}, defaults.head_size);
  scale(fields, spec, rotary, out);
  if (fields.is_gguf() && defaults.may_scale)
    if (const auto factors = fields.tensor_numbers("rope_freqs.weight", turning / 2)) {
      if (need(fields, are_positive(*factors), "rope_freqs.weight must be above 0"))
        nn::stretch(rotary.frequencies, *factors);
      rotary.scaling = "factors";
    }
  return rotary;
}

index_t place(Rotary rotary, Stack& stack) {
  for (std::size_t i = 0; i < stack.rotaries.size(); ++i) {
    const Rotary& other = stack.rotaries[i];
    if (other.pairing == rotary.pairing && other.frequencies == rotary.frequencies &&
        other.amplitude == rotary.amplitude)
      return static_cast<index_t>(i);
  }
  stack.rotaries.push_back(std::move(rotary));
  return static_cast<index_t>(stack.rotaries.size()) - 1;
}

}  // namespace glasshead::model
