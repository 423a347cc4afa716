#include "wire/provenance.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "wire/document_tables.h"

namespace glasshead::wire {
namespace {

bool is_one_of(std::string_view id, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names)
    if (id == name) return true;
  return false;
}

class Origins {
 public:
  Origins(const Trace& trace, const Step& step, index_t head) : trace_(trace), step_(step) {
    const TraceTensor* value = trace.find(step.tap);
    if (value != nullptr && head >= 0) heads_ = matrices_of(value->shape).count;
    head_ = head;
  }

  void add(std::size_t read, index_t row, index_t column) {
    if (read >= step_.reads.size()) return;
    const TraceTensor* tensor = trace_.find(step_.reads[read]);
    if (tensor == nullptr) return;
    Region region{step_.reads[read], -1, row, column};
    if (tensor->shape.size() < 2) region.row = region.row < 0 ? -1 : 0;
    // Query heads that share a key/value head are neighbours.
    if (tensor->shape.size() > 2)
      region.head = head_ < 0 ? 0 : head_ * matrices_of(tensor->shape).count / heads_;
    regions.push_back(std::move(region));
  }

  std::vector<Region> regions;

 private:
  const Trace& trace_;
  const Step& step_;
  index_t head_ = -1, heads_ = 1;
};

// x·W + b; without W its input passes through.
void project(Origins& from, const Trace& trace, const Step& step, index_t row, index_t column) {
  bool has_matrix = false;
  for (std::size_t read = 1; read < step.reads.size(); ++read) {
    const TraceTensor* tensor = trace.find(step.reads[read]);
    const bool is_matrix = tensor != nullptr && tensor->shape.size() > 1;
    has_matrix = has_matrix || is_matrix;
    from.add(read, is_matrix ? -1 : 0, column);
  }
  from.add(0, row, has_matrix ? -1 : column);
}

}  // namespace

std::vector<Region> provenance(const Trace& trace, const std::string& tap, index_t head,
                               index_t row, index_t column) {
  const Step* step = nullptr;
  for (const TracedStep& traced : trace.steps)
    if (traced.step.tap == tap) step = &traced.step;
  if (step == nullptr || step->op == nullptr) return {};
  const std::string_view op = step->op->id;
  Origins from(trace, *step, head);
  if (is_one_of(op, {"q", "k", "v", "projected", "ff_up", "ff_gate", "ff_out", "logits"})) {
    project(from, trace, *step, row, column);
  } else if (op == "scores") {
    from.add(0, row, -1);
    from.add(1, column, -1);
  } else if (is_one_of(op, {"scaled", "capped", "biased", "masked", "relu", "gelu", "gelu_tanh",
                            "silu", "quick_gelu", "tanh", "dropped"})) {
    from.add(0, row, column);
  } else if (op == "exp" || op == "weights") {
    from.add(0, row, -1);
  } else if (op == "out") {
    from.add(0, row, -1);
    from.add(1, -1, column);
  } else if (op == "times" || op == "residual") {
    from.add(0, row, column);
    from.add(1, row, column);
  } else if (is_one_of(op, {"layer_norm", "rms_norm", "probabilities"})) {
    from.add(0, row, -1);
  } else if (op == "logits_tied") {
    from.add(0, row, -1);
    from.add(1, column, -1);
  }
  return from.regions;
}

std::vector<Region> fed_by(const Trace& trace, const std::string& tap, index_t head, index_t row,
                           index_t column) {
  const auto holds = [&](const Region& region) {
    return region.tap == tap && (region.head < 0 || region.head == head) &&
           (region.row < 0 || region.row == row) && (region.column < 0 || region.column == column);
  };
  std::vector<Region> fed;
  for (const TracedStep& traced : trace.steps) {
    const std::vector<std::string>& reads = traced.step.reads;
    if (std::find(reads.begin(), reads.end(), tap) == reads.end()) continue;
    const std::vector<index_t>& shape = traced.value.shape;
    const Matrices matrices = matrices_of(shape);
    for (index_t m = 0; m < matrices.count; ++m)
      for (index_t i = 0; i < matrices.rows; ++i)
        for (index_t j = 0; j < matrices.columns; ++j) {
          const Region entry{traced.step.tap, shape.size() > 2 ? m : -1, i, j};
          const std::vector<Region> from =
              provenance(trace, entry.tap, entry.head, entry.row, entry.column);
          if (std::any_of(from.begin(), from.end(), holds)) fed.push_back(entry);
        }
  }
  return fed;
}

}  // namespace glasshead::wire
