// A configuration's rotary positions, worked out into frequencies.
#pragma once

#include <optional>
#include <string>

#include "model/catalog/fields.h"

namespace glasshead::model {

struct RotaryDefaults {
  double base = 10000;
  nn::RopePairing pairing = nn::RopePairing::halves;
  index_t head_size = 0;
  // Which layers it is for, where a configuration has several ("full_attention"), else "".
  std::string layer_type = {};
  Key base_key{"rope_theta", "rope.freq_base"};
  bool may_scale = true;            // false: the configuration's scaling is another kind of layer's
  bool is_always_longrope = false;  // Phi-3: older files call it "su" or "yarn"
};

// Reads `rope_theta` with `rope_scaling`, or `rope_parameters` (flat, or by layer type); where
// there are both, they must agree. From GGUF: rope.* and the tensors of rotary factors. Sets
// out.position_limit where a scaling has to change beyond some length.
Rotary read_rotary(Fields& fields, const RotaryDefaults& defaults, Description& out);

// The rotary tables that the layers of a stack use, each once: the index of one equal to `rotary`.
index_t place(Rotary rotary, Stack& stack);

}  // namespace glasshead::model
