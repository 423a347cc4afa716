// A model family: a mapping from its configuration to a Description, and a table of tensor names.
// One file in this folder defines one; registry.cc lists them. Nothing here is asked after loading.
//
// How to add one: docs/models.md.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/checkpoint.h"
#include "glasshead/error.h"
#include "model/description.h"

namespace glasshead::model {

class Fields;

// Where a tensor goes. A matrix `x` is stored as x.weight and, if the description says so, x.bias.
enum class Slot {
  tokens,       // [vocab, width]
  tokens_copy,  // a stored copy of tokens, which must equal it
  positions,    // [positions, width]
  token_types,  // [token_types, width]
  embedding_norm,
  embedding_projection,
  // of a layer
  attention_norm,
  attention_after,
  q,
  k,
  v,
  qkv,  // q's rows, then k's, then v's
  attention_out,
  q_norm,
  k_norm,
  cross_norm,
  cross_q,
  cross_k,
  cross_v,
  cross_out,
  ffn_norm,
  ffn_after,
  gate,
  up,
  up_alone,  // up where there is no gate, if it has another name then
  gate_up,   // gate's rows, then up's
  down,
  // of a stack
  final_norm,
  relative,  // [buckets, heads]
  // of the head
  transform,
  transform_norm,
  logits,
  logits_bias,       // [vocab]
  logits_bias_copy,  // a stored copy of logits_bias
  pooler,
  rotary_factors,  // read with the configuration, not with the weights
};

enum class Layout {
  out_in,  // pattern + ".weight" is [out, in]
  in_out,  // it is [in, out] (GPT-2's Conv1D)
  bare     // the pattern is the whole name
};

enum class Side { only, encoder, decoder };  // which stack, where there are two

struct NameRule {
  Slot slot;
  const char* pattern;  // "@layers.{}.mlp.up_proj": @ is the family's prefix, {} the layer's number
  Layout layout = Layout::out_in;
  Side side = Side::only;
};

// A format's names.
struct Names {
  std::span<const NameRule> rules;
  // What @ may stand for: the first under which the token table is found holds for all.
  std::span<const char* const> prefixes;
  // Tensors that may be in the files and are left: @ as above, {} a number, * anything.
  std::span<const char* const> left;
};

struct Family {
  const char* name;
  std::span<const char* const> model_types;  // config.json: model_type
  std::span<const char* const> classes;      // config.json: "Llama" of LlamaForCausalLM
  std::span<const char* const> gguf;         // general.architecture
  Names safetensors_names, gguf_names;
  void (*describe)(Fields& fields, Description& out);  // problems go through `fields`
  bool may_untie = false;  // a stored head that differs from the token table makes it untied

  // For docs: published models, and what the family does.
  const char* examples;
  const char* norm;
  const char* positions;
  const char* attention;
  const char* feed_forward;
};

extern const Family kAlbert, kBert, kDistilBert, kGemma, kGemma2, kGemma3, kGpt2, kLlama, kMistral,
    kPhi3, kQwen2, kQwen3, kRoberta, kSmolLm3, kT5;
std::span<const Family* const> families();

// The family of these files. null, and a problem that lists the known ones: there is none.
const Family* family_of(const formats::Checkpoint& files, std::vector<Problem>& problems);

const Names& names_of(const Family& family, const formats::Checkpoint& files);
// `pattern` with its prefix and its layer put in.
std::string tensor_name(std::string_view pattern, std::string_view prefix, index_t layer);
// Whether `name` is one that `pattern` (of Names::left) means.
bool is_left(std::string_view name, std::string_view pattern, std::string_view prefix);
// What @ stands for in these files.
const char* prefix_of(const Names& names, const formats::Checkpoint& files);

// What every llama-like decoder is named like: in safetensors, and in GGUF.
extern const Names kDecoderNames, kDecoderGgufNames;

}  // namespace glasshead::model
