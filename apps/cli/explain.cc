#include "cli/explain.h"

#include <cmath>
#include <limits>
#include <variant>

#include "cli/values.h"
#include "glasshead/attend_plan.h"

namespace glasshead::cli {
namespace {

template <class... Visitors>
struct Overload : Visitors... {
  using Visitors::operator()...;
};
template <class... Visitors>
Overload(Visitors...) -> Overload<Visitors...>;

std::string line(const std::string& label, const std::string& text) {
  return "  " + label + std::string(label.size() < 15 ? 15 - label.size() : 1, ' ') + text + "\n";
}

std::string tensor_text(const char* axes, const ConstTensor<4>& t) {
  return shape_text({t.shape.begin(), t.shape.end()}) + " " + name(t.dtype) + "  " + axes;
}

std::string broadcast_text(const Broadcast& tensor) {
  return shape_text({tensor.shape.begin(), tensor.shape.begin() + tensor.rank}) + " " +
         name(tensor.dtype);
}

std::string side_text(const std::optional<index_t>& limit, const char* what) {
  return (limit ? std::to_string(*limit) : std::string("all")) + " " + what;
}

std::string part_text(const Mask::Part& part) {
  return std::visit(
      Overload{
          [](const Mask::Causal&) { return std::string("causal: no key after the query"); },
          [](const Mask::Window& w) {
            return "window: " + side_text(w.left, "earlier") + ", " + side_text(w.right, "later");
          },
          [](const Mask::KeyLengths& k) { return "key lengths " + shape_text(k.lengths); },
          [](const Mask::Segments& s) {
            return "segments: same document, " + std::to_string(s.batch) + " row(s) of ids";
          },
          [](const Mask::Prefix& p) { return "prefix " + shape_text(p.lengths); },
          [](const Mask::Explicit& e) { return "explicit booleans " + broadcast_text(e.allowed); },
          [](const Mask::Where&) { return std::string("a rule of the program"); },
      },
      part);
}

std::string term_text(const Bias::Term& term) {
  return std::visit(Overload{
                        [](const Bias::Alibi& a) {
                          std::string slopes;
                          for (const double slope : a.slopes)
                            slopes += (slopes.empty() ? "" : ", ") + number_text(slope, DType::f64);
                          return "ALiBi, slopes " + slopes;
                        },
                        [](const Bias::T5& t) {
                          return "T5, " + std::to_string(t.buckets) + " buckets, " +
                                 (t.is_bidirectional ? "two-sided" : "one-sided");
                        },
                        [](const Bias::Dense& d) { return "dense " + broadcast_text(d.values); },
                    },
                    term);
}

std::string start_text(const AttentionCall& call) {
  const index_t q_len = call.q_view().shape[2], kv_len = call.k_view().shape[2];
  if (const auto* position = std::get_if<index_t>(&call.options.query_start))
    return std::to_string(*position);
  const auto* align = std::get_if<Align>(&call.options.query_start);
  if (align != nullptr && *align == Align::end)
    return std::to_string(kv_len - q_len) + " (the last query stands at the last key)";
  return "0";
}

// The bias as a mask: where it is -inf the pair is hidden, elsewhere nothing is added.
FileTensor hidden_only(const FileTensor& bias) {
  FileTensor result = make_tensor(DType::f64, bias.shape);
  for (index_t n = 0; n < bias.size(); ++n)
    if (std::isinf(bias.load(n)))
      store_element(result.bytes.data(), DType::f64, n, -std::numeric_limits<double>::infinity());
  return result;
}

struct Pairs {
  index_t allowed = 0, all = 0, empty_rows = 0, rows = 0;
};

// Counted by the engine itself: with all scores 0 a row's sum of exp(s - max) is the number of keys
// that it may attend to, exactly.
Pairs count_pairs(const AttentionCall& call) {
  const ConstTensor<4> q = call.q_view(), k = call.k_view();
  const index_t batch = q.shape[0], heads = q.shape[1], q_len = q.shape[2], kv_len = k.shape[2];
  AttentionOptions options;
  options.mask = call.options.mask;
  options.query_start = call.options.query_start;
  FileTensor hidden;
  if (call.bias) {
    hidden = hidden_only(*call.bias);
    Broadcast values;
    for (const Bias::Term& term : call.options.bias.terms())
      if (const auto* dense = std::get_if<Bias::Dense>(&term)) values = dense->values;
    values.data = hidden.bytes.data();
    values.dtype = DType::f64;
    options.bias = Bias::dense(values);
  }
  const double zero = 0;  // every element of q and k
  double unused = 0;      // out and v have no elements
  FileTensor sums = make_tensor(DType::f64, {batch, heads, q_len});
  RowState rows;
  rows.sum = {
      sums.bytes.data(), DType::f64, {batch, heads, q_len}, row_major<3>({batch, heads, q_len})};
  const ConstTensor<4>::Shape no_steps{0, 0, 0, 0};
  attend({&zero, DType::f64, {batch, heads, q_len, 1}, no_steps},
         {&zero, DType::f64, {batch, heads == 0 ? 0 : 1, kv_len, 1}, no_steps},
         {&zero, DType::f64, {batch, heads == 0 ? 0 : 1, kv_len, 0}, no_steps},
         {&unused, DType::f64, {batch, heads, q_len, 0}, no_steps}, options, rows);
  Pairs pairs{0, sums.size() * kv_len, 0, sums.size()};
  for (index_t row = 0; row < sums.size(); ++row) {
    const auto count = static_cast<index_t>(sums.load(row));
    pairs.allowed += count;
    if (count == 0) ++pairs.empty_rows;
  }
  return pairs;
}

std::string plural(index_t n, const char* word) {
  return std::to_string(n) + " " + word + (n == 1 ? "" : "s");
}

// 512 bytes, 12 KB, 3 MB.
std::string bytes_text(index_t bytes) {
  if (bytes < 10'000) return plural(bytes, "byte");
  if (bytes < 10'000'000) return std::to_string(bytes / 1000) + " KB";
  return std::to_string(bytes / 1'000'000) + " MB";
}

// Which kernels, how the work is cut, what is skipped.
std::string plan_text(const AttendPlan& plan) {
  std::string text = line("kernels", plan.isa + ": " + plan.why_isa);
  if (plan.items == 0) return text + line("work", "none: there is no query row");
  text += line("form", plan.form == AttendForm::panel
                           ? "panels: lanes are query rows; " + plan.why_form
                           : "few rows: lanes are keys, then value elements; " + plan.why_form);
  const std::string work = plural(plan.items, "item") + " for " + plural(plan.threads, "thread") +
                           ": " + plural(plan.row_blocks, "row block") + " of at most " +
                           plural(plan.panels_per_item, "panel") + " of " +
                           plural(plan.rows_per_panel, "row");
  text += line("work", work);
  if (plan.nodes > 1)
    text +=
        line("keys cut", plural(plan.nodes, "run") + " of " + std::to_string(plan.keys_per_node) +
                             " keys per row block, so that every thread has work");
  const AttendPlan::Tiles& tiles = plan.tiles;
  text += line("tiles", std::to_string(tiles.none + tiles.all + tiles.some) +
                            " of a panel by up to 128 keys: " + std::to_string(tiles.none) +
                            " skipped, " + std::to_string(tiles.all) + " without a mask, " +
                            std::to_string(tiles.some) + " with one");
  return text + line("scratch", bytes_text(plan.scratch_bytes));
}

}  // namespace

std::string explain(const AttentionCall& call) {
  const ConstTensor<4> q = call.q_view();
  const AttentionOptions& options = call.options;
  std::string text =
      "attend: the fused path runs: exact attention, a tile of scores at a time, none of them "
      "kept.\n";
  const AttendPlan plan = plan_attend(q, call.k_view(), call.v_view(), options);
  text += plan_text(plan);
  const bool is_f64 = q.dtype == DType::f64;
  text += line("compute type",
               is_f64 ? "f64, as q" : std::string("f32, for ") + name(q.dtype) + " input");
  text += line("q", tensor_text("[batch, heads, q_len, d_k]", q));
  text += line("k", tensor_text("[batch, kv_heads, kv_len, d_k]", call.k_view()));
  text += line("v", tensor_text("[batch, kv_heads, kv_len, d_v]", call.v_view()));
  text += line("scale", options.scale ? number_text(*options.scale, DType::f64)
                                      : "1/sqrt(" + std::to_string(q.shape[3]) + "), the default");
  if (options.softcap > 0) text += line("softcap", number_text(options.softcap, DType::f64));
  for (const Bias::Term& term : options.bias.terms()) text += line("bias", term_text(term));
  if (options.mask.parts().empty()) text += line("mask", "none");
  for (const Mask::Part& part : options.mask.parts()) text += line("mask", part_text(part));
  if (!options.sinks.empty()) text += line("sinks", "one per head, without a value");
  text += line("query row 0", "at position " + start_text(call));
  if (options.dropout.p > 0)
    text += line("dropout", number_text(options.dropout.p, DType::f64) + ", seed " +
                                std::to_string(options.dropout.seed));
  const Pairs pairs = count_pairs(call);
  text += line("allowed pairs", std::to_string(pairs.allowed) + " of " + std::to_string(pairs.all));
  text += line("rows", std::to_string(pairs.rows) + ", of which " +
                           std::to_string(pairs.empty_rows) + " see no key");
  return text;
}

}  // namespace glasshead::cli
