// ONNX Attention (opset 23 and 24) under the library's contract. Positions: query row 0 stands
// behind the past; with lengths per batch it stands at length - q_len; else at 0. A boolean mask
// selects, a float mask is a bias, and one shorter than the keys hides the rest: the library
// itself refuses a mask that doesn't broadcast, so it is padded here.
#include <cmath>
#include <limits>

#include "conformance/onnx.h"
#include "glasshead/attention.h"
#include "glasshead/error.h"
#include "glasshead/trace.h"

namespace glasshead::conformance {
namespace {

enum Input : std::size_t { in_q, in_k, in_v, in_mask, in_past_key, in_past_value, in_key_lengths };
enum Output : std::size_t { out_y, out_present_key, out_present_value, out_scores };

// (batch, length, heads * d) as [batch, heads, length, d]; rank 4 as it is.
ConstTensor<4> by_heads(const FileTensor& tensor, double heads, const std::string& name) {
  if (tensor.shape.size() != 3) return tensor.view<4>(name);
  const auto count = static_cast<index_t>(heads);
  const index_t length = tensor.shape[1];
  const index_t size = tensor.shape[2];
  if (count < 1 || size % count != 0) {
    throw FormatError("glasshead-conformance",
                      {{name, std::to_string(size) + " does not divide into heads"}});
  }
  const index_t d = size / count;
  return {tensor.bytes.data(),
          tensor.dtype,
          {tensor.shape[0], count, length, d},
          {length * size, d, size, 1}};
}

// past, then the new rows, along the length: the keys or values that are attended to.
FileTensor joined(const std::optional<FileTensor>& past, const ConstTensor<4>& now) {
  const index_t before = past ? past->shape.at(2) : 0;
  FileTensor all =
      zeros(now.dtype, {now.shape[0], now.shape[1], before + now.shape[2], now.shape[3]});
  const MutableTensor<4> out = writable<4>(all);
  const ConstTensor<4> old = past ? past->view<4>("past") : ConstTensor<4>();
  for (index_t b = 0; b < out.shape[0]; ++b) {
    for (index_t h = 0; h < out.shape[1]; ++h) {
      for (index_t j = 0; j < out.shape[2]; ++j) {
        for (index_t d = 0; d < out.shape[3]; ++d) {
          out.store_at({b, h, j, d},
                       j < before ? old.load(b, h, j, d) : now.load(b, h, j - before, d));
        }
      }
    }
  }
  return all;
}

// The mask with its last axis padded to kv_len by "hidden". An axis of size 1 broadcasts.
FileTensor padded(const FileTensor& mask, index_t kv_len) {
  const index_t width = mask.shape.empty() ? 1 : mask.shape.back();
  if (width == 1 || width >= kv_len) return mask;
  FileTensor result{mask.dtype, mask.shape, {}};
  result.shape.back() = kv_len;
  result.bytes.resize(static_cast<std::size_t>(result.size()) * size_of(result.dtype));
  const double hidden = mask.dtype == DType::u8 ? 0 : -std::numeric_limits<double>::infinity();
  for (index_t n = 0; n < result.size(); ++n) {
    const index_t j = n % kv_len;
    store_element(result.bytes.data(), result.dtype, n,
                  j < width ? mask.load(n / kv_len * width + j) : hidden);
  }
  return result;
}

template <class Tensor>
Tensor batch_of(Tensor tensor, index_t b, index_t step) {
  using Pointer = decltype(tensor.data);
  using Byte = std::conditional_t<std::is_same_v<Pointer, void*>, std::byte, const std::byte>;
  tensor.data = static_cast<Byte*>(tensor.data) +
                b * tensor.strides[0] * static_cast<index_t>(size_of(tensor.dtype));
  tensor.shape[0] = step;
  return tensor;
}

// All of one call, or of one batch of it.
struct Call {
  ConstTensor<4> q, k, v;
  AttentionOptions options;
};

// qk_matmul_output_mode: 0 scaled, 1 after softcap, 2 after bias and mask, 3 weights. The steps
// hold all of them; one that is off was left out and equals the one before it.
void write_scores(const Call& call, int mode, const MutableTensor<4>& out) {
  if (mode == 3) {
    attention_weights(call.q, call.k, call.options, {0, call.q.shape[1], 0, call.q.shape[2]}, out);
    return;
  }
  const Trace trace = attend_traced(call.q, call.k, call.v, call.options);
  const TraceTensor* scores = &trace.at("scaled");
  const auto later = [&](const char* tap) {
    if (const TraceTensor* found = trace.find(tap)) scores = found;
  };
  if (mode >= 1) later("capped");
  if (mode >= 2) later("biased");
  if (mode >= 2) later("masked");
  std::size_t n = 0;
  for (index_t b = 0; b < out.shape[0]; ++b) {
    for (index_t h = 0; h < out.shape[1]; ++h) {
      for (index_t i = 0; i < out.shape[2]; ++i) {
        for (index_t j = 0; j < out.shape[3]; ++j)
          out.store_at({b, h, i, j}, scores->values.at(n++));
      }
    }
  }
}

AttentionOptions options_of(const OnnxCase& c, index_t offset) {
  AttentionOptions options;
  if (c.numbers.contains("scale")) options.scale = c.numbers.at("scale");
  options.softcap = c.number("softcap", 0);
  options.query_start = offset;
  if (c.number("is_causal", 0) != 0) options.mask = Mask::causal();
  return options;
}

void add_mask(const ConstTensor<4>& mask, AttentionOptions& options) {
  if (mask.dtype == DType::u8) {
    options.mask = options.mask & Mask::allowed(mask);
  } else {
    options.bias = Bias::dense(mask);
  }
}

// The whole call as the list of calls it takes: one, or one per batch where each has an offset of
// its own.
struct Plan {
  FileTensor keys, values;
  std::optional<FileTensor> mask;
  std::vector<Call> calls;
  index_t step = 0;  // batches per call
};

Plan plan_of(const OnnxCase& c) {
  Plan plan;
  const double kv_heads = c.number("kv_num_heads", 0);
  const ConstTensor<4> q = by_heads(c.input(in_q), c.number("q_num_heads", 0), "Q");
  plan.keys = joined(c.has_input(in_past_key) ? c.inputs[in_past_key] : std::nullopt,
                     by_heads(c.input(in_k), kv_heads, "K"));
  plan.values = joined(c.has_input(in_past_value) ? c.inputs[in_past_value] : std::nullopt,
                       by_heads(c.input(in_v), kv_heads, "V"));
  if (c.has_input(in_mask)) plan.mask = padded(c.input(in_mask), plan.keys.shape[2]);
  const index_t past = c.has_input(in_past_key) ? c.input(in_past_key).shape.at(2) : 0;
  const bool has_lengths = c.has_input(in_key_lengths);
  plan.step = has_lengths ? 1 : q.shape[0];
  for (index_t b = 0; b < q.shape[0]; b += std::max<index_t>(plan.step, 1)) {
    const index_t length =
        has_lengths ? static_cast<index_t>(c.input(in_key_lengths).load(b)) : plan.keys.shape[2];
    Call call{batch_of(q, b, plan.step), batch_of(plan.keys.view<4>("K"), b, plan.step),
              batch_of(plan.values.view<4>("V"), b, plan.step),
              options_of(c, has_lengths ? length - q.shape[2] : past)};
    if (has_lengths) call.options.mask = call.options.mask & Mask::key_lengths({length});
    if (plan.mask) {
      const ConstTensor<4> mask = plan.mask->view<4>("attn_mask");
      add_mask(mask.shape[0] > plan.step ? batch_of(mask, b, plan.step) : mask, call.options);
    }
    plan.calls.push_back(std::move(call));
  }
  return plan;
}

// Y in the layout of Q: (batch, length, heads * d_v) where that is rank 3.
FileTensor in_layout_of_q(const OnnxCase& c, FileTensor y) {
  if (c.input(in_q).shape.size() != 3) return y;
  const ConstTensor<4> by_head = y.view<4>("Y");
  FileTensor flat = zeros(y.dtype, {y.shape[0], y.shape[2], y.shape[1] * y.shape[3]});
  index_t n = 0;
  for (index_t b = 0; b < y.shape[0]; ++b) {
    for (index_t i = 0; i < y.shape[2]; ++i) {
      for (index_t h = 0; h < y.shape[1]; ++h) {
        for (index_t d = 0; d < y.shape[3]; ++d) {
          store_element(flat.bytes.data(), flat.dtype, n++, by_head.load(b, h, i, d));
        }
      }
    }
  }
  return flat;
}

}  // namespace

OnnxOutputs run_onnx_attention(const OnnxCase& c, const Engine& engine) {
  // FLOAT, FLOAT16, BFLOAT16 (TensorProto's numbers): f32, in which softmax is computed anyway, is
  // at least that.
  const auto precision = static_cast<int>(c.number("softmax_precision", 1));
  if (precision != 1 && precision != 10 && precision != 16) {
    throw OptionError("glasshead-conformance",
                      {{"softmax_precision", std::to_string(precision) + " is wider than f32"}});
  }
  Plan plan = plan_of(c);
  const ConstTensor<4> q = by_heads(c.input(in_q), c.number("q_num_heads", 0), "Q");
  FileTensor y = zeros(q.dtype, {q.shape[0], q.shape[1], q.shape[2], plan.values.shape[3]});
  FileTensor scores = zeros(q.dtype, {q.shape[0], q.shape[1], q.shape[2], plan.keys.shape[2]});
  const auto mode = static_cast<int>(c.number("qk_matmul_output_mode", 0));
  index_t b = 0;
  for (const Call& call : plan.calls) {
    engine.attend(call.q, call.k, call.v, batch_of(writable<4>(y), b, plan.step), call.options);
    if (c.wants_output(out_scores)) {
      write_scores(call, mode, batch_of(writable<4>(scores), b, plan.step));
    }
    b += plan.step;
  }
  OnnxOutputs outputs(4);
  outputs[out_y].tensor = in_layout_of_q(c, std::move(y));
  outputs[out_present_key].tensor = std::move(plan.keys);
  outputs[out_present_value].tensor = std::move(plan.values);
  outputs[out_scores].tensor = std::move(scores);
  return outputs;
}

}  // namespace glasshead::conformance
