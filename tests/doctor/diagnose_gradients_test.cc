// Gradients: right ones are right, and mistakes of the backward pass are told from those of the
// forward pass.
#include <cmath>

#include <gtest/gtest.h>

#include "base/random.h"
#include "glasshead/diagnose.h"

namespace glasshead::doctor {
namespace {

struct Backward {
  ProbeShape shape{1, 4, 2, 9, 14, 8, 6};
  AttentionOptions options;
  Probe probe;
  Tensor<float, 4> d_out, dq, dk, dv;

  Backward() {
    options.mask = Mask::causal();
    options.query_start = Align::end;
    options.softcap = 3;
    probe = make_probe(shape, options, 9);
    d_out = Tensor<float, 4>({1, 4, 9, 6});
    dq = Tensor<float, 4>({1, 4, 9, 8});
    dk = Tensor<float, 4>({1, 2, 14, 8});
    dv = Tensor<float, 4>({1, 2, 14, 6});
    for (index_t n = 0; n < d_out.size(); ++n)
      d_out.data()[n] = static_cast<float>(standard_normal(10, static_cast<std::uint64_t>(n)));
  }
  // Gradients of `wrong` options, or of another d_out.
  void run(const AttentionOptions& used, const ConstTensor<4>& gradient) {
    attend_backward_transparent(gradient, probe.q, probe.k, probe.v, {dq, dk, dv}, used);
  }
  Diagnosis diagnosed() const {
    Claims claims;
    claims.dq = dq;
    claims.dk = dk;
    claims.dv = dv;
    claims.d_out = d_out;
    return diagnose({probe.q, probe.k, probe.v, options, {}, {}}, claims, {.tries_pairs = false});
  }
};

std::string first(const Diagnosis& d) { return d.causes.empty() ? "" : d.causes[0].name(); }

TEST(DiagnoseGradients, right_ones_are_right) {
  Backward b;
  b.run(b.options, b.d_out);
  EXPECT_TRUE(b.diagnosed().is_right()) << diagnosis_text(b.diagnosed());
}

TEST(DiagnoseGradients, a_forgotten_scale_is_named) {
  Backward b;
  b.run(b.options, b.d_out);
  for (Tensor<float, 4>* gradient : {&b.dq, &b.dk})
    for (index_t n = 0; n < gradient->size(); ++n) gradient->data()[n] *= std::sqrt(8.0F);
  EXPECT_EQ(first(b.diagnosed()), "gradient-scale-missing") << diagnosis_text(b.diagnosed());
}

// pytorch#133671: out had another memory order, and d_out filled in memory order was misread.
TEST(DiagnoseGradients, a_misread_d_out_is_named) {
  Backward b;
  ConstTensor<4> misread =
      b.d_out;  // memory of (length, heads, size) read as (heads, length, size)
  Tensor<float, 4> moved({1, 4, 9, 6});
  index_t n = 0;
  for (index_t i = 0; i < 9; ++i)
    for (index_t h = 0; h < 4; ++h)
      for (index_t d = 0; d < 6; ++d) moved.data()[n++] = b.d_out(0, h, i, d);
  misread = moved;
  b.run(b.options, misread);
  EXPECT_EQ(first(b.diagnosed()), "gradient-layout:as-heads-first")
      << diagnosis_text(b.diagnosed());
}

TEST(DiagnoseGradients, a_mask_forgotten_in_both_passes_is_named) {
  Backward b;
  AttentionOptions unmasked = b.options;
  unmasked.mask = {};
  b.run(unmasked, b.d_out);
  EXPECT_EQ(first(b.diagnosed()), "mask-ignored") << diagnosis_text(b.diagnosed());
}

TEST(DiagnoseGradients, keys_of_a_partial_tile_that_both_passes_ignore_are_named) {
  Backward b;
  AttentionOptions without_tail = b.options;  // 14 keys in tiles of 8
  without_tail.mask = b.options.mask & Mask::key_lengths({8});
  b.run(without_tail, b.d_out);
  EXPECT_EQ(first(b.diagnosed()), "tile-tail-ignored:8") << diagnosis_text(b.diagnosed());
}

TEST(DiagnoseGradients, one_head_where_the_sum_over_heads_is_due_is_named) {
  Backward b;
  b.run(b.options, b.d_out);
  Tensor<float, 4> only({1, 4, 9, 6});  // d_out of the last head of each pair alone
  for (index_t h : {1, 3})
    for (index_t i = 0; i < 9; ++i)
      for (index_t d = 0; d < 6; ++d) only(0, h, i, d) = b.d_out(0, h, i, d);
  Tensor<float, 4> ignored({1, 4, 9, 8});
  attend_backward_transparent(only, b.probe.q, b.probe.k, b.probe.v, {ignored, b.dk, b.dv},
                              b.options);
  EXPECT_EQ(first(b.diagnosed()), "gradient-heads-not-summed") << diagnosis_text(b.diagnosed());
}

}  // namespace
}  // namespace glasshead::doctor
