#include "doctor/worksheet_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/math.h"
#include "base/random.h"
#include "wire/decimal.h"
#include "wire/print.h"

namespace glasshead::doctor {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLargestScore = 12;
constexpr double kEdgeShare = 0.1;         // of a unit of the last place
constexpr double kMistakeUnits = 10;       // a mistake moves the result by at least this much
constexpr index_t kLargestMultiple = 120;  // of all denominators, with fractions: V stays short
constexpr index_t kLargestPower = 4;       // with fractions scores are 0 to this

double unit_scale(int decimals) {  // 10^decimals, exact
  double scale = 1;
  for (int n = 0; n < decimals; ++n) scale *= 10;
  return scale;
}

// Whole numbers by seed, stream and position.
class Draws {
 public:
  Draws(std::uint64_t seed, std::uint64_t stream) : seed_(seed), stream_(stream) {}
  index_t next(index_t least, index_t most) {
    const double u = uniform(seed_, n_++, stream_);
    return least + static_cast<index_t>(u * static_cast<double>(most - least + 1));
  }
  TraceTensor matrix(std::vector<index_t> shape, index_t least, index_t most) {
    index_t count = 1;
    for (const index_t extent : shape) count *= extent;
    TraceTensor out{std::move(shape), {}};
    for (index_t n = 0; n < count; ++n)
      out.values.push_back(static_cast<double>(next(least, most)));
    return out;
  }

