#include "doctor/examine.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "base/math.h"
#include "doctor/pattern.h"
#include "wire/decimal.h"

namespace glasshead::doctor {
namespace {

constexpr index_t kSmallRows = 16, kSmallColumns = 16;  // as diagnose.h says of small_rows
constexpr std::size_t kAverages = 64;  // wrong rows whose out is held against the values

std::string row_label(const DiagnoseOptions& options, const Subject& subject, const RowIndex& at) {
  std::string text = slot(at.i) < options.query_labels.size() ? options.query_labels[slot(at.i)]
                                                              : std::to_string(at.i);
  if (subject.right.pairs().heads > 1) text += " of head " + std::to_string(at.h);
  if (subject.right.pairs().batch > 1) text += " of batch entry " + std::to_string(at.b);
  return text;
}

// What is seen while the rows go by.
struct Tally {
  std::vector<std::pair<double, RowIndex>> wrong;
  std::set<index_t> batches, heads, queries, columns, keys;  // of wrong numbers
  std::set<index_t> all_batches, all_heads, all_queries;
  index_t of_out = 0, of_weights = 0, of_scores = 0, of_lse = 0;  // wrong ones
  bool rows_add_to_one = true, hidden_are_zero = true;
  bool are_averages = true;   // of the rows looked at
  std::size_t looked_at = 0;  // wrong rows whose out was compared with the values

