#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "base/checked.h"
#include "core/validate.h"

namespace glasshead {
namespace {

// Positions are kept this far from the ends of index_t, so that the distance of any two fits.
constexpr index_t kLastPosition = index_t{1} << 61;

struct Named {
  const char* name;
  const ConstTensor<4>* tensor;
  const std::array<const char*, 4>* axes;
};

std::string shapes_text(const Named& a, const Named& b) {
  return fmt::format("({} {}, {} {})", a.name, shape_text(a.tensor->shape), b.name,
                     shape_text(b.tensor->shape));
}

// One tensor by itself. False if its sizes can't be compared with anything.
bool check_tensor(const Named& input, Findings& findings) {
  const ConstTensor<4>& t = *input.tensor;
  if (!is_floating(t.dtype)) {
    findings.option(input.name, fmt::format("has dtype {}; q, k and v share one of f64, f32, bf16 "
                                            "and f16",
                                            name(t.dtype)));
  }
  bool is_sound = true;
  for (std::size_t axis = 0; axis < 4; ++axis) {
    if (t.shape[axis] >= 0) continue;
    findings.shape(input.name,
                   fmt::format("axis {} has the negative size {} ({} {})", (*input.axes)[axis],
                               t.shape[axis], input.name, shape_text(t.shape)));
    is_sound = false;
  }
  if (!is_sound) return false;
  const std::optional<index_t> size = checked_size(t.shape);
  if (!size || !spans_memory(t.shape, t.strides, t.dtype) ||
      !checked_mul(*size, static_cast<index_t>(size_of(t.dtype)))) {
    findings.shape(input.name, fmt::format("{} with strides {} is larger than 64-bit addresses",
                                           shape_text(t.shape), shape_text(t.strides)));
    return false;
  }
  if (*size == 0) return true;
  if (t.data == nullptr) {
    findings.option(input.name, fmt::format("data is null, but {} has {} elements",
                                            shape_text(t.shape), *size));
  } else if (reinterpret_cast<std::uintptr_t>(t.data) % size_of(t.dtype) != 0) {
    findings.option(input.name,
                    fmt::format("data is not aligned to the {} bytes of an element of {}",
                                size_of(t.dtype), name(t.dtype)));
  }
  return true;
}

void check_same_dtype(const Named& q, const Named& other, Findings& findings) {
  const DType found = other.tensor->dtype;
  const DType wanted = q.tensor->dtype;
  if (found == wanted || !is_floating(found) || !is_floating(wanted)) return;
  findings.option(other.name, fmt::format("has dtype {} where q has {}; q, k and v share one dtype",
                                          name(found), name(wanted)));
}

// Axis `axis` of `other` must have the size that `base` has there.
void check_same_size(const Named& base, const Named& other, std::size_t axis, Findings& findings) {
  const index_t wanted = base.tensor->shape[axis];
  const index_t found = other.tensor->shape[axis];
  if (found == wanted) return;
  findings.shape(other.name, fmt::format("axis {} has {} where {} has {}; they must be equal {}",
                                         (*other.axes)[axis], found, base.name, wanted,
                                         shapes_text(base, other)));
}

void check_heads(const Named& q, const Named& k, Findings& findings) {
  const index_t heads = q.tensor->shape[1];
  const index_t kv_heads = k.tensor->shape[1];
  if (kv_heads == 0 ? heads == 0 : heads % kv_heads == 0) return;
  findings.shape(q.name, fmt::format("axis heads has {}, k has {} kv_heads; heads must be a "
                                     "multiple of kv_heads {}",
                                     heads, kv_heads, shapes_text(q, k)));
}

void check_numbers(const AttentionOptions& options, index_t heads, DType compute,
                   Findings& findings) {
  if (options.scale && !std::isfinite(*options.scale)) {
    findings.option("scale", number_text(*options.scale) +
                                 "; any finite number is possible, nullopt is 1/sqrt(d_k)");
  }
  if (!std::isfinite(options.softcap) || options.softcap < 0) {
    findings.option("softcap", number_text(options.softcap) +
                                   "; a positive number caps the scores, 0 turns it off");
  }
  if (!(options.dropout.p >= 0 && options.dropout.p < 1)) {
    findings.option("dropout", "p is " + number_text(options.dropout.p) + "; p must lie in [0, 1)");
  }
  if (options.sinks.empty()) return;
  if (static_cast<index_t>(options.sinks.size()) != heads) {
    findings.shape("sinks", fmt::format("{} numbers where q has {} heads; one for each head, or "
                                        "none",
                                        options.sinks.size(), heads));
  }
  for (std::size_t h = 0; h < options.sinks.size(); ++h) {
    const double sink = options.sinks[h];
    if (std::isfinite(sink) && (compute == DType::f64 || std::isfinite(static_cast<float>(sink))))
      continue;
    findings.option("sinks", fmt::format("sinks[{}] is {}; a sink is a finite number of the "
                                         "compute type {}",
                                         h, number_text(sink), name(compute)));
  }
}

// "query row 0 at position 0 and the last at 4; under a causal mask they see 1 and 2 keys"
std::string corner_text(index_t first, index_t q_len, index_t kv_len) {
  const auto seen = [&](index_t position) {
    return position < 0 ? index_t{0} : position + 1 < kv_len ? position + 1 : kv_len;
  };
  const index_t last = q_len > 0 ? first + q_len - 1 : first;
  return fmt::format(
      "(query_start {}) puts the first query at position {} and the last at {}, "
      "which under a causal mask see {} and {} of {} keys",
      first, first, last, seen(first), seen(last), kv_len);
}

void check_query_start(const AttentionOptions& options, index_t q_len, index_t kv_len,
                       Findings& findings) {
  if (q_len > kLastPosition || kv_len > kLastPosition) {
    findings.shape("query_start", "lengths beyond 2^61 have no positions");
    return;
  }
  if (const auto* start = std::get_if<index_t>(&options.query_start)) {
    if (*start < -kLastPosition || *start > kLastPosition) {
      findings.option("query_start",
                      fmt::format("{}; positions lie between -2^61 and 2^61", *start));
    }
    return;
  }
  if (q_len == kv_len || !std::holds_alternative<std::monostate>(options.query_start)) return;
  const std::string rules = positional_rules(options);
  if (rules.empty()) return;
  findings.option(
      "query_start",
      fmt::format("not stated, but q_len is {}, kv_len is {} and there are rules about positions "
                  "({}). Align::start {}; Align::end {}. State one of them, or the position of "
                  "query row 0",
                  q_len, kv_len, rules, corner_text(0, q_len, kv_len),
                  corner_text(kv_len - q_len, q_len, kv_len)));
}

void check_empty_rows(const AttentionOptions& options, const PairShape& pairs, Findings& findings) {
  if (options.empty_row != EmptyRow::error) return;
  if (!options.sinks.empty()) return;                                    // every row has its sink
  if (pairs.batch == 0 || pairs.heads == 0 || pairs.q_len == 0) return;  // kv_len may be anything
  const MaskPlan plan(options, pairs);
  EmptyRows empty;
  for (index_t b = 0; b < pairs.batch; ++b) find_empty_rows(plan, b, empty);
  report_empty_rows(empty, "no allowed key", findings);
}

}  // namespace

std::string positional_rules(const AttentionOptions& options) {
  std::string rules;
  const auto add = [&](const char* rule) {
    rules += (rules.empty() ? "" : ", ") + std::string(rule);
  };
  for (const Mask::Part& part : options.mask.parts()) {
    const auto* window = std::get_if<Mask::Window>(&part);
    if (std::holds_alternative<Mask::Causal>(part)) add("causal");
    if (window != nullptr && (window->left || window->right)) add("window");
    if (std::holds_alternative<Mask::Prefix>(part)) add("prefix");
    if (std::holds_alternative<Mask::Where>(part)) add("where");
  }
  for (const Bias::Term& term : options.bias.terms()) {
    const auto* alibi = std::get_if<Bias::Alibi>(&term);
    if (alibi != nullptr && alibi->form == Bias::AlibiForm::distance) add("ALiBi");
    if (std::holds_alternative<Bias::T5>(term)) add("T5 bias");
  }
  return rules;
}

void find_empty_rows(const MaskPlan& plan, index_t b, EmptyRows& empty) {
  const PairShape& pairs = plan.shape();
  for (index_t h = 0; h < pairs.heads; ++h) {
    for (index_t i = 0; i < pairs.q_len; ++i) {
      if (!plan.has_allowed(b, h, i)) empty.add(b, h, i);
    }
  }
}

void check_call(const CallInputs& inputs, const AttentionOptions& options, Findings& findings) {
  const Named q{"q", inputs.q, &kQueryAxes};
  const Named k{"k", inputs.k, &kKeyAxes};
  const Named v{"v", inputs.v, &kValueAxes};
  const bool has_v = inputs.v != nullptr;
  const bool q_is_sound = check_tensor(q, findings);
  const bool k_is_sound = check_tensor(k, findings);
  const bool v_is_sound = has_v && check_tensor(v, findings);
  check_same_dtype(q, k, findings);
  if (has_v) check_same_dtype(q, v, findings);
  if (q_is_sound && k_is_sound) {
    check_same_size(q, k, 0, findings);
    check_heads(q, k, findings);
    check_same_size(q, k, 3, findings);
  }
  if (q_is_sound && q.tensor->shape[3] == 0) {
    findings.shape("q", "axis d_k has 0; a score needs at least one component (q " +
                            shape_text(q.tensor->shape) + ")");
  }
  if (k_is_sound && v_is_sound) {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if (axis == 0 && q_is_sound && k.tensor->shape[0] != q.tensor->shape[0]) continue;
      check_same_size(k, v, axis, findings);
    }
  }
  if (q_is_sound && v_is_sound && k_is_sound && k.tensor->shape[0] != q.tensor->shape[0])
    check_same_size(q, v, 0, findings);
  const DType compute = compute_type(q.tensor->dtype);
  check_numbers(options, q.tensor->shape[1], compute, findings);
  if (!q_is_sound || !k_is_sound) return;
  const PairShape pairs{q.tensor->shape[0], q.tensor->shape[1], q.tensor->shape[2],
                        k.tensor->shape[2]};
  check_query_start(options, pairs.q_len, pairs.kv_len, findings);
  check_mask(options.mask, pairs, findings);
  check_bias(options.bias, pairs, compute, findings);
  if (findings.is_empty()) check_empty_rows(options, pairs, findings);
}

std::vector<Problem> check(const ConstTensor<4>& q, const ConstTensor<4>& k,
                           const ConstTensor<4>& v, const AttentionOptions& options) {
  Findings findings;
  check_call({&q, &k, &v}, options, findings);
  return findings.problems;
}

}  // namespace glasshead