 private:
  std::uint64_t seed_, stream_, n_ = 0;
};

// Streams: the scores' draws of attempt n, and the values' draws m of it.
std::uint64_t score_stream(const WorksheetOptions& options, std::uint64_t attempt) {
  return (static_cast<std::uint64_t>(options.level) << 60) | (attempt << 20);
}
std::uint64_t value_stream(const WorksheetOptions& options, std::uint64_t attempt,
                           std::uint64_t value_attempt) {
  return score_stream(options, attempt) | (value_attempt + 1);
}

TraceTensor& input(wire::Case& c, std::string_view tap) {
  return std::find_if(c.inputs.begin(), c.inputs.end(),
                      [&](const auto& entry) { return entry.first == tap; })
      ->second;
}

std::vector<std::string> labels(index_t count) {
  std::vector<std::string> names;
  for (index_t n = 0; n < count; ++n) names.emplace_back(1, static_cast<char>('A' + n));
  return names;
}

const TraceTensor& input(const wire::Case& c, std::string_view tap) {
  return std::find_if(c.inputs.begin(), c.inputs.end(),
                      [&](const auto& entry) { return entry.first == tap; })
      ->second;
}

bool is_answer(const WorksheetOptions& options, std::string_view tap) {
  for (const Stage& stage : stages(options))
    if (tap == stage.tap) return is_blank(options, stage);
  return false;
}

// wire::run_by_hand over steps that are made once for thousands of draws.
Trace run_rounded(const Draft& candidate, int decimals) {
  Trace hand;
  run_steps(candidate.paper, candidate.exercise.inputs, [&](const Step& step, TraceTensor& value) {
    for (double& x : value.values) x = wire::round_half_up(x, decimals);
    hand.steps.push_back({step, value});
  });
  return hand;
}

// Every number of these taps of the exact run, if asked for, is far from a rounding edge, and by
// hand it comes out within a unit.
bool works_by_hand(const Draft& candidate, const Trace& exact, const WorksheetOptions& options,
                   std::initializer_list<const char*> taps) {
  for (const char* tap : taps) {
    const TraceTensor* value = exact.find(tap);
    if (value == nullptr || !is_answer(options, tap)) continue;
    for (const double x : value->values)
      if (is_near_rounding_edge(x, options.decimals, kEdgeShare)) return false;
  }
  const Trace hand = run_rounded(candidate, options.decimals);
  for (const char* tap : taps) {
    const TraceTensor* value = exact.find(tap);
    if (value == nullptr) continue;
    const TraceTensor& by_hand = hand.at(tap);
    for (std::size_t n = 0; n < value->values.size(); ++n)
      if (!agree_to_one_unit(value->values[n], by_hand.values[n], options.decimals)) return false;
  }
  return true;
}

std::span<const double> row_of(const TraceTensor& t, std::size_t row) {
  const auto columns = static_cast<std::size_t>(t.shape.back());
  return {t.values.data() + row * columns, columns};
}
std::size_t rows_of(const TraceTensor& t) {
  return t.shape.back() == 0 ? 0 : t.values.size() / static_cast<std::size_t>(t.shape.back());
}

// Printed, a row of weights adds to 1, and more than one key matters where more than one is
// allowed.
bool is_good_row(std::span<const double> weights, int decimals) {
  const double scale = unit_scale(decimals);
  double sum = 0, largest = 0;
  index_t allowed = 0;
  for (const double w : weights) {
    sum += wire::round_half_up(w, decimals);
    largest = std::max(largest, w);
    allowed += w > 0 ? 1 : 0;
  }
  constexpr double kDominates = 0.95;  // one key takes nearly all: the rest prints as next to 0
  if (allowed > 1 && largest > kDominates) return false;
  return std::fabs(sum - 1) * scale < 0.5;
}

bool are_scores_small(const TraceTensor& scores, bool has_fractions) {
  return std::all_of(scores.values.begin(), scores.values.end(), [&](double s) {
    if (has_fractions) return s >= 0 && s <= kLargestPower;
    return std::fabs(s) <= kLargestScore;
  });
}

// No two rows are alike in every head, printed to so many decimals: a row worked out twice teaches
// nothing.
bool are_rows_distinct(const TraceTensor& t, int decimals) {
  const auto are_close = [&](double x, double y) {
    return std::fabs(x - y) * unit_scale(decimals) < 0.5;
  };
  const auto length = static_cast<std::size_t>(t.shape[t.shape.size() - 2]);
  const auto are_alike = [&](std::size_t a, std::size_t b) {
    for (std::size_t head = 0; head < rows_of(t); head += length)
      if (!std::equal(row_of(t, head + a).begin(), row_of(t, head + a).end(),
                      row_of(t, head + b).begin(), are_close))
        return false;
    return true;
  };
  for (std::size_t a = 0; a < length; ++a)
    for (std::size_t b = 0; b < a; ++b)
      if (are_alike(a, b)) return false;
  return true;
}

// No value is 0 throughout: its key's weight would not matter.
bool has_zero_row(const TraceTensor& t) {
  for (std::size_t row = 0; row < rows_of(t); ++row)
    if (std::all_of(row_of(t, row).begin(), row_of(t, row).end(), [](double x) { return x == 0; }))
      return true;
  return false;
}

// Every column of the values has different numbers in it, and no two columns are the same.
bool has_varied_columns(const TraceTensor& t) {
  const auto columns = static_cast<std::size_t>(t.shape.back());
  bool are_alike = columns > 1;
  for (std::size_t j = 0; j < columns; ++j) {
    bool is_constant = true;
    for (std::size_t n = j; n < t.values.size(); n += columns) {
      is_constant = is_constant && t.values[n] == t.values[j];
      are_alike = are_alike && t.values[n] == t.values[n - j];
    }
    if (is_constant) return false;
  }
  return !are_alike;
}

std::vector<std::string> printed_row(const TraceTensor& t, std::size_t row, int decimals) {
  std::vector<std::string> texts;
  for (const double x : row_of(t, row)) texts.push_back(wire::print_number(x, decimals));
  return texts;
}

// Joins the titles of mistakes that give the same numbers in the same row.
void add_wrong(std::vector<WrongAnswer>& wrong, WrongAnswer answer) {
  for (WrongAnswer& known : wrong) {
    if (known.row != answer.row || known.values != answer.values) continue;
    known.titles.push_back(answer.titles.front());
    known.ids.push_back(answer.ids.front());
    return;
  }
  wrong.push_back(std::move(answer));
}

}  // namespace

bool is_near_rounding_edge(double x, int decimals, double share) {
  const double units = std::fabs(x) * unit_scale(decimals);
  return std::fabs(units - std::floor(units) - 0.5) < share;
}

bool agree_to_one_unit(double a, double b, int decimals) {
  const double apart =
      std::fabs(wire::round_half_up(a, decimals) - wire::round_half_up(b, decimals));
  constexpr double kOneUnit = 1.5;  // both are whole numbers of units: 1, not 2
  return apart * unit_scale(decimals) < kOneUnit || (std::isinf(a) && a == b);
}

double units_apart(const TraceTensor& a, const TraceTensor& b, int decimals) {
  if (a.shape != b.shape) return kInfinity;
  double most = 0;
  for (std::size_t n = 0; n < a.values.size(); ++n) {
    const double apart = std::fabs(a.values[n] - b.values[n]);
    if (std::isnan(apart)) return kInfinity;
    most = std::max(most, apart * unit_scale(decimals));
  }
  return most;
}

