// What a mistake is made in: one part of a model, about to be run by itself.
//
// A model is run in parts, each of them a small Model of its own that shares the weights: the
// embedding of a stack, each of its layers, its end (final norm and logits). A mistake is an edit
// of such a part before it runs, or of numbers on its way.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "glasshead/model.h"
#include "model/weights.h"

namespace glasshead::port {

enum class Part { embedding, layer, end };

struct Piece {
  Part part = Part::embedding;
  bool is_encoder = false;  // which stack
  index_t layer = -1;
};
std::string name(const Piece& piece);  // "layer 2", "the embedding", "encoder layer 0", "the end"

// A piece as it will run. Embedding: the stack has no layers; layer: exactly one; end: none.
struct Subject {
  Piece piece;
  model::Description& description;
  model::Weights& weights;
  const model::Stack& whole;  // the stack that the piece was taken from, unedited
  // Places whose numbers are theirs already, since they are right: "decoder.0.self.q".
  std::vector<std::string> known = {};

  model::Stack& stack() const {
    return piece.is_encoder ? *description.encoder : *description.decoder;
  }
  model::StackWeights& stack_weights() const {
    return piece.is_encoder ? weights.encoder : weights.decoder;
  }
  model::Layer& layer() const { return stack().layers.front(); }
  model::LayerWeights& layer_weights() const { return stack_weights().layers.front(); }
  // The layer as the model has it.
  const model::Layer& original() const {
    return whole.layers[static_cast<std::size_t>(piece.layer)];
  }
  bool knows(const std::string& name) const {
    return std::find(known.begin(), known.end(), name) != known.end();
  }
  // The name of a place of this layer among the numbers of its run: "self.q" gives
  // "decoder.0.self.q".
  std::string place(const char* point) const {
    return std::string(piece.is_encoder ? "encoder" : "decoder") + ".0." + point;
  }
};

// The numbers of a run, by name.
class Numbers {
 public:
  NamedTensors all;
  const FileTensor& at(const std::string& name) const;
  bool has(const std::string& name) const;
  void set(const std::string& name, FileTensor tensor);
};

// What is put on the way: changes for the run, and numbers that are then said to have been seen
// (attention weights, which no change can replace).
struct Placed {
  std::vector<Change> changes;
  NamedTensors seen;
  // What a place held before a change there: a program may keep its numbers on either side of what
  // it does to them, so they are right if either is.
  NamedTensors before;
  // Places whose numbers are not what they are called: a change there does what there is no other
  // way to do, so they are not compared.
  std::vector<std::string> not_compared;
};

struct Edit {
  std::function<void(const Subject&)> change = nullptr;  // null: none
  // From the numbers of the run with `change` made; the part is then run again.
  std::function<Placed(const Subject&, const Numbers&)> place = nullptr;
};

// One mistake with its parameter.
struct Variant {
  std::string parameter;
  Edit edit;
};

struct Hypothesis {
  const char* id;
  const char* title;  // "rotary pairs laid out the other way"
  const char* done;   // what their program does
  const char* cause;  // what to look for
  const char* fix;
  // The ways to make it in this part, as the model has it; none: it can't be made there.
  std::vector<Variant> (*variants)(const Subject&);
};

// All of them, the likelier of two alike first.
std::vector<const Hypothesis*> hypotheses();

}  // namespace glasshead::port
