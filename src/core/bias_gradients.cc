#include "core/bias_gradients.h"

#include <algorithm>
#include <cstddef>
#include <variant>

#include "core/rows.h"

namespace glasshead {
namespace {

constexpr index_t kMostParts = 64;  // bounds the tables' memory; enough for the threads to share

index_t ceil_div(index_t a, index_t b) { return (a + b - 1) / b; }

// Of row-major sums of this shape, seen as a tensor broadcast to the pairs.
PairStrides sum_strides(const std::array<index_t, 4>& shape) {
  Broadcast sums;
  sums.rank = 4;
  sums.shape = shape;
  sums.strides = row_major(shape);
  return PairStrides(sums);
}

}  // namespace

BiasGradients::BiasGradients(const AttentionOptions& options, const PairShape& shape,
                             const std::vector<MutableTensor<4>>& wanted)
    : query_start_(resolve_query_start(options.query_start, shape.q_len, shape.kv_len)) {
  const index_t blocks = ceil_div(shape.kv_len, kSumBlock);
  blocks_of_part_ = std::max<index_t>(1, ceil_div(blocks, kMostParts));
  parts_ = std::max<index_t>(1, ceil_div(blocks, blocks_of_part_));
  const std::vector<Bias::Term>& terms = options.bias.terms();
  const auto is_wanted_at = [&](std::size_t n) {
    return n < wanted.size() && wanted[n].data != nullptr;
  };
  for (std::size_t n = 0; n < terms.size(); ++n) {
    const auto* dense = std::get_if<Bias::Dense>(&terms[n]);
    if (is_wanted_at(n) && dense != nullptr) add_dense(wanted[n]);
  }
  for (const Dense& dense : dense_) {
    if (dense.strides.j != 0 || shape.kv_len <= 1) continue;
    parts_ = 1;
    blocks_of_part_ = std::max<index_t>(1, blocks);
  }
  for (std::size_t n = 0; n < terms.size(); ++n) {
    const auto* t5 = std::get_if<Bias::T5>(&terms[n]);
    if (is_wanted_at(n) && t5 != nullptr) add_table(*t5, shape, wanted[n]);
  }
}

void BiasGradients::add_dense(const MutableTensor<4>& to) {
  const auto size = to.shape[0] * to.shape[1] * to.shape[2] * to.shape[3];
  dense_.push_back(
      {sum_strides(to.shape), std::vector<double>(static_cast<std::size_t>(size)), &to});
}

void BiasGradients::add_table(const Bias::T5& t5, const PairShape& shape,
                              const MutableTensor<4>& to) {
  Table table;
  table.entries = t5.buckets * t5.heads;
  table.heads = t5.heads;
  table.first = -(query_start_ + shape.q_len - 1);
  const index_t last = shape.kv_len - 1 - query_start_;
  for (index_t at = table.first; at <= last; ++at)
    table.bucket_of.push_back(Bias::t5_bucket(at, t5));
  table.sums.resize(static_cast<std::size_t>(parts_ * table.entries));
  table.to = &to;
  tables_.push_back(std::move(table));
}

void BiasGradients::add_to_part(index_t part, const std::array<index_t, 4>& pair, double ds) {
  const auto [b, h, i, j] = pair;
  for (Dense& dense : dense_) {
    const PairStrides& s = dense.strides;
    dense.sums[static_cast<std::size_t>(b * s.b + h * s.h + i * s.i + j * s.j)] += ds;
  }
  for (Table& table : tables_) {
    const index_t relative = j - (query_start_ + i);
    const index_t bucket = table.bucket_of[static_cast<std::size_t>(relative - table.first)];
    table.sums[static_cast<std::size_t>(part * table.entries + bucket * table.heads + h)] += ds;
  }
}

template <class T>
void BiasGradients::add_tile(const PanelRows& rows, KeyRange keys, index_t lanes, const T* ds,
                             index_t part) {
  for (index_t r = 0; r < rows.count; ++r) {
    for (index_t j = keys.begin; j < keys.end; ++j) {
      add_to_part(part, {rows.b, rows.h[r], rows.i[r], j},
                  static_cast<double>(ds[(j - keys.begin) * lanes + r]));
    }
  }
}
template void BiasGradients::add_tile(const PanelRows&, KeyRange, index_t, const float*, index_t);
template void BiasGradients::add_tile(const PanelRows&, KeyRange, index_t, const double*, index_t);

void BiasGradients::store() const {
  for (const Dense& dense : dense_) {
    const std::array<index_t, 4>& shape = dense.to->shape;
    std::size_t n = 0;
    for (index_t b = 0; b < shape[0]; ++b) {
      for (index_t h = 0; h < shape[1]; ++h) {
        for (index_t i = 0; i < shape[2]; ++i) {
          for (index_t j = 0; j < shape[3]; ++j)
            dense.to->store_at({b, h, i, j}, canonical(dense.sums[n++]));
        }
      }
    }
  }
  for (const Table& table : tables_) {
    for (index_t n = 0; n < table.entries; ++n) {
      double sum = 0;
      for (index_t part = 0; part < parts_; ++part)
        sum += table.sums[static_cast<std::size_t>(part * table.entries + n)];
      table.to->store_at({0, 0, n / table.heads, n % table.heads}, canonical(sum));
    }
  }
}

}  // namespace glasshead
