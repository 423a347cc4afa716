// A model's weights, put in their places.
//
//   Loaded model = load(formats::Checkpoint::open("stories260K"));
//   model.weights.decoder.layers[2].self.in.apply(x, qkv, context);   // q | k | v side by side
//
// The rule of loading: every tensor of the files is used, or on the family's list of those that may
// be left; every tensor that the description calls for is there with its shape; a stored copy of a
// tied tensor equals its twin. Otherwise the model is refused, with all that is missing, unused or
// of another shape named at once.
//
// Matrices stay in the type they are stored in; norms, biases and small tables become f32. A
// family's ways are undone here: transposed matrices, packed ones, gains stored less 1.
#pragma once

#include <string>
#include <vector>

#include "formats/checkpoint.h"
#include "glasshead/error.h"
#include "glasshead/tensor.h"
#include "model/description.h"
#include "nn/linear.h"

namespace glasshead::model {

struct NormWeights {
  std::vector<float> gain, bias;  // [n]; empty: 1 and 0
};

struct AttentionWeights {
  NormWeights norm;   // before (pre, sandwich), or after the sum (post)
  NormWeights after;  // of what is added (sandwich)
  // Self: q | k | v, [heads·d_k + kv_heads·d_k + kv_heads·d_v, d_model]. Cross: q.
  nn::Linear in;
  nn::Linear memory;           // cross: k | v of the encoder's output
  NormWeights q_norm, k_norm;  // [d_k], where Attention::qk_norm
  nn::Linear out;              // [d_model, heads·d_v]
};

struct FeedForwardWeights {
  NormWeights norm, after;  // as in AttentionWeights
  nn::Linear in;            // gate | up, [2·width, d_model], or up alone
  nn::Linear out;           // [d_model, width]
};

struct LayerWeights {
  AttentionWeights self;
  AttentionWeights cross;  // where Layer::cross
  FeedForwardWeights ffn;
};

struct StackWeights {
  std::vector<LayerWeights> layers;  // as many as the description has; shared ones are copies,
                                     // whose matrices are one in memory
  NormWeights final_norm;
  std::vector<float> relative;  // [buckets, heads]
};

struct EmbeddingWeights {
  nn::Linear tokens;               // [vocab, width], read by row()
  std::vector<float> positions;    // [positions, width]
  std::vector<float> token_types;  // [token_types, width]
  NormWeights norm;
  nn::Linear projection;  // [d_model, width], where Embedding::is_projected
};

struct HeadWeights {
  nn::Linear logits;     // [vocab, width of its input]; tied: the embedding's, one in memory
  nn::Linear transform;  // [embedding's width, d_model], where Head::transform
  NormWeights transform_norm;
  std::vector<float> bias;  // [vocab], where Head::has_bias: added after the matrix
  nn::Linear pooler;
};

struct Weights {
  EmbeddingWeights embedding;
  StackWeights encoder, decoder;  // where the description has them
  HeadWeights head;
  index_t parameters = 0;  // numbers in the files that are used, tied or shared ones once
  index_t bytes = 0;       // of all of it in memory, what is shared once
};

struct LoadOptions {
  // How many tokens the text may grow to; 0: what needs no scaling. It matters to models with two
  // sets of rotary factors (Phi-3's long and short): which set holds is decided here, once, since
  // changing over within a text would contradict the keys that are cached. The short set comes with
  // a Description::position_limit.
  index_t context = 0;
  bool has_tensors = true;  // false: the files are a configuration alone, to be described
};

// The description alone: no weight is read. False, and every problem, if the configuration is
// unknown, contradicts itself, or asks for arithmetic that is not built.
bool describe(const formats::Checkpoint& files, const LoadOptions& options, Description& out,
              std::vector<Problem>& problems);

// The tensors that the description calls for, each checked against the files, none read: what
// loading does first. Tied copies and tensors that may be left are not among them.
struct Inventory {
  std::vector<const formats::StoredTensor*> used;  // in the files' order
  index_t parameters = 0;                          // numbers in them
  index_t bytes = 0;                               // as stored
};
bool take_inventory(const formats::Checkpoint& files, Description& description, Inventory& out,
                    std::vector<Problem>& problems);

struct Loaded {
  Description description;
  Weights weights;
  Inventory inventory;  // its tensors live as long as the Checkpoint, or a copy of it
};
// Throws FormatError with every problem of the configuration, or of the tensors.
Loaded load(const formats::Checkpoint& files, const LoadOptions& options = {});
bool load(const formats::Checkpoint& files, const LoadOptions& options, Loaded& out,
          std::vector<Problem>& problems);  // without throwing

}  // namespace glasshead::model
