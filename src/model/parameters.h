// How many numbers a description calls for, without files.
#pragma once

#include "model/description.h"

namespace glasshead::model {

// Numbers in all matrices, norms, biases and tables; tied and shared ones once.
index_t count_parameters(const Description& model);

}  // namespace glasshead::model
