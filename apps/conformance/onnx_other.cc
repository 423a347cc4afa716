// The neighbours of Attention in ONNX, over the primitives of nn: numbers widened, computed in f64,
// rounded once.
#include <algorithm>
#include <cmath>
#include <span>

#include "conformance/onnx.h"
#include "glasshead/error.h"
#include "nn/activation.h"
#include "nn/norm.h"
#include "nn/rope.h"
#include "nn/softmax.h"

namespace glasshead::conformance {
namespace {

FileTensor rounded(const std::vector<double>& values, std::vector<index_t> shape, DType type) {
  FileTensor tensor = zeros(type, std::move(shape));
  for (std::size_t n = 0; n < values.size(); ++n) {
    store_element(tensor.bytes.data(), type, static_cast<index_t>(n), values[n]);
  }
  return tensor;
}

std::size_t axis_of(const OnnxCase& c, const FileTensor& x) {
  const auto rank = static_cast<index_t>(x.shape.size());
  auto axis = static_cast<index_t>(c.number("axis", -1));
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) {
    throw FormatError("glasshead-conformance", {{"axis", "is outside the rank of the input"}});
  }
  return static_cast<std::size_t>(axis);
}

// A pair of caches [positions, pairs] or [batch, length, pairs], and which row belongs to (b, i).
struct RotaryCaches {
  Array cos, sin;
  const FileTensor* positions;  // [batch, length]; null: row (b, i) itself
  index_t length;

  std::span<const double> row(const Array& cache, index_t b, index_t i) const {
    const index_t pairs = cache.shape.back();
    const index_t at = b * length + i;
    const index_t row = positions != nullptr ? static_cast<index_t>(positions->load(at)) : at;
    const std::span<const double> all(cache.values);
    if (row < 0 || (row + 1) * pairs > static_cast<index_t>(all.size())) {
      throw FormatError("glasshead-conformance", {{"position_ids", "lie outside the caches"}});
    }
    return all.subspan(static_cast<std::size_t>(row * pairs), static_cast<std::size_t>(pairs));
  }
};

// Layout of the input: (batch, heads, length, d), or (batch, length, heads * d).
struct RotaryLayout {
  index_t batch, heads, length, d;
  bool is_flat;

  RotaryLayout(const FileTensor& x, index_t num_heads) {
    is_flat = x.shape.size() == 3;
    if ((!is_flat && x.shape.size() != 4) || (is_flat && num_heads < 1)) {
      throw FormatError("glasshead-conformance", {{"input", "must have rank 4, or 3 with heads"}});
    }
    batch = x.shape[0];
    heads = is_flat ? num_heads : x.shape[1];
    length = is_flat ? x.shape[1] : x.shape[2];
    d = is_flat ? x.shape[2] / heads : x.shape[3];
    if (is_flat && d * heads != x.shape[2]) {
      throw FormatError("glasshead-conformance", {{"input", "does not divide into heads"}});
    }
  }
  index_t first(index_t b, index_t h, index_t i) const {
    return is_flat ? ((b * length + i) * heads + h) * d : ((b * heads + h) * length + i) * d;
  }
};

void rotate_all(std::vector<double>& x, const RotaryLayout& layout, const RotaryCaches& caches,
                const nn::Rope& rope) {
  for (index_t b = 0; b < layout.batch; ++b) {
    for (index_t h = 0; h < layout.heads; ++h) {
      for (index_t i = 0; i < layout.length; ++i) {
        const std::span<double> vector(x.data() + layout.first(b, h, i),
                                       static_cast<std::size_t>(layout.d));
        nn::rotate(vector, caches.row(caches.cos, b, i), caches.row(caches.sin, b, i), rope);
      }
    }
  }
}

// |a cos| + |b sin| for the first of each pair, |a sin| + |b cos| for the second: rotations of
// absolute values, one with either sign of sin.
std::vector<double> term_sizes(const OnnxCase& c, const RotaryLayout& layout, RotaryCaches caches,
                               const nn::Rope& rope) {
  std::vector<double> plus = widened(c.input(0)).values;
  for (double& value : plus) value = std::fabs(value);
  for (double& value : caches.cos.values) value = std::fabs(value);
  for (double& value : caches.sin.values) value = std::fabs(value);
  std::vector<double> minus = plus;
  rotate_all(plus, layout, caches, rope);
  for (double& value : caches.sin.values) value = -value;
  rotate_all(minus, layout, caches, rope);
  for (std::size_t n = 0; n < plus.size(); ++n) plus[n] = std::max(plus[n], minus[n]);
  return plus;
}

}  // namespace

