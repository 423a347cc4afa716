// A test of one's own attention: what fails says why.
#include <cmath>
#include <vector>

#include "glasshead/testing.h"

namespace {

using glasshead::index_t;
using glasshead::Tensor;

// The attention under test: causal, in float.
Tensor<float, 4> my_attention(const Tensor<float, 4>& q, const Tensor<float, 4>& k,
                              const Tensor<float, 4>& v) {
  const index_t heads = q.shape()[1], length = q.shape()[2], size = q.shape()[3];
  Tensor<float, 4> out(q.shape());
  for (index_t h = 0; h < heads; ++h)
    for (index_t i = 0; i < length; ++i) {
      std::vector<float> weights;
      float total = 0;
      for (index_t j = 0; j <= i; ++j) {
        float dot = 0;
        for (index_t e = 0; e < size; ++e) dot += q(0, h, i, e) * k(0, h, j, e);
        weights.push_back(std::exp(dot / std::sqrt(static_cast<float>(size))));
        total += weights.back();
      }
      for (index_t j = 0; j <= i; ++j)
        for (index_t e = 0; e < size; ++e)
          out(0, h, i, e) += weights[static_cast<std::size_t>(j)] / total * v(0, h, j, e);
    }
  return out;
}

TEST(MyAttention, is_causal_attention) {
  glasshead::AttentionOptions options;
  options.mask = glasshead::Mask::causal();
  const glasshead::ProbeShape shape{.heads = 2, .kv_heads = 2, .q_len = 20, .kv_len = 20};
  const glasshead::Probe probe = glasshead::make_probe(shape, options);
  const Tensor<float, 4> out = my_attention(probe.q, probe.k, probe.v);
  EXPECT_TRUE(glasshead::is_attention(out, {probe.q, probe.k, probe.v, options}));
}

}  // namespace
