// What BERT and its kin have in common: LayerNorm after each half of a layer, learned positions,
// biases everywhere.
#pragma once

#include "model/catalog/family.h"
#include "model/catalog/fields.h"

namespace glasshead::model {

// The names that a family's config.json has for the same things, and its defaults.
struct EncoderKeys {
  Key d_model{"hidden_size", "embedding_length"};
  Key layers{"num_hidden_layers", "block_count"};
  Key heads{"num_attention_heads", "attention.head_count"};
  Key d_ff{"intermediate_size", "feed_forward_length"};
  Key activation{"hidden_act"};
  Key eps{"layer_norm_eps", "attention.layer_norm_epsilon"};
  const char* default_activation = "gelu";
  double default_eps = 1e-12;
  index_t default_token_types = 2;  // 0: the family has none
  bool shares_layers = false;       // ALBERT's layers share theirs
};

// Fills in everything but the head, which is there if the files have `dense` (its first matrix).
Stack& read_encoder(Fields& fields, const EncoderKeys& keys, Description& out);

// The masked-language head and the pooler, by the tensors that the files have.
void read_heads(Fields& fields, const Names& names, const EncoderKeys& keys, Description& out);

}  // namespace glasshead::model
