// What the llama-like families have in common: RMSNorm before each half of a layer, rotary
// positions, grouped queries, a gated feed-forward layer. A family reads this and then says where
// it differs.
#pragma once

#include <string>
#include <vector>

#include "model/catalog/family.h"
#include "model/catalog/fields.h"
#include "model/catalog/rotary.h"

namespace glasshead::model {

struct DecoderDefaults {
  double eps = 1e-6;
  bool is_tied = false;  // where config.json doesn't say
  const char* activation = "silu";
  Key activation_key{"hidden_act"};
  // Sizes that config.json may leave out; 0: it may not. head_size 0: d_model / heads.
  index_t vocab = 0, heads = 0, kv_heads = 0, head_size = 0;
  index_t context_length = 0;
};

// Fills in all but rotary positions, windows and biases: out.decoder has its layers. After problems
// their sizes are 0.
Stack& read_decoder(Fields& fields, const DecoderDefaults& defaults, Description& out);

// All layers turn by one table.
void turn_all(Fields& fields, RotaryDefaults defaults, Description& out);

// "full_attention" or "sliding_attention" for each layer, from `layer_types`; `otherwise` where
// there is no such list. Other words are problems.
std::vector<bool> sliding_layers(Fields& fields, std::vector<bool> otherwise);
// The window of the layers that slide. 0: none of them does.
void set_windows(Stack& stack, const std::vector<bool>& slides, index_t window);

// Biases as config.json's flags say, or as the GGUF has them.
void read_biases(Fields& fields, Stack& stack);

// query_pre_attn_scalar^-1/2, or what else a family says.
void set_scale(Stack& stack, double scale);

}  // namespace glasshead::model
