// From a traced case to the table of strings.
//
//   Document document = build_document(c, run_case(c), {});
//   std::string page = to_text(document, {});
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/mask_plan.h"
#include "wire/case.h"
#include "wire/document.h"
#include "wire/print.h"

namespace glasshead::wire {

struct DocumentOptions {
  PrintOptions print;
  std::vector<std::string> steps;  // taps or section titles to show, as given; empty: all
  std::optional<index_t> query;    // only this row
  std::optional<index_t> head;     // only this head
  index_t map_above = 0;           // matrices of more rows or columns become Table::map; 0: never
  int width = 100;                 // cells that a line of --diff may take
};

Document build_document(const Case& c, const Trace& trace, const DocumentOptions& options);

// One attention inside a trace: where its taps are, who may attend to whom.
struct AttentionPart {
  std::string prefix;  // "", "block.0."
  const Step* scores = nullptr;
  std::shared_ptr<const AttentionOptions> options;
  PairShape shape;
  index_t d_k = 0;
  bool has_heads = false;  // its tensors have a head axis
  double scale = 1;
  std::optional<MaskPlan> plan;
  // exp(sink - maximum) of every row of every head, and its share of the row's sum: with it the
  // row's weights add to 1. Empty without sinks.
  std::vector<double> sink_exps, sink_shares;
};

// Whether a line for a key or a row may be too long for a page: many keys or many coordinates.
bool is_wide(const AttentionPart& part);

// Fills them from a run's row_max and row_sum; `step` is row_sum's.
void add_sinks(AttentionPart& part, const TraceTensor& row_max, const Step& step,
               const TraceTensor& row_sum);
// The sink's share in row i of matrix m; none without a sink or a part.
std::optional<double> sink_share(const AttentionPart* part, index_t m, index_t i);

// The attention that step `scores` with this value belongs to.
AttentionPart attention_of(const Step& scores, const TraceTensor& value, const TraceTensor& q);
std::vector<AttentionPart> attentions(const Trace& trace);

std::string leaf_of(const std::string& tap);    // "block.0.scores" -> "scores"
std::string prefix_of(const std::string& tap);  // "block.0.scores" -> "block.0."
bool is_key_side(const std::string& leaf);      // its rows are keys: "k", "v_cache"

// "key after query": what a pair is hidden by, in words; several are joined by ", ".
std::string reason_words(const Reasons& reasons);
// Marks of one row: 1 where hidden.
std::vector<char> hidden_row(const MaskPlan& plan, index_t b, index_t h, index_t i);

std::string shape_words(const std::vector<index_t>& shape);  // "3×2"
std::string mask_words(const AttentionOptions& options);     // "causal", "causal and padding"
// "1/√2 = 0.7071", or "0.5"
std::string scale_words(const AttentionPart& part, int decimals);

// A label made safe to show: controls escaped, cut to kLabelCells.
std::string shown_label(const std::string& label);
// All of a matrix's rows or columns. Where two would look alike, each says which it is: "0 the",
// "1 cat", "2 the".
std::vector<std::string> shown_labels(const std::vector<std::string>& labels);

// The row numbers of [0, n) that are shown.
std::vector<index_t> shown_rows(index_t n, const std::optional<index_t>& query);

}  // namespace glasshead::wire
