// One attention of a block: projections, heads, positions, the steps of core, and back.
#include <array>
#include <variant>

#include <fmt/format.h>

#include "core/mask_plan.h"
#include "core/steps.h"
#include "nn/rope_step.h"
#include "nn/walk.h"

namespace glasshead::nn {

// q, k or v: given, or projected from x.
Value Walk::operand(const char* id, const Projection& projection, const std::string& given,
                    const Place& place, const Value& x) {
  const std::string heads = *id == 'q' ? "heads" : "kv_heads";
  const std::string size = *id == 'v' ? "d_v" : "d_k";
  if (given.empty()) {
    const std::string rows = x.tap == "context" ? "d_context" : "d_model";
    return project(id, place.prefix + id, x, projection, {rows, heads + "·" + size});
  }
  const std::string wanted =
      fmt::format("{} as [length, {}·{}] or [{}, length, {}]", id, heads, size, heads, size);
  Value value{given, input(given, wanted), given};
  if (value.is_known() && value.shape->size() != 2 && value.shape->size() != 3) {
    problem(given, size_text(*value.shape) + ": wanted: " + wanted);
    value.shape.reset();
  }
  return value;
}

// [n, heads·d] -> [heads, n, d]; what has heads already is only checked.
Value Walk::cut(const Value& x, index_t heads, const char* called, const std::string& tap) {
  Value result{tap, std::nullopt, x.source};
  if (x.is_known() && x.shape->size() == 3) {
    if ((*x.shape)[0] == heads) return x;
    problem(x.source, fmt::format("{}: the first axis must equal {} = {}", size_text(*x.shape),
                                  called, heads));
    return result;
  }
  if (x.is_known() && x.columns() % heads != 0)
    problem(x.source, fmt::format("gives {} columns: they must be a multiple of {} = {}",
                                  x.columns(), called, heads));
  else if (x.is_known())
    result.shape = Shape{heads, x.rows(), x.columns() / heads};
  return add(find_op("split"), std::move(result), {x.tap}, {{"heads", static_cast<double>(heads)}});
}

void Walk::cut_into_heads(const Attention& attention, const Place& place, Heads& heads) {
  if (attention.heads < 1) problem(place.field + ".heads", "must be at least 1");
  if (attention.kv_heads < 1) problem(place.field + ".kv_heads", "must be at least 1");
  if (attention.heads < 1 || attention.kv_heads < 1) {
    heads.q.shape = heads.k.shape = heads.v.shape = std::nullopt;
    return;
  }
  if (attention.heads % attention.kv_heads != 0)
    problem(place.field + ".kv_heads",
            fmt::format("{} where heads = {}: heads must be a multiple of kv_heads",
                        attention.kv_heads, attention.heads));
  const auto has_heads = [](const Value& x) { return x.is_known() && x.shape->size() == 3; };
  if (attention.heads == 1 && attention.kv_heads == 1 && !has_heads(heads.q) &&
      !has_heads(heads.k) && !has_heads(heads.v))
    return;
  heads.q = cut(heads.q, attention.heads, "heads", place.prefix + "q_heads");
  heads.k = cut(heads.k, attention.kv_heads, "kv_heads", place.prefix + "k_heads");
  heads.v = cut(heads.v, attention.kv_heads, "kv_heads", place.prefix + "v_heads");
}

Value Walk::rotated(const Value& x, const std::string& tap, const Rope& rope, index_t first) {
  std::vector<StepNumber> numbers = rope_numbers(rope);
  numbers.emplace_back("first_position", static_cast<double>(first));
  return add(find_op("rope"), {tap, x.shape, x.source}, {x.tap}, std::move(numbers));
}

// The rows so far: those of earlier runs, then x's. `tap` is "k" or "v" with its prefix.
Value Walk::cached(const Value& x, const std::string& tap) {
  Value result{tap + "_cache", x.shape, x.source};
  std::vector<std::string> reads{x.tap};
  if (cache_->earlier > 0) {
    reads.insert(reads.begin(), tap + "_earlier");
    if (result.is_known()) (*result.shape)[result.shape->size() - 2] += cache_->earlier;
  }
  return add(find_op("append"), std::move(result), std::move(reads));
}

bool Walk::fit_together(const Attention& attention, const Heads& heads) {
  const auto& [q, k, v] = heads;
  if (!q.is_known() || !k.is_known() || !v.is_known()) return false;
  bool fits = attention.heads % attention.kv_heads == 0;
  if (k.columns() != q.columns()) {
    fits = false;
    problem(k.source, fmt::format("gives keys of size {} where {} gives queries of size {}: both "
                                  "must have the same d_k",
                                  k.columns(), q.source, q.columns()));
  }
  if (v.rows() != k.rows()) {
    fits = false;
    problem(v.source, fmt::format("gives {} values where {} gives {} keys: each key needs one",
                                  v.rows(), k.source, k.rows()));
  }
  return fits;
}

// Everything core's check finds in the options, for tensors of these shapes.
void Walk::check_options(const AttentionOptions& options, const Place& place, const Heads& heads) {
  static constexpr double kNumber = 0;  // every element of the tensors checked: it is not read
  const auto tensor = [](const Value& x) {
    const index_t count = x.shape->size() == 3 ? (*x.shape)[0] : 1;
    return ConstTensor<4>(&kNumber, DType::f64, {1, count, x.rows(), x.columns()}, {0, 0, 0, 0});
  };
  for (Problem& found :
       glasshead::check(tensor(heads.q), tensor(heads.k), tensor(heads.v), options))
    problem(place.field + "." + found.where, std::move(found.what));
}

Value Walk::attend(const Attention& attention, bool is_cross, const Place& place, const Value& x) {
  const bool needs_context = is_cross && (attention.given_k.empty() || attention.given_v.empty());
  const Value memory =
      needs_context ? matrix_input("context", "the second sequence, [m, d_context]") : x;
  Heads heads{operand("q", attention.query, attention.given_q, place, x),
              operand("k", attention.key, attention.given_k, place, memory),
              operand("v", attention.value, attention.given_v, place, memory)};
  cut_into_heads(attention, place, heads);
  const index_t earlier = cache_ ? cache_->earlier : 0;
  if (attention.rope) {
    const index_t first = network_.first_position + earlier;
    if (heads.q.is_known())
      for (Problem& found : nn::check(*attention.rope, heads.q.columns(), place.field + ".rope"))
        problem(std::move(found.where), std::move(found.what));
    heads.q = rotated(heads.q, place.prefix + "q_rotated", *attention.rope, first);
    heads.k = rotated(heads.k, place.prefix + "k_rotated", *attention.rope, is_cross ? 0 : first);
  }
  AttentionOptions options = attention.options;
  if (cache_ && !is_cross) {
    // Earlier rows and these are one text: row 0 of these stands after the earlier ones.
    options.query_start = resolve_query_start(options.query_start, earlier, earlier) + earlier;
    heads.k = cached(heads.k, place.prefix + "k");
    heads.v = cached(heads.v, place.prefix + "v");
  }
  if (fit_together(attention, heads)) check_options(options, place, heads);
  for (Step& step : attention_steps(options, heads.q.is_known() ? heads.q.columns() : 1,
                                    {place.prefix, heads.q.tap, heads.k.tap, heads.v.tap}))
    list.push_back(std::move(step));
  Value out{place.prefix + "out", std::nullopt, heads.v.source};
  if (heads.q.is_known() && heads.v.is_known()) {
    out.shape = heads.q.shape;
    out.shape->back() = heads.v.columns();
  }
  if (out.is_known() ? out.shape->size() == 3 : attention.heads > 1) {
    if (out.is_known()) out.shape = Shape{out.rows(), attention.heads * out.columns()};
    const std::string from = std::exchange(out.tap, place.prefix + "concat");
    out = add(find_op("concat"), std::move(out), {from});
  }
  if (attention.output.weight.empty() && attention.output.bias.empty()) return out;
  return project("projected", place.prefix + "projected", out, attention.output,
                 {"heads·d_v", "d_model"});
}

}  // namespace glasshead::nn
