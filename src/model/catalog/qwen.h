// What Qwen2 and Qwen3 share.
#pragma once

#include "model/catalog/decoder.h"

namespace glasshead::model {

// use_sliding_window, sliding_window, max_window_layers (the first that slides) and layer_types.
void set_qwen_windows(Fields& fields, Stack& stack);

}  // namespace glasshead::model
