#include "core/plan_of_batch.h"

#include <algorithm>
#include <variant>

namespace glasshead {
namespace {

std::vector<index_t> part_of(const std::vector<index_t>& all, index_t begin, index_t count) {
  return {all.data() + begin, all.data() + begin + count};
}

std::vector<index_t> one_of(const std::vector<index_t>& lengths, index_t b) {
  return lengths.size() == 1 ? lengths : part_of(lengths, b, 1);
}

Broadcast one_of(Broadcast values, index_t b) {
  if (values.rank < 4 || values.shape[0] == 1) return values;
  values.data = static_cast<const char*>(values.data) +
                b * values.strides[0] * static_cast<index_t>(size_of(values.dtype));
  values.shape[0] = 1;
  return values;
}

// The part of a mask, or the term of a bias, that speaks of batch entry b.
struct PartOfEntry {
  index_t b;
  PairShape shape;
  Mask::Part operator()(const Mask::KeyLengths& part) const {
    return Mask::KeyLengths{one_of(part.lengths, b)};
  }
  Mask::Part operator()(const Mask::Prefix& part) const {
    return Mask::Prefix{one_of(part.lengths, b)};
  }
  Mask::Part operator()(const Mask::Segments& part) const {
    if (part.batch == 1) return part;
    return Mask::Segments{1, part_of(part.query_ids, b * shape.q_len, shape.q_len),
                          part_of(part.key_ids, b * shape.kv_len, shape.kv_len)};
  }
  Mask::Part operator()(const Mask::Explicit& part) const {
    return Mask::Explicit{one_of(part.allowed, b)};
  }
  template <class Same>
  Mask::Part operator()(const Same& part) const {
    return part;
  }
};

}  // namespace

BatchEntry entry_of(const AttentionOptions& options, const PairShape& shape, index_t b,
                    index_t start) {
  BatchEntry entry;
  entry.shape = shape;
  entry.shape.batch = 1;
  entry.shape.first_entry = b;
  entry.options.query_start = start;
  for (const Mask::Part& part : options.mask.parts())
    entry.options.mask.parts().push_back(std::visit(PartOfEntry{b, shape}, part));
  for (const Bias::Term& term : options.bias.terms()) {
    const auto* dense = std::get_if<Bias::Dense>(&term);
    entry.options.bias.terms().push_back(
        dense == nullptr ? term : Bias::Term(Bias::Dense{one_of(dense->values, b)}));
  }
  return entry;
}

PlanOfBatch::PlanOfBatch(const AttentionOptions& options, const std::vector<index_t>& starts,
                         const PairShape& shape) {
  const auto add = [&](BatchEntry entry) {
    entries_.push_back(std::make_unique<BatchEntry>(std::move(entry)));
    plans_.push_back(std::make_unique<TilePlan>(entries_.back()->options, entries_.back()->shape));
  };
  if (starts.empty()) {
    plans_.push_back(std::make_unique<TilePlan>(options, shape));
  } else if (std::all_of(starts.begin(), starts.end(),
                         [&](index_t start) { return start == starts[0]; })) {
    BatchEntry all{options, shape};
    all.options.query_start = starts[0];
    add(std::move(all));
  } else {
    for (std::size_t b = 0; b < starts.size(); ++b)
      add(entry_of(options, shape, static_cast<index_t>(b), starts[b]));
  }
}

}  // namespace glasshead
