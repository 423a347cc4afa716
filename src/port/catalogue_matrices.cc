// Mistakes in how matrices and biases are read from the files.
#include <algorithm>
#include <array>

#include "port/edits.h"

namespace glasshead::port {
namespace {

using model::Attention;
using model::LayerWeights;

// A matrix of a layer: some rows of one of its linear layers.
struct Matrix {
  const char* name;
  nn::Linear& (*linear)(LayerWeights&);
  Stretch (*rows)(const Subject&);  // empty: all
};

const Attention& self(const Subject& s) { return s.layer().self; }
bool has_cross(const Subject& s) { return s.layer().cross.has_value(); }

constexpr Matrix kMatrices[] = {
    {"q", [](LayerWeights& w) -> nn::Linear& { return w.self.in; },
     [](const Subject& s) { return q_rows(self(s)); }},
    {"k", [](LayerWeights& w) -> nn::Linear& { return w.self.in; },
     [](const Subject& s) { return k_rows(self(s)); }},
    {"v", [](LayerWeights& w) -> nn::Linear& { return w.self.in; },
     [](const Subject& s) { return v_rows(self(s)); }},
    {"qkv", [](LayerWeights& w) -> nn::Linear& { return w.self.in; },
     [](const Subject& s) { return Stretch{0, v_rows(self(s)).end}; }},
    {"attention out", [](LayerWeights& w) -> nn::Linear& { return w.self.out; },
     [](const Subject& s) { return Stretch{0, s.layer_weights().self.out.out()}; }},
    {"ffn up", [](LayerWeights& w) -> nn::Linear& { return w.ffn.in; },
     [](const Subject& s) {
       const model::FeedForward& f = s.layer().ffn;
       return f.is_gated ? Stretch{f.width, 2 * f.width} : Stretch{0, f.width};
     }},
    {"ffn gate", [](LayerWeights& w) -> nn::Linear& { return w.ffn.in; },
     [](const Subject& s) { return Stretch{0, s.layer().ffn.is_gated ? s.layer().ffn.width : 0}; }},
    {"ffn down", [](LayerWeights& w) -> nn::Linear& { return w.ffn.out; },
     [](const Subject& s) { return Stretch{0, s.layer_weights().ffn.out.out()}; }},
    {"cross q", [](LayerWeights& w) -> nn::Linear& { return w.cross.in; },
     [](const Subject& s) {
       return Stretch{0, has_cross(s) ? s.layer_weights().cross.in.out() : 0};
     }},
    {"cross k and v", [](LayerWeights& w) -> nn::Linear& { return w.cross.memory; },
     [](const Subject& s) {
       return Stretch{0, has_cross(s) ? s.layer_weights().cross.memory.out() : 0};
     }},
    {"cross out", [](LayerWeights& w) -> nn::Linear& { return w.cross.out; },
     [](const Subject& s) {
       return Stretch{0, has_cross(s) ? s.layer_weights().cross.out.out() : 0};
     }}};

Edit on_matrix(const Matrix& matrix, const std::function<void(Dense&, Stretch)>& change) {
  return on_layers([&matrix, change](const Subject& s) {
    const Stretch rows = matrix.rows(s);
    if (rows.begin == rows.end) return;
    edit(matrix.linear(s.layer_weights()), [&](Dense& d) { change(d, rows); });
  });
}

// The block's memory read with its sides swapped: [out, in] taken for [in, out], or the reverse.
void transpose(Dense& d, Stretch rows, bool reads_columns) {
  const index_t m = rows.end - rows.begin;
  const std::vector<float> before(d.w.begin() + rows.begin * d.in, d.w.begin() + rows.end * d.in);
  for (index_t o = 0; o < m; ++o)
    for (index_t i = 0; i < d.in; ++i) {
      const index_t flat = o * d.in + i;  // of the block as it is kept
      // Kept transposed, [in, m], and read as [m, in]: number `flat` is (flat / m, flat mod m).
      const index_t from = reads_columns ? i * m + o : (flat % m) * d.in + flat / m;
      d.row(rows.begin + o)[i] = before[static_cast<std::size_t>(from)];
    }
}

Variants transposed(const Subject& s) {
  if (!is_layer(s)) return {};
  Variants found;
  for (const Matrix& matrix : kMatrices) {
    const Stretch rows = matrix.rows(s);
    const index_t m = rows.end - rows.begin;
    if (m == 0) continue;
    const bool is_square = m == matrix.linear(s.layer_weights()).in();
    found.push_back(
        {matrix.name, on_matrix(matrix, [](Dense& d, Stretch r) { transpose(d, r, false); })});
    if (!is_square)
      found.push_back({std::string(matrix.name) + ", [out, in] read as [in, out]",
                       on_matrix(matrix, [](Dense& d, Stretch r) { transpose(d, r, true); })});
  }
  const auto all = [](const Subject& at) {
    for (const Matrix& matrix : kMatrices) {
      const std::string name = matrix.name;
      const Stretch rows = matrix.rows(at);
      if (name == "q" || name == "k" || name == "v" || rows.begin == rows.end) continue;
      edit(matrix.linear(at.layer_weights()), [&](Dense& d) { transpose(d, rows, false); });
    }
  };
  found.push_back({"all", on_layers(all)});
  return found;
}

void drop_bias(Dense& d, Stretch rows) {
  std::fill(d.bias.begin() + rows.begin, d.bias.begin() + rows.end, 0.F);
}

Variants bias_missing(const Subject& s) {
  if (!is_layer(s)) return {};
  Variants found;
  const auto has_bias = [&](const std::string& name) {
    if (name == "q" || name == "k" || name == "v" || name == "qkv") return self(s).has_qkv_bias;
    if (name == "attention out") return self(s).has_out_bias;
    if (name.starts_with("ffn")) return s.layer().ffn.has_bias;
    return has_cross(s) && s.layer().cross->has_qkv_bias;
  };
  for (const Matrix& matrix : kMatrices)
    if (has_bias(matrix.name)) found.push_back({matrix.name, on_matrix(matrix, drop_bias)});
  if (found.empty()) return found;
  found.push_back({"all", on_layers([](const Subject& at) {
                     for (const Matrix& matrix : kMatrices) {
                       const Stretch rows = matrix.rows(at);
                       if (rows.begin != rows.end)
                         edit(matrix.linear(at.layer_weights()),
                              [&](Dense& d) { drop_bias(d, rows); });
                     }
                   })});
  return found;
}

// The rows of q, k and v, taken to lie in another order.
void reorder(Dense& d, const std::vector<index_t>& from) {
  const Dense before = d;
  for (index_t to = 0; to < d.out; ++to) {
    const index_t at = from[static_cast<std::size_t>(to)];
    std::copy_n(before.w.begin() + at * d.in, d.in, d.row(to));
    d.bias[static_cast<std::size_t>(to)] = before.bias[static_cast<std::size_t>(at)];
  }
}

std::vector<index_t> packed_as(const Attention& a, const std::array<int, 3>& order) {
  const std::array<Stretch, 3> parts{q_rows(a), k_rows(a), v_rows(a)};
  std::vector<index_t> from(static_cast<std::size_t>(parts[2].end));
  index_t at = 0;
  for (const int part : order)
    for (index_t row = parts[static_cast<std::size_t>(part)].begin;
         row < parts[static_cast<std::size_t>(part)].end; ++row)
      from[static_cast<std::size_t>(row)] = at++;
  return from;
}

// Row `e` of head h's part p, of three, lies at (h·3 + p)·d + e, or the same by groups of heads.
std::vector<index_t> packed_by_heads(const Attention& a) {
  const index_t group = a.heads / a.kv_heads;
  std::vector<index_t> from;
  const index_t step = (group + 2) * a.d_k;
  for (index_t h = 0; h < a.heads; ++h)
    for (index_t e = 0; e < a.d_k; ++e) from.push_back(h / group * step + h % group * a.d_k + e);
  for (index_t part = 0; part < 2; ++part)
    for (index_t g = 0; g < a.kv_heads; ++g)
      for (index_t e = 0; e < a.d_k; ++e) from.push_back(g * step + (group + part) * a.d_k + e);
  return from;
}

Variants other_packing(const Subject& s) {
  if (!is_layer(s)) return {};
  struct Order {
    const char* name;
    std::array<int, 3> parts;
  };
  static constexpr Order kOrders[] = {{"k q v", {1, 0, 2}},
                                      {"q v k", {0, 2, 1}},
                                      {"v k q", {2, 1, 0}},
                                      {"k v q", {1, 2, 0}},
                                      {"v q k", {2, 0, 1}}};
  Variants found;
  for (const Order& order : kOrders)
    found.push_back({order.name, on_layers([parts = order.parts](const Subject& at) {
                       edit(at.layer_weights().self.in,
                            [&](Dense& d) { reorder(d, packed_as(self(at), parts)); });
                     })});
  if (self(s).d_k == self(s).d_v)
    found.push_back({"head by head", on_layers([](const Subject& at) {
                       edit(at.layer_weights().self.in,
                            [&](Dense& d) { reorder(d, packed_by_heads(self(at))); });
                     })});
  return found;
}

}  // namespace

std::vector<Hypothesis> matrix_hypotheses() {
  return {
      {"bias-missing", "a bias missing", "a matrix's bias is not added", "x @ w.T",
       "x @ w.T + b: look which tensors of the checkpoint your loader never reads", bias_missing},
      {"qkv-order", "q, k and v unpacked in another order",
       "the rows of the packed matrix are taken in this order", "q, k, v = split(w_qkv, 3)",
       "unpack as the model's code does: blocks of q, k, v, or head by head", other_packing},
      {"weights-transposed", "a matrix transposed",
       "its numbers are read with the two sides swapped", "x @ w   where   x @ w.T is right",
       "Conv1D keeps [in, out], Linear [out, in]", transposed},
  };
}

}  // namespace glasshead::port
