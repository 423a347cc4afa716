// Changes to a run, worked out for one model: what each layer's attention may read beside its own
// mask, and which numbers are put in the place of others.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "glasshead/mask.h"
#include "glasshead/model.h"
#include "model/places.h"
#include "model/watch.h"

namespace glasshead::model {

struct LayerCalls;

class Changes {
 public:
  Changes() = default;
  // Everything that the model has no place for is a problem.
  Changes(const std::vector<Change>& changes, const Model& model, std::vector<Problem>& problems);

  bool is_empty() const { return hidden_.empty() && patches_.empty(); }
  // Narrows the masks of self-attention.
  void narrow(std::vector<LayerCalls>& calls) const;
  // Puts numbers in place of `rows` [rows of the pass, n]; groups: heads that a row falls into.
  void apply(const Place& place, const View<float, 2>& rows, const std::vector<Span>& spans,
             index_t groups) const;

 private:
  struct Values {
    index_t head = -1;          // of a place that has heads: this one alone; -1: the whole row
    index_t position = -1;      // of the first row of `values`; -1: every row is the one given
    std::vector<float> values;  // [rows, width]
    index_t width = 0;
  };
  void add(const ReplaceHead& change, const Model& model, std::vector<Problem>& problems);
  void add(const Patch& change, const Model& model, std::vector<Problem>& problems);
  void add(const HidePairs& change, const Model& model, std::vector<Problem>& problems);

  std::vector<HidePairs> hidden_;
  std::map<std::string, std::vector<Values>> patches_;
};

}  // namespace glasshead::model
