// What models are, and cost: ModelFacts and its parts, read-only.
#include <string>
#include <utility>
#include <vector>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "glasshead/model_facts.h"
#include "python/native/calls.h"

namespace glasshead::python {
namespace {

// A class whose members are read, and shown by repr as the arguments of a call.
template <class T>
class Facts {
 public:
  Facts(nb::module_& module, const char* name, const char* words)
      : class_(module, name, words), name_(name) {}

  template <class Member>
  Facts& has(const char* name, Member T::* member, const char* words = nullptr) {
    if (words != nullptr)
      class_.def_ro(name, member, words);
    else
      class_.def_ro(name, member);
    names_.emplace_back(name);
    return *this;
  }
  nb::class_<T>& shown() {
    class_.def("__repr__", [name = name_, names = names_](nb::handle self) {
      std::string text = "glasshead." + name + "(";
      for (const std::string& member : names)
        text += (member == names.front() ? "" : ", ") + member + "=" +
                nb::repr(self.attr(member.c_str())).c_str();
      return text + ")";
    });
    return class_;
  }

 private:
  nb::class_<T> class_;
  std::string name_;
  std::vector<std::string> names_;
};

void add_parts(nb::module_& module) {
  Facts<AttentionFacts>(module, "AttentionFacts", "One layer's attention.")
      .has("heads", &AttentionFacts::heads)
      .has("kv_heads", &AttentionFacts::kv_heads,
           "heads / kv_heads query heads share a key/value head.")
      .has("d_k", &AttentionFacts::d_k)
      .has("d_v", &AttentionFacts::d_v)
      .has("scale", &AttentionFacts::scale)
      .has("softcap", &AttentionFacts::softcap, "0: none.")
      .has("is_causal", &AttentionFacts::is_causal)
      .has("window", &AttentionFacts::window, "Keys that a query sees, its own included; 0: all.")
      .has("positions", &AttentionFacts::positions, "\"rotary, base 10000\".")
      .has("has_qk_norm", &AttentionFacts::has_qk_norm, "Each head of q and of k is normalised.")
      .shown();
  Facts<LayerFacts>(module, "LayerFacts", "One layer.")
      .has("self", &LayerFacts::self, "Self-attention.")
      .has("cross", &LayerFacts::cross,
           "Attention over the encoder's output; None where there is none.")
      .has("d_ff", &LayerFacts::d_ff)
      .has("activation", &LayerFacts::activation, "\"silu\".")
      .has("is_gated", &LayerFacts::is_gated)
      .shown();
  Facts<StackFacts>(module, "StackFacts", "The layers of an encoder or a decoder.")
      .has("name", &StackFacts::name, "\"encoder\" or \"decoder\".")
      .has("norm", &StackFacts::norm, "\"RMSNorm\".")
      .has("eps", &StackFacts::eps)
      .has("placement", &StackFacts::placement, "Of the norms: \"pre\", \"post\" or \"sandwich\".")
      .has("layers", &StackFacts::layers)
      .has("distinct_layers", &StackFacts::distinct_layers,
           "Fewer than there are layers where they share weights.")
      .shown();
  Facts<StoredFacts>(module, "StoredFacts", "Weights of one stored type.")
      .has("type", &StoredFacts::type, "\"q4_1\".")
      .has("tensors", &StoredFacts::tensors)
      .has("parameters", &StoredFacts::parameters)
      .has("bytes", &StoredFacts::bytes)
      .shown();
}

void add_model(nb::module_& module) {
  nb::class_<ModelFacts> facts =
      Facts<ModelFacts>(module, "ModelFacts", "What a model is: see glasshead.model_facts.")
          .has("name", &ModelFacts::name, "The path, or the configuration's name.")
          .has("format", &ModelFacts::format,
               "\"safetensors\" or \"gguf\"; empty: a configuration without files.")
          .has("family", &ModelFacts::family, "\"llama\".")
          .has("kind", &ModelFacts::kind, "\"decoder\", \"encoder\" or \"encoder-decoder\".")
          .has("vocab", &ModelFacts::vocab)
          .has("d_model", &ModelFacts::d_model)
          .has("context_length", &ModelFacts::context_length, "What it was made for; 0: not said.")
          .has("position_limit", &ModelFacts::position_limit,
               "Tokens past it have no position; 0: none.")
          .has("learned_positions", &ModelFacts::learned_positions,
               "Rows of the table at the input; 0: there is none.")
          .has("has_logits", &ModelFacts::has_logits, "It predicts tokens.")
          .has("has_tied_head", &ModelFacts::has_tied_head, "By the token table, read as a matrix.")
          .has("stacks", &ModelFacts::stacks, "Encoder, decoder.")
          .has("parameters", &ModelFacts::parameters, "Numbers; a tied or shared matrix once.")
          .has("stored", &ModelFacts::stored, "By type, most bytes first; empty without files.")
          .has("bytes", &ModelFacts::bytes, "Of the weights as stored; without files: in 16 bits.")
          .shown();
  facts.def(
      "cost", [](const ModelFacts& self, index_t tokens) { return model_cost(self, tokens); },
      nb::arg("tokens"), "What so many tokens cost; of an encoder-decoder, as many on both sides.");
  Facts<ModelCost>(module, "ModelCost", "Bytes, and operations: a multiply-add counts as two.")
      .has("tokens", &ModelCost::tokens)
      .has("cache_bytes", &ModelCost::cache_bytes, "Keys and values of all tokens, in f32.")
      .has("cache_bytes_windows", &ModelCost::cache_bytes_windows,
           "Of the tokens that windows still show.")
      .has("cache_bytes_per_head", &ModelCost::cache_bytes_per_head,
           "If every query head had keys and values of its own.")
      .has("attention_flops", &ModelCost::attention_flops,
           "Reading the whole text: q·k and weights·v over the pairs that masks show.")
      .has("matrix_flops", &ModelCost::matrix_flops,
           "Reading the whole text: the layers' matrices, and the logits of one token.")
      .has("attention_flops_next", &ModelCost::attention_flops_next, "One more token; decoders.")
      .has("matrix_flops_next", &ModelCost::matrix_flops_next, "One more token; decoders.")
      .has("weights_bytes", &ModelCost::weights_bytes,
           "If every head's weights [tokens, tokens] were stored, in f32.")
      .shown();
  Facts<FamilyFacts>(module, "FamilyFacts", "A family of models that can be loaded.")
      .has("name", &FamilyFacts::name, "\"gemma2\".")
      .has("model_types", &FamilyFacts::model_types, "As config.json names it.")
      .has("gguf", &FamilyFacts::gguf, "As GGUF files name it; empty: not read from them.")
      .has("examples", &FamilyFacts::examples, "Published models.")
      .has("norm", &FamilyFacts::norm)
      .has("positions", &FamilyFacts::positions)
      .has("attention", &FamilyFacts::attention)
      .has("feed_forward", &FamilyFacts::feed_forward)
      .shown();
}

}  // namespace

void add_facts(nb::module_& module) {
  add_parts(module);
  add_model(module);
  module.def(
      "model_facts",
      [](const std::string& path_or_name) {
        const nb::gil_scoped_release others_may_run;
        return model_facts(path_or_name);
      },
      nb::arg("path_or_name"));
  module.def("known_models", &known_models,
             "The published configurations that model_facts knows by name: they need no files.");
  module.def("model_families", &model_families, "The families of models that can be loaded.");
}

}  // namespace glasshead::python