StepList paper_steps(const wire::Case& c) {
  StepList steps = wire::case_steps(c);
  for (const char* tap : {"exp", "row_sum", "lse", "weights"})
    if (Step* step = find_step(steps, tap)) set_number(*step, "shift", 0);
  return steps;
}

namespace {

// Columns of W_Q and W_K for each head, each head friendly by itself: far likelier to be found than
// two heads at once. False where there is none for the first head, or for the second.
bool choose_heads(wire::Case& c, const WorksheetOptions& options, Draws& draw,
                  std::uint64_t& tries) {
  constexpr int kHeadAttempts = 150;  // of 625 pairs of columns with entries -2..2
  WorksheetOptions one = options;
  one.level = 1;
  Draft head;
  head.exercise.network.blocks.resize(1);
  nn::Attention& attention = head.exercise.network.blocks[0].attention;
  attention.query = {"W_Q", ""};
  attention.key = {"W_K", ""};
  attention.value = {"W_V", ""};
  head.exercise.inputs = {{"X", input(c, "X")},
                          {"W_Q", draw.matrix({2, 1}, 0, 0)},
                          {"W_K", draw.matrix({2, 1}, 0, 0)},
                          {"W_V", draw.matrix({2, 1}, 0, 0)}};
  head.paper = paper_steps(head.exercise);
  for (std::size_t h = 0; h < 2; ++h) {
    bool is_found = false;
    for (int n = 0; n < kHeadAttempts && !is_found && tries < kMostTries; ++n, ++tries) {
      for (const char* tap : {"W_Q", "W_K"}) {
        TraceTensor& column = input(head.exercise, tap);
        column = draw.matrix({2, 1}, -2, 2);
        TraceTensor& whole = input(c, tap);
        for (std::size_t d = 0; d < 2; ++d) whole.values[2 * d + h] = column.values[d];
      }
      is_found = has_friendly_weights(head, one);
    }
    if (!is_found) return false;
  }
  return true;
}

}  // namespace

std::optional<Draft> draw_scores(const WorksheetOptions& options, std::uint64_t attempt,
                                 std::uint64_t& tries) {
  Draws draw(options.seed, score_stream(options, attempt));
  Draft candidate;
  wire::Case& c = candidate.exercise;
  const index_t n = options.tokens, heads = options.level == 3 ? 2 : 1;
  c.name = "worksheet";
  c.from = "ours";
  c.query_labels = c.key_labels = labels(n);
  c.network.blocks.resize(1);
  nn::Attention& attention = c.network.blocks[0].attention;
  attention.heads = attention.kv_heads = heads;
  if (options.has_fractions) {
    attention.given_q = "q";
    attention.given_k = "k";
    attention.given_v = "v";
    attention.options.scale = math::log(2);
    const std::vector<index_t> shape =
        heads > 1 ? std::vector<index_t>{heads, n, 2} : std::vector<index_t>{n, 2};
    std::vector<index_t> v_shape = shape;
    if (heads > 1) v_shape.back() = 1;
    c.inputs = {{"q", draw.matrix(shape, 0, 2)},
                {"k", draw.matrix(shape, 0, 2)},
                {"v", draw.matrix(v_shape, 0, 0)}};
  } else {
    const index_t d_model = 2, d_k = heads > 1 || draw.next(0, 1) == 0 ? 1 : 4;
    attention.query = {"W_Q", ""};
    attention.key = {"W_K", ""};
    attention.value = {"W_V", ""};
    c.inputs = {{"X", draw.matrix({n, d_model}, -2, 2)},
                {"W_Q", draw.matrix({d_model, heads * d_k}, -2, 2)},
                {"W_K", draw.matrix({d_model, heads * d_k}, -2, 2)},
                {"W_V", draw.matrix({d_model, 2}, 0, 0)}};
  }
  if (options.level == 3 && !options.has_fractions &&
      (!are_rows_distinct(c.inputs.front().second, 0) || !choose_heads(c, options, draw, tries)))
    return std::nullopt;
  if (options.level == 2) attention.options.mask = Mask::causal() & Mask::key_lengths({n - 1});
  candidate.result = "out";
  if (options.level == 3) {
    attention.output = {"W_O", ""};
    c.inputs.emplace_back("W_O", draw.matrix({2, 2}, 0, 0));
    candidate.result = "projected";
  }
  candidate.d_k = c.inputs[1].second.shape.back() / heads;
  return candidate;
}

