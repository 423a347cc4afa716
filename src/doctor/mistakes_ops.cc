#include "doctor/mistakes_ops.h"

#include <limits>

#include "base/math.h"
#include "core/mask_plan.h"
#include "core/rows.h"

namespace glasshead::doctor {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

index_t rows_of(const TraceTensor& t) { return t.shape[t.shape.size() - 2]; }
index_t columns_of(const TraceTensor& t) { return t.shape.back(); }
index_t leading_of(const TraceTensor& t) {
  index_t count = 1;
  for (std::size_t axis = 0; axis + 2 < t.shape.size(); ++axis) count *= t.shape[axis];
  return count;
}
double& at(TraceTensor& t, index_t n) { return t.values[static_cast<std::size_t>(n)]; }
double at(const TraceTensor& t, index_t n) { return t.values[static_cast<std::size_t>(n)]; }

TraceTensor zeros(std::vector<index_t> shape) {
  TraceTensor t;
  std::size_t count = 1;
  for (const index_t extent : shape) count *= static_cast<std::size_t>(extent);
  t.shape = std::move(shape);
  t.values.assign(count, 0.0);
  return t;
}

// The shape with its last axis gone, or its last but one.
std::vector<index_t> without_last(const TraceTensor& t) {
  return {t.shape.begin(), t.shape.end() - 1};
}
std::vector<index_t> without_rows(const TraceTensor& t) {
  std::vector<index_t> shape = t.shape;
  shape.erase(shape.end() - 2);
  return shape;
}

double sum_over(index_t count, const auto& term) {
  double total = 0;
  for (index_t begin = 0; begin < count; begin += kSumBlock) {
    double block = 0;
    for (index_t n = begin; n < count && n < begin + kSumBlock; ++n) block += term(n);
    total += block;
  }
  return total;
}

// The largest; NaN if any is.
double max_over(index_t count, const auto& term) {
  double largest = -kInfinity;
  for (index_t n = 0; n < count; ++n) {
    const double x = term(n);
    if (x > largest || x != x) largest = x;
    if (largest != largest) break;
  }
  return largest;
}

// The key/value head that head number `lead` (batch and head as one count) reads.
index_t shared_head(const TraceTensor& q, const TraceTensor& k, index_t lead) {
  const index_t heads = q.shape.size() > 2 ? q.shape[q.shape.size() - 3] : 1;
  const index_t kv_heads = k.shape.size() > 2 ? k.shape[k.shape.size() - 3] : 1;
  return lead / heads * kv_heads + lead % heads / (heads / kv_heads);
}

TraceTensor scores_transposed(const StepArgs& args) {  // S[i, j] = dot(k[i], q[j])
  const TraceTensor& q = *args.inputs[0];
  const TraceTensor& k = *args.inputs[1];
  const index_t q_len = rows_of(q), kv_len = rows_of(k), d_k = columns_of(q);
  std::vector<index_t> shape = q.shape;
  shape[shape.size() - 2] = kv_len;
  shape.back() = q_len;
  TraceTensor s = zeros(std::move(shape));
  for (index_t lead = 0; lead < leading_of(q); ++lead) {
    const index_t g = shared_head(q, k, lead);
    for (index_t i = 0; i < kv_len; ++i)
      for (index_t j = 0; j < q_len; ++j) {
        double dot = 0;
        for (index_t d = 0; d < d_k; ++d)
          dot += at(k, (g * kv_len + i) * d_k + d) * at(q, (lead * q_len + j) * d_k + d);
        at(s, (lead * kv_len + i) * q_len + j) = dot;
      }
  }
  return s;
}

TraceTensor scores_untransposed(const StepArgs& args) {  // S[i, j] = sum_d q[i, d] k[d, j]
  const TraceTensor& q = *args.inputs[0];
  const TraceTensor& k = *args.inputs[1];
  const index_t q_len = rows_of(q), n = columns_of(q);  // d_k = kv_len = n
  TraceTensor s = zeros(q.shape);
  for (index_t lead = 0; lead < leading_of(q); ++lead) {
    const index_t g = shared_head(q, k, lead);
    for (index_t i = 0; i < q_len; ++i)
      for (index_t j = 0; j < n; ++j) {
        double dot = 0;
        for (index_t d = 0; d < n; ++d)
          dot += at(q, (lead * q_len + i) * n + d) * at(k, (g * n + d) * n + j);
        at(s, (lead * q_len + i) * n + j) = dot;
      }
  }
  return s;
}

TraceTensor copy(const StepArgs& args) { return *args.inputs[0]; }

// One number per matrix, repeated for each of its rows.
template <class Reduce>
TraceTensor per_matrix(const StepArgs& args, const Reduce& reduce) {
  const TraceTensor& z = *args.inputs[0];
  const index_t rows = rows_of(z), count = rows * columns_of(z);
  TraceTensor out = zeros(without_last(z));
  for (index_t lead = 0; lead < leading_of(z); ++lead) {
    const double x = reduce(count, [&](index_t n) { return at(z, lead * count + n); });
    for (index_t i = 0; i < rows; ++i) at(out, lead * rows + i) = x;
  }
  return out;
}

template <class Reduce>
TraceTensor per_column(const StepArgs& args, const Reduce& reduce) {
  const TraceTensor& z = *args.inputs[0];
  const index_t rows = rows_of(z), columns = columns_of(z);
  TraceTensor out = zeros(without_rows(z));
  for (index_t lead = 0; lead < leading_of(z); ++lead)
    for (index_t j = 0; j < columns; ++j)
      at(out, lead * columns + j) =
          reduce(rows, [&](index_t i) { return at(z, (lead * rows + i) * columns + j); });
  return out;
}

constexpr auto kMax = [](index_t count, const auto& term) { return max_over(count, term); };
constexpr auto kSum = [](index_t count, const auto& term) { return sum_over(count, term); };

TraceTensor matrix_max(const StepArgs& args) { return per_matrix(args, kMax); }
TraceTensor matrix_sum(const StepArgs& args) { return per_matrix(args, kSum); }
TraceTensor column_max(const StepArgs& args) { return per_column(args, kMax); }
TraceTensor column_sum(const StepArgs& args) { return per_column(args, kSum); }

// f(x, the number of its column or of its row) for every entry of the first input.
template <class F>
TraceTensor with_column(const StepArgs& args, const F& f) {
  TraceTensor out = *args.inputs[0];
  const TraceTensor& per = *args.inputs[1];
  const index_t columns = columns_of(out), count = rows_of(out) * columns;
  for (index_t lead = 0; lead < leading_of(out); ++lead)
    for (index_t n = 0; n < count; ++n) {
      double& x = at(out, lead * count + n);
      x = f(x, at(per, lead * columns + n % columns));
    }
  return out;
}

TraceTensor column_exp(const StepArgs& args) {
  return with_column(
      args, [](double z, double max) { return z == -kInfinity ? 0.0 : math::exp(z - max); });
}
TraceTensor column_weights(const StepArgs& args) {
  return with_column(args, [](double e, double sum) { return sum == 0 ? 0.0 : e / sum; });
}

// f(x, allowed) for every pair, the mask being the step's own options'.
template <class F>
TraceTensor with_mask(const StepArgs& args, const F& f) {
  TraceTensor out = *args.inputs[0];
  const std::size_t rank = out.shape.size();
  const PairShape shape{rank > 3 ? out.shape[rank - 4] : 1, rank > 2 ? out.shape[rank - 3] : 1,
                        rows_of(out), columns_of(out)};
  AttentionOptions mask_only = *args.step.options;
  mask_only.bias = {};  // -inf entries of a bias hide by themselves; only the mask is misread
  const MaskPlan plan(mask_only, shape);
  index_t n = 0;
  for (index_t b = 0; b < shape.batch; ++b)
    for (index_t h = 0; h < shape.heads; ++h)
      for (index_t i = 0; i < shape.q_len; ++i)
        for (index_t j = 0; j < shape.kv_len; ++j, ++n)
          at(out, n) = f(at(out, n), plan.allowed(b, h, i, j));
  return out;
}

TraceTensor hide_weights(const StepArgs& args) {
  return with_mask(args, [](double w, bool allowed) { return allowed ? w : 0.0; });
}
TraceTensor mask_multiply(const StepArgs& args) {
  return with_mask(args, [](double z, bool allowed) { return z * (allowed ? 1.0 : 0.0); });
}
TraceTensor mask_as_number(const StepArgs& args) {
  return with_mask(args, [](double z, bool allowed) { return z + (allowed ? 1.0 : 0.0); });
}
TraceTensor mask_finite(const StepArgs& args) {
  const double value = number(args.step, "value", -1);
  return with_mask(args, [&](double z, bool allowed) { return allowed ? z : value; });
}

TraceTensor transpose(const StepArgs& args) {
  const TraceTensor& a = *args.inputs[0];
  const index_t n = rows_of(a);
  TraceTensor out = a;
  for (index_t lead = 0; lead < leading_of(a); ++lead)
    for (index_t i = 0; i < n; ++i)
      for (index_t j = 0; j < n; ++j)
        at(out, (lead * n + j) * n + i) = at(a, (lead * n + i) * n + j);
  return out;
}

}  // namespace

