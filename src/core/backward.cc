#include "core/backward.h"

#include <string>
#include <variant>

#include <fmt/format.h>

#include "core/context_impl.h"
#include "core/fused.h"
#include "core/rows.h"

namespace glasshead {
namespace {

using Shape3 = std::array<index_t, 3>;

template <int Rank>
void check_readable(const char* where, const ConstTensor<Rank>& tensor,
                    const std::array<index_t, ConstTensor<Rank>::kRank>& shape, const char* axes,
                    Findings& findings) {
  if (tensor.shape != shape) {
    findings.shape(where, "is " + shape_text(tensor.shape) + "; " + axes + " = " +
                              shape_text(shape) + " is right");
    return;
  }
  for (const index_t extent : shape)
    if (extent <= 0) return;
  if (!spans_memory(tensor.shape, tensor.strides, tensor.dtype))
    findings.shape(where, "its strides reach beyond 64-bit addresses");
  if (tensor.data == nullptr)
    findings.option(where, "data is null, but " + shape_text(shape) + " has elements");
}

void check_floating(const char* where, DType type, Findings& findings) {
  if (is_floating(type)) return;
  findings.option(
      where, std::string("has dtype ") + name(type) + "; f64, f32, bf16 or f16 would be right");
}

// Rounded any further, max would no longer be the maximum.
void check_row(const char* where, const MutableTensor<3>& tensor, const Shape3& shape,
               DType compute, Findings& findings) {
  check_readable<3>(where, tensor, shape, "[batch, heads, q_len]", findings);
  if (tensor.dtype == compute || tensor.dtype == DType::f64) return;
  findings.option(where, fmt::format("has dtype {}; {} would be right, the compute type",
                                     name(tensor.dtype), name(compute)));
}

std::array<index_t, 4> shape_of_term(const Bias::Term& term) {
  if (const auto* t5 = std::get_if<Bias::T5>(&term)) return {1, 1, t5->buckets, t5->heads};
  std::array<index_t, 4> shape{1, 1, 1, 1};
  if (const auto* dense = std::get_if<Bias::Dense>(&term)) {
    const auto rank = static_cast<std::size_t>(dense->values.rank);
    for (std::size_t n = 0; n < rank; ++n) shape[4 - rank + n] = dense->values.shape[n];
  }
  return shape;
}

// A set that rounds has the kernels of attend alone, and queries in a layout of its own.
void check_set(const Context& context, DType type, Findings& findings) {
  const KernelSet& set = context.impl().kernels;
  if (!set.rounds || compute_type(type) != DType::f32) return;
  findings.option("context", fmt::format("the kernel set \"{}\" has no gradients; a Context of "
                                         "another set has, \"{}\" say",
                                         set.name, set.fallback));
}

void check_d_bias(const std::vector<MutableTensor<4>>& d_bias, const AttentionOptions& options,
                  Findings& findings) {
  const std::vector<Bias::Term>& terms = options.bias.terms();
  if (d_bias.size() > terms.size()) {
    findings.shape("d_bias", fmt::format("has {} tensors where the bias has {} terms; one for each "
                                         "term, in order",
                                         d_bias.size(), terms.size()));
    return;
  }
  for (std::size_t n = 0; n < d_bias.size(); ++n) {
    if (d_bias[n].data == nullptr) continue;
    const std::string where = fmt::format("d_bias[{}]", n);
    if (std::holds_alternative<Bias::Alibi>(terms[n])) {
      findings.option(where,
                      "is of an ALiBi term, whose slopes have no gradient; null data would "
                      "be right");
      continue;
    }
    check_writable<4>(where, d_bias[n], shape_of_term(terms[n]), {"0", "1", "2", "3"}, findings);
  }
}

std::vector<NamedData> results_of(const Gradients& gradients) {
  std::vector<NamedData> results{{"dq", gradients.dq.data},
                                 {"dk", gradients.dk.data},
                                 {"dv", gradients.dv.data},
                                 {"d_sinks", gradients.d_sinks.data}};
  for (const MutableTensor<4>& d_bias : gradients.d_bias)
    results.push_back({"d_bias", d_bias.data});
  return results;
}

}  // namespace

void check_backward(const BackwardInputs& inputs, const Gradients& gradients,
                    const AttentionOptions& options, Findings& findings) {
  const ConstTensor<4>&d_out = *inputs.d_out, &q = *inputs.q, &k = *inputs.k, &v = *inputs.v;
  check_call({&q, &k, &v}, options, findings);
  check_floating("d_out", d_out.dtype, findings);
  check_readable<4>("d_out", d_out, {q.shape[0], q.shape[1], q.shape[2], v.shape[3]},
                    "[batch, heads, q_len, d_v]", findings);
  check_writable<4>("dq", gradients.dq, q.shape, kQueryAxes, findings);
  check_writable<4>("dk", gradients.dk, k.shape, kKeyAxes, findings);
  check_writable<4>("dv", gradients.dv, v.shape, kValueAxes, findings);
  check_d_bias(gradients.d_bias, options, findings);
  if (gradients.d_sinks.data != nullptr) {
    check_writable<1>("d_sinks", gradients.d_sinks, {static_cast<index_t>(options.sinks.size())},
                      {"heads"}, findings);
  }
  check_apart({{"d_out", d_out.data}, {"q", q.data}, {"k", k.data}, {"v", v.data}},
              results_of(gradients), findings);
}

void store_sinks(std::span<const double> sums, const MutableTensor<1>& d_sinks) {
  if (d_sinks.data == nullptr) return;
  for (std::size_t h = 0; h < sums.size(); ++h)
    d_sinks.store_at({static_cast<index_t>(h)}, canonical(sums[h]));
}

void attend_backward(const ConstTensor<4>& d_out, const ConstTensor<4>& q, const ConstTensor<4>& k,
                     const ConstTensor<4>& v, const ConstTensor<4>& out, const RowState& rows,
                     const Gradients& gradients, const AttentionOptions& options,
                     const Context& context) {
  Findings findings;
  check_backward({&d_out, &q, &k, &v}, gradients, options, findings);
  check_set(context, q.dtype, findings);
  check_floating("out", out.dtype, findings);
  check_readable<4>("out", out, {q.shape[0], q.shape[1], q.shape[2], v.shape[3]},
                    "[batch, heads, q_len, d_v]", findings);
  const Shape3 state{q.shape[0], q.shape[1], q.shape[2]};
  check_row("rows.max", rows.max, state, compute_type(q.dtype), findings);
  check_row("rows.sum", rows.sum, state, compute_type(q.dtype), findings);
  // Apart from each other they were found to be above.
  for (const NamedData& result : results_of(gradients)) {
    check_apart({{"out", out.data}, {"rows.max", rows.max.data}, {"rows.sum", rows.sum.data}},
                {result}, findings);
  }
  refuse("attend_backward", findings);
  run_backward({d_out, q, kv_of(k, v), k.shape[2], out, rows, gradients, options}, context);
}

namespace {

template <class T>
EmptyRows attend_and_back(const BackwardInputs& in, const Gradients& gradients,
                          const AttentionOptions& options, const Context& context) {
  const std::array<index_t, 4>&q = in.q->shape, &v = in.v->shape;
  Tensor<T, 4> out({q[0], q[1], q[2], v[3]});
  Tensor<T, 3> max({q[0], q[1], q[2]}), sum({q[0], q[1], q[2]});
  const MutableTensor<4> out_view(out);
  const RowState rows{max, sum, {}};
  const KvSource kv = kv_of(*in.k, *in.v);
  const index_t kv_len = in.k->shape[2];
  const EmptyRows empty = run_fused({*in.q, kv, kv_len, options, out_view, rows}, context);
  run_backward({*in.d_out, *in.q, kv, kv_len, out_view, rows, gradients, options}, context);
  return empty;
}

}  // namespace

void attend_backward(const ConstTensor<4>& d_out, const ConstTensor<4>& q, const ConstTensor<4>& k,
                     const ConstTensor<4>& v, const Gradients& gradients,
                     const AttentionOptions& options, const Context& context) {
  Findings findings;
  const BackwardInputs inputs{&d_out, &q, &k, &v};
  check_backward(inputs, gradients, options, findings);
  check_set(context, q.dtype, findings);
  refuse("attend_backward", findings);
  const EmptyRows empty = q.dtype == DType::f64
                              ? attend_and_back<double>(inputs, gradients, options, context)
                              : attend_and_back<float>(inputs, gradients, options, context);
  if (options.empty_row == EmptyRow::error)
    report_empty_rows(empty, "only scores of -inf", findings);
  refuse("attend_backward", findings);
}

}  // namespace glasshead
