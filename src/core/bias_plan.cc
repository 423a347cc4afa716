#include "core/bias_plan.h"

#include <algorithm>
#include <cstddef>
#include <variant>

namespace glasshead {
namespace {

// One term at query head h, position p, key j, and the same for a run of keys.
struct AlibiRow {
  double slope;
  Bias::AlibiForm form;
  index_t position;
  double at(index_t j) const {
    if (form == Bias::AlibiForm::key_index) return slope * static_cast<double>(j);
    const index_t distance = position > j ? position - j : j - position;
    return -slope * static_cast<double>(distance);
  }
};

struct T5Row {
  const Bias::T5* t5;
  index_t h, position;
  double at(index_t j) const {
    const index_t bucket = Bias::t5_bucket(j - position, *t5);
    return t5->table[static_cast<std::size_t>(bucket * t5->heads + h)];
  }
};

struct DenseRow {
  BroadcastRow row;
  double at(index_t j) const { return row.load(j); }
};

struct Query {
  index_t b, h, i, position;
};

AlibiRow row_of(const Bias::Alibi& alibi, const Query& query) {
  return {alibi.slopes[static_cast<std::size_t>(query.h)], alibi.form, query.position};
}
T5Row row_of(const Bias::T5& t5, const Query& query) { return {&t5, query.h, query.position}; }
DenseRow row_of(const Bias::Dense& dense, const Query& query) {
  return {broadcast_row(dense.values, query.b, query.h, query.i)};
}

}  // namespace

BiasPlan::BiasPlan(const AttentionOptions& options, const PairShape& shape)
    : bias_(options.bias),
      query_start_(resolve_query_start(options.query_start, shape.q_len, shape.kv_len)) {}

template <class T>
T BiasPlan::at(index_t b, index_t h, index_t i, index_t j) const {
  const Query query{b, h, i, query_start_ + i};
  T sum = 0;
  for (const Bias::Term& term : bias_.terms()) {
    sum += std::visit([&](const auto& t) { return static_cast<T>(row_of(t, query).at(j)); }, term);
  }
  return sum;
}

template <class T>
void BiasPlan::add_row(index_t b, index_t h, index_t i, KeyRange keys, T* scores) const {
  if (is_empty() || keys.is_empty()) return;
  const Query query{b, h, i, query_start_ + i};
  constexpr index_t kRun = 128;
  for (index_t begin = keys.begin; begin < keys.end; begin += kRun) {
    const index_t end = std::min(begin + kRun, keys.end);
    T sum[kRun] = {};
    for (const Bias::Term& term : bias_.terms()) {
      std::visit(
          [&](const auto& t) {
            const auto row = row_of(t, query);
            for (index_t j = begin; j < end; ++j) sum[j - begin] += static_cast<T>(row.at(j));
          },
          term);
    }
    for (index_t j = begin; j < end; ++j) scores[j] += sum[j - begin];
  }
}

template float BiasPlan::at(index_t, index_t, index_t, index_t) const;
template double BiasPlan::at(index_t, index_t, index_t, index_t) const;
template void BiasPlan::add_row(index_t, index_t, index_t, KeyRange, float*) const;
template void BiasPlan::add_row(index_t, index_t, index_t, KeyRange, double*) const;

}  // namespace glasshead