OnnxOutputs run_onnx_normalization(const OnnxCase& c) {
  const FileTensor& x = c.input(0);
  const std::size_t axis = axis_of(c, x);
  const std::vector<double> values = widened(x).values;
  const std::vector<double> gain = widened(c.input(1)).values;
  const std::vector<double> bias =
      c.has_input(2) ? widened(c.input(2)).values : std::vector<double>{};
  std::vector<double> y(values.size());
  std::vector<double> term_size(values.size());  // of x, mean and bias
  std::vector<double> means;
  std::vector<double> mean_term_size;
  std::vector<double> inverses;
  std::vector<index_t> moment_shape = x.shape;
  std::size_t size = 1;
  for (std::size_t a = axis; a < x.shape.size(); ++a) {
    size *= static_cast<std::size_t>(x.shape[a]);
    moment_shape[a] = 1;
  }
  if (gain.size() != size || (!bias.empty() && bias.size() != size)) {
    throw FormatError("glasshead-conformance",
                      {{"scale", "is not as large as what is normalised"}});
  }
  const double eps = c.number("epsilon", 1e-5F);  // the attribute's default is an f32
  for (std::size_t at = 0; at < values.size(); at += size) {
    const std::span<const double> row(values.data() + at, size);
    const std::span<double> out(y.data() + at, size);
    if (c.op == "RMSNormalization") {
      nn::rms_norm(row, gain, eps, out);
      continue;
    }
    const nn::Moments moments = nn::layer_norm(row, gain, bias, eps, out);
    double sum = 0;
    for (std::size_t n = 0; n < size; ++n) {
      sum += std::fabs(row[n]);
      term_size[at + n] =
          (std::fabs(row[n]) + std::fabs(moments.mean)) * moments.inverse_std * std::fabs(gain[n]) +
          (bias.empty() ? 0 : std::fabs(bias[n]));
    }
    means.push_back(moments.mean);
    mean_term_size.push_back(sum / static_cast<double>(size));
    inverses.push_back(moments.inverse_std);
  }
  OnnxOutputs outputs{{rounded(y, x.shape, x.dtype), term_size}};
  if (c.op == "LayerNormalization") {
    outputs.push_back({rounded(means, moment_shape, x.dtype), mean_term_size});
    outputs.push_back({rounded(inverses, moment_shape, x.dtype)});
  }
  return outputs;
}

OnnxOutputs run_onnx_rotary(const OnnxCase& c) {
  const FileTensor& x = c.input(0);
  const RotaryLayout layout(x, static_cast<index_t>(c.number("num_heads", 0)));
  const RotaryCaches caches{widened(c.input(1)), widened(c.input(2)),
                            c.has_input(3) ? &c.input(3) : nullptr, layout.length};
  if (2 * std::max(caches.cos.shape.back(), caches.sin.shape.back()) > layout.d ||
      caches.cos.shape.back() != caches.sin.shape.back()) {
    throw FormatError("glasshead-conformance", {{"cos_cache", "has more pairs than a head"}});
  }
  const nn::Rope rope{.pairing = c.number("interleaved", 0) != 0 ? nn::RopePairing::adjacent
                                                                 : nn::RopePairing::halves,
                      .rotary = static_cast<index_t>(c.number("rotary_embedding_dim", 0))};
  std::vector<double> y = widened(x).values;
  rotate_all(y, layout, caches, rope);
  return {{rounded(y, x.shape, x.dtype), term_sizes(c, layout, caches, rope)}};
}

OnnxOutputs run_onnx_softmax(const OnnxCase& c) {
  const FileTensor& x = c.input(0);
  std::vector<double> y = widened(x).values;
  const auto function = c.op == "Softmax" ? nn::softmax : nn::log_softmax;
  function(y, x.shape, axis_of(c, x), y);
  return {{rounded(y, x.shape, x.dtype)}};
}

OnnxOutputs run_onnx_activation(const OnnxCase& c) {
  const FileTensor& x = c.input(0);
  std::vector<double> y = widened(x).values;
  const bool is_tanh = c.string("approximate", "none") == "tanh";
  const double alpha = c.number("alpha", 1);
  for (double& value : y) {
    if (c.op == "Swish") {
      value = nn::silu(value, alpha);
    } else {
      value = is_tanh ? nn::gelu_tanh(value) : nn::gelu(value);
    }
  }
  return {{rounded(y, x.shape, x.dtype)}};
}

}  // namespace glasshead::conformance
