// The operations around attention, each on whole tensors.
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/fail.h"
#include "core/steps.h"
#include "nn/activation.h"
#include "nn/embedding.h"
#include "nn/network.h"
#include "nn/norm.h"
#include "nn/rope.h"
#include "nn/rope_step.h"
#include "nn/softmax.h"

namespace glasshead::nn {
namespace {

std::size_t count(index_t n) { return static_cast<std::size_t>(n); }

TraceTensor zeros(std::vector<index_t> shape) {
  std::size_t size = 1;
  for (const index_t extent : shape) size *= count(extent);
  return {std::move(shape), std::vector<double>(size)};
}

const TraceTensor& input(const StepArgs& args, std::size_t n) { return *args.inputs[n]; }

void require_rank(const StepArgs& args, std::size_t n, std::size_t rank) {
  require_shape(args, args.inputs.size() > n && input(args, n).shape.size() == rank,
                "an input is missing or has the wrong rank");
}

// Row r of a tensor, its last axis being the row.
std::span<double> row_of(TraceTensor& tensor, std::size_t r) {
  const std::size_t size = count(tensor.shape.back());
  return std::span<double>(tensor.values).subspan(r * size, size);
}
std::span<const double> row_of(const TraceTensor& tensor, std::size_t r) {
  const std::size_t size = count(tensor.shape.back());
  return std::span<const double>(tensor.values).subspan(r * size, size);
}

std::size_t rows_of(const TraceTensor& tensor) {
  std::size_t rows = 1;
  for (std::size_t axis = 0; axis + 1 < tensor.shape.size(); ++axis)
    rows *= count(tensor.shape[axis]);
  return rows;
}

// The whole number of a token id, refused unless it is a row of the table.
index_t row_number(const StepArgs& args, double id, index_t rows) {
  if (!(id >= 0) || id >= static_cast<double>(rows) || id != std::floor(id))
    fail(ErrorKind::option, "run_steps", args.step.reads[0],
         fmt::format("an id is no row of {}: ids are whole numbers from 0 to {}",
                     args.step.reads[1], rows - 1));
  return static_cast<index_t>(id);
}

TraceTensor run_lookup(const StepArgs& args) {
  require_rank(args, 0, 1);
  require_rank(args, 1, 2);
  const TraceTensor& ids = input(args, 0);
  const TraceTensor& table = input(args, 1);
  TraceTensor x = zeros({ids.shape[0], table.shape[1]});
  for (std::size_t i = 0; i < ids.values.size(); ++i)
    embed(table.values, row_number(args, ids.values[i], table.shape[0]), row_of(x, i));
  return x;
}

TraceTensor run_sinusoidal(const StepArgs& args) {
  require_rank(args, 0, 2);
  const double first = number(args.step, "first_position", 0);
  const double base = number(args.step, "base", 10000);
  TraceTensor x = take_first(args);
  std::vector<double> position(count(x.shape[1]));
  for (std::size_t i = 0; i < count(x.shape[0]); ++i) {
    sinusoidal(first + static_cast<double>(i), base, position);
    const std::span<double> row = row_of(x, i);
    for (std::size_t c = 0; c < row.size(); ++c) row[c] += position[c];
  }
  return x;
}

TraceTensor run_learned(const StepArgs& args) {
  require_rank(args, 0, 2);
  require_rank(args, 1, 2);
  const auto first = static_cast<std::size_t>(number(args.step, "first_position", 0));
  const TraceTensor& table = input(args, 1);
  require_shape(args,
                table.shape[1] == input(args, 0).shape[1] &&
                    first + count(input(args, 0).shape[0]) <= count(table.shape[0]),
                "the table of positions needs a row of d_model numbers for every position");
  TraceTensor x = take_first(args);
  for (std::size_t i = 0; i < count(x.shape[0]); ++i) {
    const std::span<double> row = row_of(x, i);
    const std::span<const double> position = row_of(table, first + i);
    for (std::size_t c = 0; c < row.size(); ++c) row[c] += position[c];
  }
  return x;
}

// out_c = sum_d x_d · W[d, c] in index order, then + b_c.
void multiply_row(std::span<const double> x, const TraceTensor& w, std::span<double> out) {
  for (std::size_t c = 0; c < out.size(); ++c) {
    double sum = 0;
    for (std::size_t d = 0; d < x.size(); ++d) sum += x[d] * w.values[d * out.size() + c];
    out[c] = sum;
  }
}

// Of the inputs after x, a matrix is the weight and a vector the bias; either may be missing.
TraceTensor run_project(const StepArgs& args) {
  require_rank(args, 0, 2);
  const TraceTensor& x = input(args, 0);
  const TraceTensor* weight = nullptr;
  const TraceTensor* bias = nullptr;
  for (std::size_t n = 1; n < args.inputs.size(); ++n)
    (input(args, n).shape.size() == 2 ? weight : bias) = args.inputs[n];
  TraceTensor out;
  if (weight != nullptr) {
    require_shape(args, weight->shape[0] == x.shape[1], "rows of the weight must equal columns");
    out = zeros({x.shape[0], weight->shape[1]});
    for (std::size_t i = 0; i < rows_of(x); ++i)
      multiply_row(row_of(x, i), *weight, row_of(out, i));
  } else {
    out = take_first(args);
  }
  if (bias != nullptr) {
    require_shape(args, bias->values.size() == count(out.shape[1]), "one bias per column");
    for (std::size_t i = 0; i < rows_of(out); ++i) {
      const std::span<double> row = row_of(out, i);
      for (std::size_t c = 0; c < row.size(); ++c) row[c] += bias->values[c];
    }
  }
  return out;
}

// x · Eᵀ: the embedding's rows are the columns.
TraceTensor run_project_tied(const StepArgs& args) {
  require_rank(args, 0, 2);
  require_rank(args, 1, 2);
  const TraceTensor& x = input(args, 0);
  const TraceTensor& table = input(args, 1);
  require_shape(args, x.shape[1] == table.shape[1], "columns of E must equal d_model");
  TraceTensor out = zeros({x.shape[0], table.shape[0]});
  for (std::size_t i = 0; i < rows_of(x); ++i) {
    const std::span<const double> row = row_of(x, i);
    for (std::size_t t = 0; t < count(table.shape[0]); ++t) {
      const std::span<const double> token = row_of(table, t);
      double sum = 0;
      for (std::size_t d = 0; d < row.size(); ++d) sum += row[d] * token[d];
      if (args.inputs.size() > 2) {
        require_shape(args, input(args, 2).values.size() == count(table.shape[0]),
                      "one bias per token");
        sum += input(args, 2).values[t];
      }
      row_of(out, i)[t] = sum;
    }
  }
  return out;
}

// [n, heads·d] -> [heads, n, d].
TraceTensor run_split(const StepArgs& args) {
  require_rank(args, 0, 2);
  const TraceTensor& x = input(args, 0);
  const auto heads = static_cast<index_t>(number(args.step, "heads", 1));
  require_shape(args, heads >= 1 && x.shape[1] % heads == 0, "columns must be a multiple of heads");
  const index_t d = x.shape[1] / heads;
  TraceTensor out = zeros({heads, x.shape[0], d});
  double* next = out.values.data();
  for (index_t h = 0; h < heads; ++h)
    for (index_t i = 0; i < x.shape[0]; ++i)
      for (index_t c = 0; c < d; ++c) *next++ = x.values[count(i * x.shape[1] + h * d + c)];
  return out;
}

// [heads, n, d] -> [n, heads·d].
TraceTensor run_concat(const StepArgs& args) {
  require_rank(args, 0, 3);
  const TraceTensor& x = input(args, 0);
  const index_t heads = x.shape[0], n = x.shape[1], d = x.shape[2];
  TraceTensor out = zeros({n, heads * d});
  double* next = out.values.data();
  for (index_t i = 0; i < n; ++i)
    for (index_t h = 0; h < heads; ++h)
      for (index_t c = 0; c < d; ++c) *next++ = x.values[count((h * n + i) * d + c)];
  return out;
}

TraceTensor run_rope(const StepArgs& args) {
  require_shape(args, args.inputs.size() == 1 && input(args, 0).shape.size() >= 2,
                "rows of a matrix turn");
  const Rope rope = rope_of(args.step);
  const double first = number(args.step, "first_position", 0);
  TraceTensor x = take_first(args);
  const index_t d = x.shape.back();
  require_shape(args, check(rope, d, "").empty(), "rotary pairs do not fit d_k");
  const std::size_t length = count(x.shape[x.shape.size() - 2]);
  for (std::size_t i = 0; i < length; ++i) {
    const RopeTable table = rope_table(rope, d, first + static_cast<double>(i));
    for (std::size_t r = i; r < rows_of(x); r += length)
      rotate(row_of(x, r), table.cos, table.sin, rope);
  }
  return x;
}

// Rows of the second input after those of the first, along the length axis; one input: a copy.
TraceTensor run_append(const StepArgs& args) {
  if (args.inputs.size() == 1) return take_first(args);
  const TraceTensor& earlier = input(args, 0);
  const TraceTensor& fresh = input(args, 1);
  const std::size_t rank = fresh.shape.size();
  require_shape(args,
                rank >= 2 && earlier.shape.size() == rank &&
                    earlier.shape.back() == fresh.shape.back() &&
                    (rank == 2 || earlier.shape[0] == fresh.shape[0]),
                "earlier and new rows must have the same size and heads");
  TraceTensor out;
  out.shape = fresh.shape;
  out.shape[rank - 2] += earlier.shape[rank - 2];
  const auto block = [rank](const TraceTensor& t) {
    return count(t.shape[rank - 2] * t.shape[rank - 1]);
  };
  const std::size_t heads = rank == 2 ? 1 : count(fresh.shape[0]);
  for (std::size_t h = 0; h < heads; ++h) {
    for (const TraceTensor* part : {&earlier, &fresh}) {
      const auto from = part->values.begin() + static_cast<std::ptrdiff_t>(h * block(*part));
      out.values.insert(out.values.end(), from, from + static_cast<std::ptrdiff_t>(block(*part)));
    }
  }
  return out;
}

TraceTensor run_residual(const StepArgs& args) {
  require_shape(args, args.inputs.size() == 2 && input(args, 0).shape == input(args, 1).shape,
                "both terms of a residual need the same shape");
  TraceTensor x = take_first(args);
  for (std::size_t n = 0; n < x.values.size(); ++n) x.values[n] += input(args, 1).values[n];
  return x;
}

TraceTensor run_times(const StepArgs& args) {
  require_shape(args, args.inputs.size() == 2 && input(args, 0).shape == input(args, 1).shape,
                "gate and up need the same shape");
  TraceTensor x = take_first(args);
  for (std::size_t n = 0; n < x.values.size(); ++n) x.values[n] *= input(args, 1).values[n];
  return x;
}

template <Activation Kind>
TraceTensor run_activation(const StepArgs& args) {
  require_shape(args, args.inputs.size() == 1, "wrong number of inputs");
  TraceTensor x = take_first(args);
  for (double& value : x.values) value = activate(Kind, value);
  return x;
}

template <NormKind Kind>
TraceTensor run_norm(const StepArgs& args) {
  require_rank(args, 0, 2);
  const double eps = number(args.step, "eps", 1e-5);
  const bool has_gain = number(args.step, "has_gain", 0) != 0;
  std::span<const double> gain, bias;
  for (std::size_t n = 1; n < args.inputs.size(); ++n) {
    require_shape(args, input(args, n).values.size() == count(input(args, 0).shape[1]),
                  "gain and bias need one number per column");
    (n == 1 && has_gain ? gain : bias) = input(args, n).values;
  }
  TraceTensor x = take_first(args);
  for (std::size_t i = 0; i < rows_of(x); ++i) {
    const std::span<double> row = row_of(x, i);
    if constexpr (Kind == NormKind::layer)
      layer_norm(row, gain, bias, eps, row);
    else
      rms_norm(row, gain, eps, row);
  }
  return x;
}

TraceTensor run_probabilities(const StepArgs& args) {
  require_rank(args, 0, 2);
  TraceTensor x = take_first(args);
  softmax(x.values, x.shape, 1, x.values);
  return x;
}

TraceTensor run_next_token(const StepArgs& args) {
  require_rank(args, 0, 2);
  const TraceTensor& p = input(args, 0);
  require_shape(args, p.shape[1] > 0, "the vocabulary is empty");
  TraceTensor best = zeros({p.shape[0]});
  for (std::size_t i = 0; i < best.values.size(); ++i) {
    const std::span<const double> row = row_of(p, i);
    std::size_t argmax = 0;
    bool has_nan = row[0] != row[0];
    for (std::size_t t = 1; t < row.size(); ++t) {
      has_nan = has_nan || row[t] != row[t];
      if (row[t] > row[argmax]) argmax = t;
    }
    best.values[i] =
        has_nan ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(argmax);
  }
  return best;
}

constexpr std::array kOps{
    Op{"lookup", "X = E[id]", R"(X_i=E_{\mathrm{id}_i})",
       "Each token's id picks a row of the embedding table.", run_lookup},
    Op{"sinusoidal", "x₀ = X + P", "x_0=X+P",
       "Sines and cosines of the position are added, so that order can be seen.", run_sinusoidal},
    Op{"learned", "x₀ = X + P[p]", "x_0=X+P_p",
       "A learned row for each position is added, so that order can be seen.", run_learned},
    Op{"q", "Q = X·W_Q", "Q=XW_Q", "What each token looks for: its row times W_Q.", run_project},
    Op{"k", "K = X·W_K", "K=XW_K", "What each token can be found by: its row times W_K.",
       run_project},
    Op{"v", "V = X·W_V", "V=XW_V", "What each token hands over when found: its row times W_V.",
       run_project},
    Op{"split", "Qₕ = columns of head h", R"(Q_h=Q_{:,\,hd:(h+1)d})",
       "The columns are dealt out to the heads, so that each computes its own attention.",
       run_split},
    Op{"rope", "turn each pair by p·θ", R"(x'=R_{p\theta}\,x)",
       "Pairs of coordinates turn by an angle that grows with the position, so that a product "
       "depends on the distance.",
       run_rope},
    Op{"append", "cache, then the new rows", R"(K=[K_{\text{cache}};K_{\text{new}}])",
       "Rows of earlier tokens are kept as they are; only the new rows are added.", run_append},
    Op{"concat", "heads side by side", R"(O=[O_1\,\cdots\,O_h])",
       "The heads' outputs are put side by side again.", run_concat},
    Op{"projected", "O·W_O", "OW_O", "W_O mixes what the heads found.", run_project},
    Op{"residual", "x + f(x)", "x+f(x)",
       "The input is added back, so that the layer only has to say what changes.", run_residual},
    Op{"layer_norm", "(x − mean)/√(var + ε)·g + b",
       R"(\frac{x-\bar x}{\sqrt{\operatorname{var}x+\varepsilon}}\,g+b)",
       "Each row is moved to mean 0 and spread 1, then given a gain and a bias.",
       run_norm<NormKind::layer>},
    Op{"rms_norm", "x/√(mean x² + ε)·g", R"(\frac{x}{\sqrt{\overline{x^2}+\varepsilon}}\,g)",
       "Each row is divided by its root mean square, then given a gain.", run_norm<NormKind::rms>},
    Op{"ff_up", "x·W_up", R"(xW_{\text{up}})", "The first linear layer, usually a wider one.",
       run_project},
    Op{"ff_gate", "x·W_gate", R"(xW_{\text{gate}})",
       "A second linear layer beside the first, which will decide how much passes.", run_project},
    Op{"relu", "max(x, 0)", R"(\max(x,0))", "Negative numbers become 0.",
       run_activation<Activation::relu>},
    Op{"gelu", "x·Φ(x)", R"(x\,\Phi(x))", "A smooth bend: negative numbers fade out.",
       run_activation<Activation::gelu>},
    Op{"gelu_tanh", "x/2·(1 + tanh(√(2/π)(x + 0.044715x³)))",
       R"(\tfrac x2\bigl(1+\tanh(\sqrt{2/\pi}\,(x+0.044715x^3))\bigr))",
       "GELU by its approximation with tanh.", run_activation<Activation::gelu_tanh>},
    Op{"silu", "x·σ(x)", R"(x\,\sigma(x))", "A smooth bend: x times its sigmoid.",
       run_activation<Activation::silu>},
    Op{"quick_gelu", "x·σ(1.702x)", R"(x\,\sigma(1.702\,x))",
       "GELU by its approximation with a sigmoid.", run_activation<Activation::quick_gelu>},
    Op{"tanh", "tanh(x)", R"(\tanh x)", "Numbers are bent into -1 to 1.",
       run_activation<Activation::tanh>},
    Op{"times", "act(gate) ∘ up", R"(\operatorname{act}(g)\circ u)",
       "The gate scales each coordinate of the first layer.", run_times},
    Op{"ff_out", "h·W", "hW", "The last linear layer of the feed-forward.", run_project},
    Op{"logits", "h·W_vocab", R"(hW_{\text{vocab}})",
       "Each row is compared with every token of the vocabulary.", run_project},
    Op{"logits_tied", "h·Eᵀ", R"(hE^{\top})",
       "Each row is compared with every row of the embedding table: the same table on both ends.",
       run_project_tied},
    Op{"probabilities", "P = softmax(logits)", R"(P=\operatorname{softmax}(\text{logits}))",
       "Softmax over the vocabulary turns logits into probabilities.", run_probabilities},
    Op{"next_token", "argmax P", R"(\arg\max P)", "The most probable token comes next.",
       run_next_token}};

}  // namespace

std::span<const Op> ops() { return kOps; }

const Op* find_op(std::string_view id) {
  for (const Op& op : kOps)
    if (op.id == id) return &op;
  return nullptr;
}

}  // namespace glasshead::nn