  void add_wrong(std::string_view claim, index_t last) {
    if (claim == "out") columns.insert(last);
    if (claim == "weights") keys.insert(last);
    if (claim == "out") ++of_out;
    if (claim == "weights") ++of_weights;
    if (claim == "scores") ++of_scores;
    if (claim == "lse") ++of_lse;
  }
};

std::vector<index_t> sorted(const std::set<index_t>& values) {
  return {values.begin(), values.end()};
}

// 0, 1, ... n - 1
std::vector<index_t> up_to(index_t n) {
  std::vector<index_t> all(slot(n));
  std::iota(all.begin(), all.end(), index_t{0});
  return all;
}

Entry entry_of(const Compared& c, const RowIndex& at) {
  Entry entry{c.claim, {at.b, at.h, at.i}, c.found, c.expected, c.tolerance};
  if (std::string_view(c.claim) != "lse") entry.index.push_back(c.last);
  return entry;
}

// Whether the claimed weights of a row add to 1 and leave hidden keys alone.
void look_at_weights(const Judge& judge, const RowNumbers& numbers, const RowIndex& at,
                     DType arithmetic, Tally& tally) {
  const ConstTensor<4>& weights = judge.claims().weights;
  if (weights.data == nullptr) return;
  double sum = 0, right = 0, size = 0;
  for (index_t j = 0; j < weights.shape[3]; ++j) {
    const double w = weights.load(at.b, at.h, at.i, j);
    sum += w;
    size += std::fabs(w);
    right += numbers.weights[slot(j)];
    if (numbers.visible[slot(j)] == 0 && w != 0) tally.hidden_are_zero = false;
  }
  const auto n = static_cast<double>(weights.shape[3]);
  double allowed = (n + 8) * half_ulp(arithmetic) * std::max(1.0, size);
  if (judge.decimals()) allowed += n * 0.5 * math::pow(10, -*judge.decimals());
  if (!(std::fabs(sum - right) <= allowed)) tally.rows_add_to_one = false;
}

// Whether each claimed output lies between the smallest and the largest value its row sees.
void look_at_out(const Subject& subject, const Judge& judge, const RowNumbers& numbers,
                 const RowIndex& at, Tally& tally) {
  const ConstTensor<4>& out = judge.claims().out;
  if (out.data == nullptr || numbers.is_empty || !subject.right.options.sinks.empty()) return;
  ++tally.looked_at;
  const index_t g = at.h / subject.right.group();
  for (index_t d = 0; d < out.shape[3]; ++d) {
    double low = std::numeric_limits<double>::infinity(), high = -low;
    for (index_t j = 0; j < subject.right.pairs().kv_len; ++j) {
      if (numbers.visible[slot(j)] == 0) continue;
      const double v = subject.v.row(at.b, g, j)[d];
      low = std::min(low, v);
      high = std::max(high, v);
    }
    const double found = out.load(at.b, at.h, at.i, d), slack = 4 * numbers.out_error[slot(d)];
    if (!(found >= low - slack && found <= high + slack)) tally.are_averages = false;
  }
}

void report_small(const Judge& judge, const RowNumbers& numbers, const RowIndex& at,
                  const std::string& row, Examined& to) {
  for (const char* claim : {"weights", "out", "scores", "lse"}) {
    RowReport report{claim, row, true, {}, {}, {}};
    judge.each(numbers, at, false, [&](const Compared& c) {
      if (std::string_view(c.claim) != claim) return true;
      report.found.push_back(c.found);
      report.right.push_back(c.expected);
      report.tolerance.push_back(c.tolerance);
      if (distance(c.found, c.expected, c.tolerance) > kWrong) report.is_right = false;
      return true;
    });
    if (!report.found.empty()) to.small_rows.push_back(std::move(report));
  }
}

// Equal weights need equal scores.
void look_for_equal_weights(const Judge& judge, const RowNumbers& numbers, const RowIndex& at,
                            const std::string& row, Examined& to) {
  const ConstTensor<4>& weights = judge.claims().weights;
  if (weights.data == nullptr || weights.shape[3] > kSmallColumns) return;
  std::vector<double> seen, scores;
  for (index_t j = 0; j < weights.shape[3]; ++j) {
    const double w = weights.load(at.b, at.h, at.i, j);
    if (w == 0) continue;
    seen.push_back(w);
    scores.push_back(numbers.scores[slot(j)]);
  }
  if (seen.size() < 2) return;
  const auto equal = [](const std::vector<double>& x) {
    return std::all_of(x.begin(), x.end(), [&](double y) { return y == x.front(); });
  };
  if (!equal(seen) || equal(scores)) return;
  std::string text = "row " + row + ": equal weights need equal scores, and these are";
  for (std::size_t n = 0; n < scores.size(); ++n)
    text += (n == 0 ? " " : n + 1 == scores.size() ? " and " : ", ") + wire::fixed(scores[n], 4);
  to.pattern.push_back(text);
}

void add_pattern(const Subject& subject, const Judge& judge, const Tally& tally,
                 const DiagnoseOptions& options, Examined& to) {
  const PairShape shape = subject.right.pairs();
  const auto add = [&](const AxisNames& names, const std::set<index_t>& wrong,
                       const std::vector<index_t>& checked, index_t extent, const char* what) {
    const std::string text = describe_axis(names, sorted(wrong), checked, extent);
    if (!text.empty()) to.pattern.push_back(what + text);
  };
  add({"batch entry", "batch entries", {}}, tally.batches, sorted(tally.all_batches), shape.batch,
      "wrong: ");
  add({"head", "heads", {}}, tally.heads, sorted(tally.all_heads), shape.heads, "wrong: ");
  add({"query row", "query rows", options.query_labels}, tally.queries, sorted(tally.all_queries),
      shape.q_len, "wrong: ");
  if (judge.claims().weights.data != nullptr && tally.of_weights > 0)
    add({"key", "keys", {}}, tally.keys, up_to(shape.kv_len), shape.kv_len, "wrong weights: ");
  if (judge.claims().out.data != nullptr && tally.of_out > 0)
    add({"component", "components", {}}, tally.columns, up_to(subject.right.d_v()),
        subject.right.d_v(), "wrong in out: ");
}

void add_proofs(const Judge& judge, const Tally& tally, Examined& to) {
  const Claims& claims = judge.claims();
  const bool has_out = claims.out.data != nullptr, has_lse = claims.lse.data != nullptr;
  const bool has_weights = claims.weights.data != nullptr;
  if (has_weights && tally.of_weights == 0)
    to.proven.emplace_back("every weight is right: the fault lies after them, in weights times v");
  else if (has_weights) {
    if (tally.rows_add_to_one)
      to.proven.emplace_back("each row of weights has the right sum: the normalisation is fine");
    if (tally.hidden_are_zero)
      to.proven.emplace_back("hidden keys get nothing: the mask hides all that it should");
  }
  if (claims.scores.data != nullptr && tally.of_scores == 0)
    to.proven.emplace_back("every score is right: the fault lies after them");
  if (has_lse && tally.of_lse == 0 && tally.wrong.size() > 0)
    to.proven.emplace_back(
        "every lse is right: scores, mask and sum of exps are fine, so look at "
        "the sum of values");
  if (has_out && tally.of_out == 0)
    to.proven.emplace_back("every out is right: scores, mask, softmax and values are fine");
  if (has_out && tally.of_out > 0 && !has_weights) {
    if (!tally.are_averages)
      to.pattern.emplace_back(
          "some output lies outside the values that its row sees: its weights "
          "do not add to 1, or are of other values");
    else if (tally.looked_at == tally.wrong.size())
      to.proven.emplace_back(
          "each output lies between the smallest and the largest value that its "
          "row sees, as an average does");
  }
  if (!has_weights)
    to.next.emplace_back(
        "give weights, or lse, of the same run as well: they say which half is wrong");
  if (!has_lse && has_weights) to.next.emplace_back("give lse of the same run as well");
}

// A score as plain f32 code makes it; where cap, bias or rotary positions come in, the exact one
// rounded once.
float plain_score(const Subject& subject, const RowIndex& at, index_t j, double exact) {
  const Program& p = subject.right;
  if (p.options.softcap > 0 || !p.options.bias.terms().empty() || p.rotary)
    return static_cast<float>(exact);
  const double* q = subject.q.row(at.b, at.h, at.i);
  const double* k = subject.k.row(at.b, at.h / p.group(), j);
  float sum = 0;
  for (index_t e = 0; e < p.d_k(); ++e) sum += static_cast<float>(q[e]) * static_cast<float>(k[e]);
  return sum * static_cast<float>(p.scale);
}

// dk and dv, beside what the right program gives.
void examine_keys(const Subject& subject, const Judge& judge, Runner& runner, double worst,
                  Examined& to) {
  std::set<index_t> heads, keys;
  for (index_t b = 0; b < subject.q.extent(0); ++b)
    for (index_t g = 0; g < subject.k.extent(1); ++g)
      judge.each_key(runner.key_gradients(b, g), b, g, [&](const Compared& c, index_t j) {
        ++to.numbers;
        const double far = distance(c.found, c.expected, c.tolerance);
        const Entry entry{c.claim, {b, g, j, c.last}, c.found, c.expected, c.tolerance};
        if (far > worst) {
          worst = far;
          to.worst = entry;
        }
        if (far <= kWrong) return true;
        if (to.wrong++ == 0) to.first_wrong = entry;
        heads.insert(g);
        keys.insert(j);
        return true;
      });
  for (const std::string& text :
       {describe_axis({"key/value head", "key/value heads", {}}, sorted(heads),
                      up_to(subject.k.extent(1)), subject.k.extent(1)),
        describe_axis({"key", "keys", {}}, sorted(keys), up_to(subject.k.extent(2)),
                      subject.k.extent(2))})
    if (!text.empty()) to.pattern.push_back("wrong in dk and dv: " + text);
}

// The largest distance of the row's numbers; `worst` is that of all numbers so far.
double examine_row(const Subject& subject, const Judge& judge, const RowNumbers& numbers,
                   const RowIndex& at, double& worst, Tally& tally, Examined& to) {
  double of_row = 0;
  judge.each(numbers, at, false, [&](const Compared& c) {
    ++to.numbers;
    to.nans += std::isnan(c.found) ? 1 : 0;
    to.are_finite = to.are_finite && std::isfinite(c.found) && std::isfinite(c.expected);
    const double far = distance(c.found, c.expected, c.tolerance);
    of_row = std::max(of_row, far);
    if (far > worst) {
      worst = far;
      to.worst = entry_of(c, at);
    }
    const std::string_view claim = c.claim;
    if (claim == "out" && std::isfinite(c.found) && std::isfinite(c.expected))
      to.worst_ulps = std::max(to.worst_ulps, in_ulps(std::fabs(c.found - c.expected), c.size,
                                                      subject.right.arithmetic));
    if (far <= kWrong) return true;
    if (to.wrong++ == 0) to.first_wrong = entry_of(c, at);
    tally.add_wrong(claim, c.last);
    return true;
  });
  return of_row;
}

// The order of the rows decides ties.
std::vector<RowIndex> worst_first(const std::vector<std::pair<double, RowIndex>>& wrong) {
  std::vector<std::size_t> order(wrong.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return wrong[a].first != wrong[b].first ? wrong[a].first > wrong[b].first : a < b;
  });
  std::vector<RowIndex> rows;
  for (const std::size_t n : order) rows.push_back(wrong[n].second);
  return rows;
}

}  // namespace

