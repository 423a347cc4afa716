// A bias is numbers added to the scores after scale and softcap, before the mask selects:
//
//   Bias bias = Bias::alibi(Bias::alibi_slopes(heads));
//   Bias both = bias + Bias::dense(table);            // terms are added in this order
//
// Finite entries, however negative, are ordinary numbers, added in the compute type. An entry of a
// dense bias that is exactly -inf hides its pair, as a mask does; NaN and +inf are refused.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "glasshead/mask.h"

namespace glasshead {

class Bias {
 public:
  // Attention with linear biases (Press, Smith, Lewis 2022, section 3): one slope per query head.
  enum class AlibiForm {
    distance,  // -slope * |p - j|
    key_index  // +slope * j: equal to `distance` under a causal mask but for a constant per row
  };
  struct Alibi {
    std::vector<double> slopes;  // [heads], finite
    AlibiForm form = AlibiForm::distance;
  };
  // T5's relative position buckets (Raffel et al. 2020, section 2.1): table[bucket(j - p), h].
  struct T5 {
    index_t buckets = 32;
    index_t heads = 0;
    std::vector<double> table;     // [buckets, heads], finite
    bool is_bidirectional = true;  // encoder: half the buckets for keys after the query
    index_t max_distance = 128;    // beyond it all distances share the last bucket
  };
  struct Dense {
    Broadcast values;
  };  // f64, f32, bf16 or f16, broadcast to [batch, heads, q_len, kv_len]
  using Term = std::variant<Alibi, T5, Dense>;

  Bias() = default;  // nothing is added
  static Bias alibi(std::vector<double> slopes, AlibiForm form = AlibiForm::distance);
  static Bias t5(T5 table);
  static Bias dense(Broadcast values);

  // The paper's slopes for any number of heads: 2^(-8 (h+1) / heads) for a power of two; otherwise
  // those of the next lower power of two, then every second one of the next higher.
  static std::vector<double> alibi_slopes(index_t heads);
  // T5's bucket of a relative position j - p, in [0, buckets).
  static index_t t5_bucket(index_t relative_position, const T5& t5);

  friend Bias operator+(Bias a, const Bias& b);

  const std::vector<Term>& terms() const { return terms_; }
  std::vector<Term>& terms() { return terms_; }

 private:
  std::vector<Term> terms_;
};

}  // namespace glasshead