const Op kScoresTransposed{"scores-transposed", "S = K·Qᵀ", "S=KQ^{\\top}",
                           "the keys are scored against the queries, the wrong way round",
                           scores_transposed};
const Op kScoresUntransposed{"scores-untransposed", "S = Q·K", "S=QK",
                             "K is not transposed; it multiplies only by accident of shape",
                             scores_untransposed};
const Op kCopy{"copy", "as it is", "\\text{as it is}", "passed on unchanged", copy};
const Op kMatrixMax{"matrix-max", "max of the whole matrix", "\\max_{i,j} Z_{ij}",
                    "one maximum for all rows", matrix_max};
const Op kMatrixSum{"matrix-sum", "sum of the whole matrix", "\\sum_{i,j} E_{ij}",
                    "one sum for all rows", matrix_sum};
const Op kColumnMax{"column-max", "max of each column", "\\max_i Z_{ij}",
                    "a maximum per column instead of per row", column_max};
const Op kColumnExp{"column-exp", "exp(Z − column max)", "e^{Z_{ij}-m_j}",
                    "the column's maximum is subtracted", column_exp};
const Op kColumnSum{"column-sum", "sum of each column", "\\sum_i E_{ij}",
                    "a sum per column instead of per row", column_sum};
const Op kColumnWeights{"column-weights", "exp / column sum", "E_{ij}/\\sum_i E_{ij}",
                        "each column, not each row, adds to 1", column_weights};
const Op kHideWeights{"hide-weights", "A ∘ mask", "A\\circ M",
                      "weights of hidden keys are set to 0 after softmax", hide_weights};
const Op kMaskMultiply{"mask-multiply", "Z ∘ mask", "Z\\circ M",
                       "scores are multiplied by 1 or 0: a hidden score becomes 0", mask_multiply};
const Op kMaskAsNumber{"mask-as-number", "Z + mask", "Z+M",
                       "true and false are added to the scores as 1 and 0", mask_as_number};
const Op kMaskFinite{"mask-finite", "Z, hidden = V", "Z\\ \\text{or}\\ V",
                     "hidden scores become a finite number instead of −∞", mask_finite};
const Op kTranspose{"transpose", "Aᵀ", "A^{\\top}", "the weights are transposed", transpose};

}  // namespace glasshead::doctor