double in_ulps(double error, double size, DType type) {
  if (error == 0) return 0;
  int exponent = 0;
  std::frexp(size, &exponent);  // size = f * 2^exponent, 0.5 <= f < 1
  const double ulp = std::ldexp(half_ulp(type), exponent);
  return error / std::max(ulp, smallest(type));
}

Examined examine(const Subject& subject, const Judge& judge, const std::vector<RowIndex>& rows,
                 const DiagnoseOptions& options) {
  Examined to;
  Tally tally;
  Runner runner(subject.right);
  double worst = -1;
  const bool is_small =
      static_cast<index_t>(rows.size()) <= kSmallRows &&
      std::max(subject.right.pairs().kv_len, subject.right.d_v()) <= kSmallColumns;
  for (const RowIndex& at : rows) {
    const RowNumbers& numbers = runner.row(at);
    const double of_row = examine_row(subject, judge, numbers, at, worst, tally, to);
    tally.all_batches.insert(at.b);
    tally.all_heads.insert(at.h);
    tally.all_queries.insert(at.i);
    look_at_weights(judge, numbers, at, subject.right.arithmetic, tally);
    if (is_small) report_small(judge, numbers, at, row_label(options, subject, at), to);
    if (of_row <= kWrong) continue;
    tally.wrong.push_back({of_row, at});
    tally.batches.insert(at.b);
    tally.heads.insert(at.h);
    tally.queries.insert(at.i);
    if (tally.wrong.size() <= kAverages) look_at_out(subject, judge, numbers, at, tally);
    if (is_small) look_for_equal_weights(judge, numbers, at, row_label(options, subject, at), to);
  }
  if (judge.has_key_claims()) examine_keys(subject, judge, runner, worst, to);
  if (to.wrong == 0) return to;
  add_pattern(subject, judge, tally, options, to);
  add_proofs(judge, tally, to);
  to.wrong_rows = worst_first(tally.wrong);
  return to;
}

