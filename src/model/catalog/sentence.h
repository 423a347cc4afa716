// How a text becomes one vector, where a model's folder says it as sentence-transformers does.
#pragma once

#include "model/catalog/fields.h"

namespace glasshead::model {

// modules.json lists what follows the model: a pooling, whose folder has a config.json, and perhaps
// a normalisation. Anything else is a problem. Nothing is read where there is no modules.json.
void read_sentence_modules(Fields& fields, Description& out);

}  // namespace glasshead::model
