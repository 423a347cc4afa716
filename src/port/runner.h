// Runs a model in parts, each from rows that are given, with mistakes made on the way.
#pragma once

#include <vector>

#include "glasshead/port.h"
#include "model/model_impl.h"
#include "model/places.h"
#include "port/subject.h"

namespace glasshead::port {

// The numbers of a part that are asked for or that edits read, under the whole model's names.
struct PieceRun {
  Numbers numbers;
  FileTensor rows;      // what the next part reads; of an encoder's end, what cross-attention reads
  NamedTensors before;  // as Placed has them
  std::vector<std::string> not_compared;
};

class Runner {
 public:
  Runner(const Model& model, const PortText& text, const Context& context);

  const std::vector<Piece>& pieces() const { return pieces_; }  // in the order of computation
  const std::vector<model::NamedPlace>& places() const { return places_; }
  std::size_t piece_of(const model::NamedPlace& place) const;
  index_t tokens(bool is_encoder) const;
  const PortText& text() const { return text_; }

  struct Call {
    const Piece& piece;
    const FileTensor* rows = nullptr;    // that enter; null: of the embedding, which reads ids
    const FileTensor* memory = nullptr;  // the encoder's rows, for the decoder's pieces
    std::vector<const Edit*> edits = {};
    std::vector<Change> changes = {};     // numbers that are known, under the part's names
    std::vector<std::string> known = {};  // what they are called there
    const std::vector<std::string>* wanted = nullptr;  // weights and lse to look at, whole names
  };
  PieceRun run(const Call& call) const;

  // The piece as a subject to list mistakes of: `use` gets it.
  void look(const Piece& piece, const std::function<void(const Subject&)>& use) const;

  // "decoder.7.self.q" of the model <-> "decoder.0.self.q" of its part.
  std::string inner_name(const Piece& piece, const std::string& name) const;

 private:
  void cut(const Piece& piece, Model::Impl& out) const;
  Numbers numbers_of(const Call& call, const Model& model,
                     const std::vector<Change>& changes) const;

  Model model_;
  PortText text_;
  const Context& context_;
  std::vector<Piece> pieces_;
  std::vector<model::NamedPlace> places_;
};

}  // namespace glasshead::port