double plain_ulps(const Subject& subject, const std::vector<RowIndex>& rows) {
  const Program& p = subject.right;
  if (p.arithmetic == DType::f64) return 0;
  double worst = 0;
  Runner runner(p);
  for (const RowIndex& at : rows) {
    const RowNumbers& exact = runner.row(at);
    const index_t n = p.pairs().kv_len, g = at.h / p.group();
    const bool has_sink = !p.options.sinks.empty();
    const float sink = has_sink ? static_cast<float>(p.options.sinks[slot(at.h)]) : 0.0F;
    float max = has_sink ? sink : -std::numeric_limits<float>::infinity(), sum = 0;
    std::vector<float> w(slot(n), 0.0F);
    for (index_t j = 0; j < n; ++j) {
      if (exact.visible[slot(j)] == 0) continue;
      w[slot(j)] = plain_score(subject, at, j, exact.scores[slot(j)]);
      max = std::max(max, w[slot(j)]);
    }
    if (!std::isfinite(max)) continue;
    const auto exp = [&](float x) {
      return static_cast<float>(math::exp(static_cast<double>(x) - static_cast<double>(max)));
    };
    for (index_t j = 0; j < n; ++j) {
      if (exact.visible[slot(j)] == 0) continue;
      w[slot(j)] = exp(w[slot(j)]);
      sum += w[slot(j)];
    }
    if (has_sink) sum += exp(sink);
    for (index_t d = 0; d < p.d_v(); ++d) {
      float out = 0;
      for (index_t j = 0; j < n; ++j)
        if (exact.visible[slot(j)] != 0)
          out += w[slot(j)] / sum * static_cast<float>(subject.v.row(at.b, g, j)[d]);
      double stored = static_cast<double>(out);
      if (p.arithmetic == DType::bf16) stored = widen(narrow_to_bf16(stored));
      if (p.arithmetic == DType::f16) stored = widen(narrow_to_f16(stored));
      const double error = std::fabs(stored - exact.out[slot(d)]);
      if (std::isfinite(error))
        worst = std::max(worst, in_ulps(error, exact.out_size[slot(d)], p.arithmetic));
    }
  }
  return worst;
}

}  // namespace glasshead::doctor
