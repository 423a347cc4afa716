// Attention problems for the doctor's tests: between them they have every structure that the
// catalogue's mistakes need.
#pragma once

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "glasshead/diagnose.h"

namespace glasshead::doctor::test {

struct Inputs {
  std::string name;
  ProbeShape shape;
  AttentionOptions options;
  std::optional<Rotary> rotary;
};

// A dense bias or mask with memory of its own.
inline Bias random_bias(index_t heads, index_t q_len, index_t kv_len) {
  auto values = std::make_shared<std::vector<double>>();
  for (index_t n = 0; n < heads * q_len * kv_len; ++n)
    values->push_back(standard_normal(77, static_cast<std::uint64_t>(n)));
  const View<const double, 3> view(values->data(), {heads, q_len, kv_len});
  return Bias::dense(Broadcast(ConstTensor<3>(view), values));
}
inline Mask random_mask(index_t heads, index_t q_len, index_t kv_len) {
  auto values = std::make_shared<std::vector<std::uint8_t>>();
  for (index_t n = 0; n < heads * q_len * kv_len; ++n)
    values->push_back(uniform(78, static_cast<std::uint64_t>(n)) < 0.7 ? 1 : 0);
  const View<const std::uint8_t, 3> view(values->data(), {heads, q_len, kv_len});
  return Mask::allowed(Broadcast(ConstTensor<3>(view), values));
}

inline std::vector<Inputs> five_inputs() {
  std::vector<Inputs> all(5);
  all[0] = {"shared heads", {1, 4, 2, 12, 20, 8, 6}, {}, {}};
  all[1] = {"causal at the end", {1, 2, 2, 17, 33, 8, 8}, {}, {}};
  all[1].options.mask = Mask::causal();
  all[1].options.query_start = Align::end;
  all[2] = {"ALiBi in a window", {2, 3, 3, 24, 24, 5, 5}, {}, {}};
  all[2].options.mask = Mask::causal() & Mask::window(6, 0) & Mask::key_lengths({24, 17});
  all[2].options.bias = Bias::alibi(Bias::alibi_slopes(3));
  all[3] = {"cap, bias, padding, a mask per head", {2, 4, 2, 19, 19, 7, 7}, {}, {}};
  all[3].options.mask = random_mask(4, 19, 19) & Mask::key_lengths({13, 19});
  all[3].options.bias = random_bias(4, 19, 19);
  all[3].options.softcap = 3;
  all[4] = {"rotary, sinks, a prefix", {1, 4, 2, 9, 40, 8, 8}, {}, Rotary{}};
  all[4].options.mask = Mask::prefix({12}) & Mask::window(20, 5);
  all[4].options.query_start = index_t{31};
  all[4].options.sinks = {0.5, -1, 2, 0};
  return all;
}

// out, weights and lse in f32, as somebody's program may have written them.
struct Written {
  Tensor<float, 4> out, weights;
  Tensor<float, 3> lse;
  explicit Written(const ProbeShape& s)
      : out({s.batch, s.heads, s.q_len, s.d_v}),
        weights({s.batch, s.heads, s.q_len, s.kv_len}),
        lse({s.batch, s.heads, s.q_len}) {}
  Claims claims(bool has_weights) const {
    Claims claims;
    claims.out = out;
    claims.lse = lse;
    if (has_weights) claims.weights = weights;
    return claims;
  }
};

}  // namespace glasshead::doctor::test
