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
#include "glasshead/context.h"
#include "glasshead/error.h"
#include "glasshead/tensor.h"
#include "model/description.h"
#include "nn/linear.h"

namespace glasshead::model {

// Layers with one input as one: their outputs stand side by side. One part where all are stored in
// the same type, so that one call does the work.
class Joined {
 public:
  Joined() = default;
  explicit Joined(std::vector<nn::Linear> parts);

  index_t out() const;  // the sum of the parts'
  index_t in() const;
  index_t bytes() const;
  const std::vector<nn::Linear>& parts() const { return parts_; }
  // x [rows, in] -> y [rows, out]
  void apply(const View<const float, 2>& x, const View<float, 2>& y, const Context& context) const;

 private:
  std::vector<nn::Linear> parts_;
};

struct NormWeights {
  std::vector<float> gain, bias;  // [n]; empty: 1 and 0
};

struct AttentionWeights {
  NormWeights norm;   // before (pre, sandwich), or after the sum (post)
  NormWeights after;  // of what is added (sandwich)
  Joined in;      // self: q | k | v, [heads·d_k + kv_heads·d_k + kv_heads·d_v, d_model]; cross: q
  Joined memory;  // cross: k | v of the encoder's output
  NormWeights q_norm, k_norm;  // [d_k], where Attention::qk_norm
  nn::Linear out;              // [d_model, heads·d_v]
};

struct FeedForwardWeights {
  NormWeights norm, after;  // as in AttentionWeights
  Joined in;                // gate | up, [2·width, d_model], or up alone
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
  nn::Linear projection;  // [d_model, width], where width != d_model
};

struct HeadWeights {
  nn::Linear logits;     // [vocab, width of its input]; tied: the embedding's, one in memory
  nn::Linear transform;  // where Head::transform
  NormWeights transform_norm;
  std::vector<float> bias;  // [vocab], where Head::has_bias: added after the matrix
  nn::Linear pooler;
};

struct Weights {
  EmbeddingWeights embedding;
  StackWeights encoder, decoder;  // where the description has them
  HeadWeights head;
  index_t parameters = 0;  // numbers in the files that are used, tied copies once
  index_t bytes = 0;       // of all of it in memory
};

struct LoadOptions {
  // How many tokens the text may grow to; 0: what the model was made for. It matters to models
  // with two sets of rotary factors (Phi-3's long and short), which have to be chosen between once.
  index_t context = 0;
};

// The description alone: no weight is read. False, and every problem, if the configuration is
// unknown, contradicts itself, or asks for arithmetic that is not built.
bool describe(const formats::Checkpoint& files, const LoadOptions& options, Description& out,
              std::vector<Problem>& problems);

struct Loaded {
  Description description;
  Weights weights;
};
// Throws FormatError with every problem of the configuration, or of the tensors.
Loaded load(const formats::Checkpoint& files, const LoadOptions& options = {});
bool load(const formats::Checkpoint& files, const LoadOptions& options, Loaded& out,
          std::vector<Problem>& problems);  // without throwing

}  // namespace glasshead::model
