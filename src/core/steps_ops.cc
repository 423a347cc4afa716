// The operations of attention, each on whole tensors, in the words and the order of paper.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/fail.h"
#include "base/math.h"
#include "base/random.h"
#include "core/bias_plan.h"
#include "core/mask_plan.h"
#include "core/rows.h"
#include "core/steps.h"
#include "core/validate.h"

namespace glasshead {
namespace {

// A tensor of rank 2 to 4 as [batch, heads, rows, columns].
struct Matrices {
  index_t batch = 1, heads = 1, rows = 0, columns = 0;
  std::size_t at(index_t b, index_t h, index_t i) const {  // offset of a row
    return static_cast<std::size_t>(((b * heads + h) * rows + i) * columns);
  }
  index_t all_rows() const { return batch * heads * rows; }
};

Matrices matrices_of(const StepArgs& args, std::size_t input) {
  const std::vector<index_t>& shape = args.inputs[input]->shape;
  const std::size_t rank = shape.size();
  require_shape(args, rank >= 2 && rank <= 4, "matrices have rank 2 to 4");
  Matrices m;
  m.columns = shape[rank - 1];
  m.rows = shape[rank - 2];
  if (rank >= 3) m.heads = shape[rank - 3];
  if (rank == 4) m.batch = shape[0];
  return m;
}

void require_inputs(const StepArgs& args, std::size_t count) {
  require_shape(args, args.inputs.size() == count, "wrong number of inputs");
}

// The matrix of inputs[0] and one number per row in inputs[1].
Matrices with_row_numbers(const StepArgs& args) {
  require_inputs(args, 2);
  const Matrices m = matrices_of(args, 0);
  require_shape(args, static_cast<index_t>(args.inputs[1]->values.size()) == m.all_rows(),
                "one number per row is needed");
  return m;
}

// The shape of q's rank that ends in [rows, columns].
std::vector<index_t> ending_in(std::vector<index_t> shape, index_t columns) {
  shape.back() = columns;
  return shape;
}

std::vector<index_t> without_last(std::vector<index_t> shape) {
  shape.pop_back();
  return shape;
}

TraceTensor zeros(std::vector<index_t> shape) {
  std::size_t size = 1;
  for (const index_t extent : shape) size *= static_cast<std::size_t>(extent);
  return {std::move(shape), std::vector<double>(size)};
}

template <class Work>  // work(b, h, i)
void for_each_row(const Matrices& m, Work work) {
  for (index_t b = 0; b < m.batch; ++b)
    for (index_t h = 0; h < m.heads; ++h)
      for (index_t i = 0; i < m.rows; ++i) work(b, h, i);
}

PairShape pairs_of(const Matrices& m) { return {m.batch, m.heads, m.rows, m.columns}; }

// The options of the step's attention, refused unless mask and bias fit these scores: a list can be
// run over any inputs.
AttentionOptions fitting_options(const StepArgs& args, const Matrices& m) {
  if (!args.step.options) return {};
  Findings findings;
  check_mask(args.step.options->mask, pairs_of(m), findings);
  check_bias(args.step.options->bias, pairs_of(m), DType::f64, findings);
  refuse("run_steps", findings);
  return *args.step.options;
}

double sink_of(const StepArgs& args, index_t h) {
  const AttentionOptions* options = args.step.options.get();
  if (options == nullptr || options->sinks.empty()) return kNothing<double>;
  require_shape(args, h < static_cast<index_t>(options->sinks.size()), "one sink per head");
  return options->sinks[static_cast<std::size_t>(h)];
}

bool is_shifted(const StepArgs& args) { return number(args.step, "shift", 1) != 0; }

std::vector<std::uint8_t> every_key(index_t count) {
  return std::vector<std::uint8_t>(static_cast<std::size_t>(count), std::uint8_t{1});
}

TraceTensor run_scores(const StepArgs& args) {
  require_inputs(args, 2);
  const Matrices q = matrices_of(args, 0), k = matrices_of(args, 1);
  require_shape(args, q.columns == k.columns, "q and k must have the same size d_k");
  require_shape(args, k.batch == q.batch, "q and k must have the same batch");
  require_shape(args, k.heads > 0 ? q.heads % k.heads == 0 : q.heads == 0,
                "heads must be a multiple of kv_heads");
  TraceTensor scores = zeros(ending_in(args.inputs[0]->shape, k.rows));
  double* next = scores.values.data();
  for_each_row(q, [&](index_t b, index_t h, index_t i) {
    const double* query = args.inputs[0]->values.data() + q.at(b, h, i);
    const index_t g = h / (q.heads / k.heads);
    for (index_t j = 0; j < k.rows; ++j) {
      const double* key = args.inputs[1]->values.data() + k.at(b, g, j);
      *next++ = dot<double, double>(query, {key, 1}, q.columns);
    }
  });
  return scores;
}

TraceTensor run_scaled(const StepArgs& args) {
  require_inputs(args, 1);
  const double scale = number(args.step, "scale", 1);
  TraceTensor scaled = take_first(args);
  for (double& score : scaled.values) score *= scale;
  return scaled;
}

TraceTensor run_capped(const StepArgs& args) {
  require_inputs(args, 1);
  const double softcap = number(args.step, "softcap", 0);
  TraceTensor capped = take_first(args);
  if (softcap > 0)
    for (double& score : capped.values) score = capped_score(score, softcap);
  return capped;
}

TraceTensor run_biased(const StepArgs& args) {
  require_inputs(args, 1);
  const Matrices m = matrices_of(args, 0);
  const BiasPlan plan(fitting_options(args, m), pairs_of(m));
  TraceTensor biased = take_first(args);
  if (plan.is_empty()) return biased;
  for_each_row(m, [&](index_t b, index_t h, index_t i) {
    plan.add_row(b, h, i, {0, m.columns}, biased.values.data() + m.at(b, h, i));
  });
  return biased;
}

TraceTensor run_masked(const StepArgs& args) {
  require_inputs(args, 1);
  const Matrices m = matrices_of(args, 0);
  const MaskPlan plan(fitting_options(args, m), pairs_of(m));
  TraceTensor masked = take_first(args);
  std::vector<std::uint8_t> allowed = every_key(m.columns);
  for_each_row(m, [&](index_t b, index_t h, index_t i) {
    plan.fill_row(b, h, i, {0, m.columns}, allowed.data());
    double* scores = masked.values.data() + m.at(b, h, i);
    for (index_t j = 0; j < m.columns; ++j)
      if (allowed[static_cast<std::size_t>(j)] == 0) scores[j] = kNothing<double>;
  });
  return masked;
}

void refuse_empty_rows(const Matrices& m, const TraceTensor& max) {
  EmptyRows empty;
  const double* next = max.values.data();
  for_each_row(m, [&](index_t b, index_t h, index_t i) {
    if (*next++ == kNothing<double>) empty.add(b, h, i);
  });
  Findings findings;
  if (empty.count > 0) report_empty_rows(empty, "the softmax of nothing is undefined", findings);
  refuse("run_steps", findings);
}

TraceTensor run_row_max(const StepArgs& args) {
  require_inputs(args, 1);
  const Matrices m = matrices_of(args, 0);
  TraceTensor max = zeros(without_last(args.inputs[0]->shape));
  const std::vector<std::uint8_t> every = every_key(m.columns);
  double* next = max.values.data();
  for_each_row(m, [&](index_t b, index_t h, index_t i) {
    const double* scores = args.inputs[0]->values.data() + m.at(b, h, i);
    *next++ = row_max(scores, every.data(), {0, m.columns}, sink_of(args, h));
  });
  if (args.step.options && args.step.options->empty_row == EmptyRow::error)
    refuse_empty_rows(m, max);
  return max;
}

TraceTensor run_exp(const StepArgs& args) {
  const Matrices m = with_row_numbers(args);
  const bool shifted = is_shifted(args);
  TraceTensor e = take_first(args);
  const double* max = args.inputs[1]->values.data();
  double* next = e.values.data();
  for (index_t row = 0; row < m.all_rows(); ++row)
    for (index_t j = 0; j < m.columns; ++j, ++next)
      *next = *next == kNothing<double> ? 0 : shifted_exp(*next, shifted ? max[row] : 0.0);
  return e;
}

TraceTensor run_row_sum(const StepArgs& args) {
  const Matrices m = with_row_numbers(args);
  const bool shifted = is_shifted(args);
  TraceTensor sum = zeros(without_last(args.inputs[0]->shape));
  const std::vector<std::uint8_t> every = every_key(m.columns);
  std::size_t row = 0;
  for_each_row(m, [&](index_t b, index_t h, index_t i) {
    const double* e = args.inputs[0]->values.data() + m.at(b, h, i);
    double total = block_sum(e, every.data(), {0, m.columns});
    const double sink = sink_of(args, h);
    if (sink != kNothing<double>)
      total += shifted_exp(sink, shifted ? args.inputs[1]->values[row] : 0.0);
    sum.values[row++] = total;
  });
  return sum;
}

TraceTensor run_lse(const StepArgs& args) {
  require_inputs(args, 2);
  const bool shifted = is_shifted(args);
  require_shape(args, args.inputs[0]->values.size() == args.inputs[1]->values.size(),
                "row_max and row_sum must have the same rows");
  TraceTensor lse = *args.inputs[0];
  for (std::size_t row = 0; row < lse.values.size(); ++row) {
    const double sum = args.inputs[1]->values[row];
    lse.values[row] = canonical(shifted ? log_sum_exp(lse.values[row], sum) : math::log(sum));
  }
  return lse;
}

TraceTensor run_weights(const StepArgs& args) {
  const Matrices m = with_row_numbers(args);
  const bool shifted = is_shifted(args);
  const MaskPlan plan(fitting_options(args, m), pairs_of(m));
  std::vector<std::uint8_t> allowed = every_key(m.columns);
  TraceTensor weights = take_first(args);
  double* next = weights.values.data();
  const double* row_sum = args.inputs[1]->values.data();
  for_each_row(m, [&](index_t b, index_t h, index_t i) {
    const double sum = *row_sum++;
    const bool is_empty = shifted && sum == 0;
    plan.fill_row(b, h, i, {0, m.columns}, allowed.data());
    for (index_t j = 0; j < m.columns; ++j, ++next) {
      // A hidden pair keeps its 0 even where NaN at another key has spoilt the sum.
      const bool is_nothing = *next == 0 && allowed[static_cast<std::size_t>(j)] == 0;
      *next = is_empty || is_nothing ? 0 : canonical(*next / sum);
    }
  });
  return weights;
}

TraceTensor run_dropped(const StepArgs& args) {
  require_inputs(args, 1);
  const Matrices m = matrices_of(args, 0);
  TraceTensor kept = take_first(args);
  if (!args.step.options) return kept;
  const Dropout& dropout = args.step.options->dropout;
  const double enlarged = 1.0 / (1.0 - dropout.p);
  double* next = kept.values.data();
  for_each_row(m, [&](index_t b, index_t h, index_t i) {
    for (index_t j = 0; j < m.columns; ++j, ++next)
      *next = dropped(dropout.seed, {b, h, i, j}, dropout.p) ? 0 : *next * enlarged;
  });
  return kept;
}

// Whether a row that has a key can have nothing but weights of 0: a sink takes all of it, or all of
// it is dropped. Without either such a row has no score above -inf, and is empty.
bool may_lose_all(const StepArgs& args) {
  const AttentionOptions* options = args.step.options.get();
  return options != nullptr && (!options->sinks.empty() || options->dropout.p > 0);
}

// The keys that count for a row of `out`: all but those that are hidden and have weight 0. (Where
// an edited list has lost its mask, a hidden key has a weight and is added.) A key of weight 0 that
// is seen counts: 0 times NaN is NaN, never a silent 0. In an empty row none does: one of weights 0
// whose maximum is -inf, or, where the maxima are not read, that cannot have lost its weights.
void counting_keys(const StepArgs& args, const MaskPlan& plan, index_t b, index_t h, index_t i,
                   std::span<const double> weights, std::vector<std::uint8_t>& counts) {
  plan.fill_row(b, h, i, {0, static_cast<index_t>(weights.size())}, counts.data());
  bool is_zero = true;
  for (std::size_t j = 0; j < weights.size(); ++j) {
    if (weights[j] == 0) continue;
    is_zero = false;
    counts[j] = 1;
  }
  if (!is_zero) return;
  const Matrices w = matrices_of(args, 0);
  const bool is_empty =
      args.inputs.size() > 2
          ? args.inputs[2]->values[static_cast<std::size_t>((b * w.heads + h) * w.rows + i)] ==
                kNothing<double>
          : !may_lose_all(args);
  if (is_empty) std::fill(counts.begin(), counts.end(), std::uint8_t{0});
}

TraceTensor run_out(const StepArgs& args) {
  require_shape(args, args.inputs.size() == 2 || args.inputs.size() == 3, "wrong number of inputs");
  const Matrices w = matrices_of(args, 0), v = matrices_of(args, 1);
  require_shape(args,
                args.inputs.size() == 2 ||
                    static_cast<index_t>(args.inputs[2]->values.size()) == w.all_rows(),
                "one number per row is needed");
  require_shape(args, w.columns == v.rows, "weights need one column per row of v");
  require_shape(args, v.batch == w.batch, "weights and v must have the same batch");
  require_shape(args, v.heads > 0 ? w.heads % v.heads == 0 : w.heads == 0,
                "heads must be a multiple of kv_heads");
  const MaskPlan plan(fitting_options(args, w), pairs_of(w));
  TraceTensor out = zeros(ending_in(args.inputs[0]->shape, v.columns));
  std::vector<std::uint8_t> counts = every_key(w.columns);
  std::vector<double> block(static_cast<std::size_t>(v.columns));
  double* next = out.values.data();
  for_each_row(w, [&](index_t b, index_t h, index_t i) {
    const double* weights = args.inputs[0]->values.data() + w.at(b, h, i);
    counting_keys(args, plan, b, h, i, {weights, static_cast<std::size_t>(w.columns)}, counts);
    const index_t g = h / (w.heads / v.heads);
    const auto value = [&](index_t j) {
      return Strided<double>{args.inputs[1]->values.data() + v.at(b, g, j), 1};
    };
    weighted_sum(weights, counts.data(), {0, w.columns}, value, v.columns, block.data(), next);
    for (index_t d = 0; d < v.columns; ++d, ++next) *next = canonical(*next);
  });
  return out;
}

constexpr std::array kOps{
    Op{"scores", "S = Q·Kᵀ", R"(S=QK^{\top})",
       "Every query meets every key: the products of their coordinates, added up.", run_scores},
    Op{"scaled", "Z = S · scale", R"(Z=S\cdot\text{scale})",
       "Scores are multiplied by the scale, 1/√d_k unless said otherwise, so that their spread "
       "does "
       "not grow with d_k.",
       run_scaled},
    Op{"capped", "Z = c · tanh(Z / c)", R"(Z=c\,\tanh(Z/c))",
       "Scores are squashed into (-c, c), nearly unchanged while they are small.", run_capped},
    Op{"biased", "Z = Z + bias", R"(Z=Z+B)",
       "A number that depends on the pair, not on what it holds, is added to its score.",
       run_biased},
    Op{"masked", "Z = allowed ? Z : −∞", R"(Z_{ij}=-\infty\ \text{where hidden})",
       "Pairs that may not attend are hidden before softmax, so that they take no share.",
       run_masked},
    Op{"row_max", "m = max_j Z", R"(m_i=\max_j Z_{ij})",
       "The largest score of each row; taking it away keeps exp from overflowing and changes no "
       "weight.",
       run_row_max},
    Op{"exp", "E = exp(Z − m)", R"(E_{ij}=e^{Z_{ij}-m_i})",
       "Each score becomes a positive number; a hidden one becomes 0.", run_exp},
    Op{"row_sum", "l = Σ_j E", R"(l_i=\sum_j E_{ij})",
       "The sum over the keys, which each row will be divided by.", run_row_sum},
    Op{"lse", "lse = m + ln l", R"(\mathrm{lse}_i=m_i+\ln l_i)",
       "The logarithm of the sum of exp of the scores: what is needed to merge or check rows "
       "later.",
       run_lse},
    Op{"weights", "A = E / l", R"(A_{ij}=E_{ij}/l_i)",
       "Each row is divided by its own sum, so that its weights add to 1.", run_weights},
    Op{"dropped", "A = A · kept / (1 − p)", R"(A_{ij}=A_{ij}\,\text{kept}_{ij}/(1-p))",
       "Some weights are dropped at random and the kept ones enlarged to make up for them.",
       run_dropped},
    Op{"out", "O = A·V", R"(O=AV)",
       "Each row of the output is the average of the values, weighted by the row's weights.",
       run_out}};

}  // namespace

std::span<const Op> attention_ops() { return kOps; }

const Op* find_attention_op(std::string_view id) {
  for (const Op& op : kOps)
    if (op.id == id) return &op;
  return nullptr;
}

void require_shape(const StepArgs& args, bool fits, const char* what) {
  if (fits) return;
  std::string shapes;
  for (std::size_t n = 0; n < args.inputs.size(); ++n) {
    shapes += n == 0 ? " (" : ", ";
    shapes += (n < args.step.reads.size() ? args.step.reads[n] : "input") + " " +
              shape_text(args.inputs[n]->shape);
  }
  if (!shapes.empty()) shapes += ")";
  fail(ErrorKind::shape, "run_steps", args.step.tap, what + shapes);
}

}  // namespace glasshead