void draw_values(Draft& candidate, const WorksheetOptions& options, std::uint64_t attempt,
                 std::uint64_t value_attempt, index_t multiple) {
  Draws draw(options.seed, value_stream(options, attempt, value_attempt));
  wire::Case& c = candidate.exercise;
  TraceTensor& values = input(c, options.has_fractions ? "v" : "W_V");
  if (options.has_fractions)
    for (double& x : values.values) x = static_cast<double>(draw.next(0, 1) * multiple);
  else
    for (double& x : values.values) x = static_cast<double>(draw.next(-2, 2));
  if (options.level == 3)
    for (double& x : input(c, "W_O").values) x = static_cast<double>(draw.next(-2, 2));
}

index_t common_denominator(const Trace& trace) {
  index_t multiple = 1;
  for (const double sum : trace.at("row_sum").values) {
    const double whole = std::floor(sum + 0.5);  // 2^s by exp(s·ln 2) is whole but for rounding
    multiple = std::lcm(multiple, static_cast<index_t>(whole));
  }
  return multiple;
}

bool has_friendly_weights(const Draft& candidate, const WorksheetOptions& options) {
  const Trace exact = run_steps(candidate.paper, candidate.exercise.inputs);
  if (!are_rows_distinct(candidate.exercise.inputs.front().second, 0)) return false;
  if (!are_scores_small(exact.at("scores"), options.has_fractions)) return false;
  if (options.has_fractions) return common_denominator(exact) <= kLargestMultiple;
  const TraceTensor& weights = exact.at("weights");
  for (std::size_t row = 0; row < rows_of(weights); ++row)
    if (!is_good_row(row_of(weights, row), options.decimals)) return false;
  return works_by_hand(candidate, exact, options, {"scaled", "exp", "row_sum", "weights"});
}

bool has_varied_weights(const Draft& candidate, const WorksheetOptions& options) {
  const Trace exact = run_steps(candidate.paper, candidate.exercise.inputs);
  return are_rows_distinct(exact.at("weights"), options.decimals);
}

bool has_friendly_result(const Draft& candidate, const WorksheetOptions& options) {
  const Trace exact = run_steps(candidate.paper, candidate.exercise.inputs);
  const TraceTensor& v = options.has_fractions ? input(candidate.exercise, "v") : exact.at("v");
  // Of a single column one key's value may be 0.
  if (!has_varied_columns(v) || (v.shape.back() > 1 && has_zero_row(v))) return false;
  if (options.has_fractions) return true;  // whole numbers, by the choice of the values
  return works_by_hand(candidate, exact, options, {"out", "concat", "projected"});
}

bool shows_every_mistake(const Draft& candidate, const WorksheetOptions& options,
                         std::vector<WrongAnswer>& wrong) {
  const wire::Case& c = candidate.exercise;
  const Trace right = run_steps(candidate.steps, c.inputs);
  const TraceTensor& result = right.at(candidate.result);
  wrong.clear();
  for (const Mistake& mistake : mistakes()) {
    std::vector<Problem> why_not;
    const std::optional<AppliedMistake> applied =
        apply_mistake({&mistake, mistake.default_parameter}, candidate.steps, right, why_not);
    if (!applied || !applied->hidden_because.empty()) continue;
    const Trace run = run_steps(applied->steps, c.inputs);
    const TraceTensor& got = run.at(candidate.result);
    if (units_apart(result, got, options.decimals) < kMistakeUnits) return false;
    // The first row that it moves far enough, by preference one that no other mistake gives.
    WrongAnswer answer{{mistake.title}, {mistake.id}, -1, {}};
    for (std::size_t row = 0; row < rows_of(result); ++row) {
      const TraceTensor right_row{{result.shape.back()},
                                  {row_of(result, row).begin(), row_of(result, row).end()}};
      const TraceTensor got_row{{got.shape.back()},
                                {row_of(got, row).begin(), row_of(got, row).end()}};
      if (units_apart(right_row, got_row, options.decimals) < kMistakeUnits) continue;
      WrongAnswer here = answer;
      here.row = static_cast<index_t>(row);
      here.values = printed_row(got, row, options.decimals);
      const bool is_taken = std::any_of(wrong.begin(), wrong.end(), [&](const WrongAnswer& w) {
        return w.row == here.row && w.values == here.values;
      });
      if (answer.row < 0 || !is_taken) answer = here;
      if (!is_taken) break;
    }
    add_wrong(wrong, std::move(answer));
  }
  return true;
}

}  // namespace glasshead::doctor
