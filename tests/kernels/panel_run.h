// Rows of attention through a kernel set's six functions, as the engine calls them: panels of
// rows, blocks of 128 keys, chunks of 1,024, the tree of chunks. What the contract of kernel_set.h
// leaves open is drawn at random: layouts, pieces, vectors in use, blocks that no row sees.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "guarded.h"
#include "kernels/kernel_set.h"
#include "random_rows.h"

namespace glasshead::test {

// Vectors as stored: rows apart, elements apart, backwards, or in panels of 16, transposed.
template <class T>
class StoredRows {
 public:
  StoredRows(Random& random, const std::vector<T>& numbers, index_t rows, index_t size)
      : size_(size), in_panels_(random.one_in(3)) {
    const auto edge = random.one_in(2) ? Edge::begin : Edge::end;
    if (in_panels_) {
      memory_ = std::make_unique<Guarded<T>>((rows + 15) / 16 * 16 * size, edge);
      row_ = 1;
      step_ = 16;
    } else {
      step_ = random.one_in(3) ? random.between(2, 3) : 1;
      row_ = random.one_in(3) ? size * step_ + random.below(5) : size * step_;
      if (random.one_in(4)) {  // [size, rows]
        row_ = 1;
        step_ = rows;
      }
      const index_t count = rows == 0 || size == 0 ? 0 : (rows - 1) * row_ + (size - 1) * step_ + 1;
      memory_ = std::make_unique<Guarded<T>>(count, edge);
      if (count > 0 && random.one_in(4)) {  // the last row first
        first_ = (rows - 1) * row_;
        row_ = -row_;
      }
    }
    for (index_t n = 0; n < rows; ++n)
      for (index_t e = 0; e < size; ++e)
        const_cast<T*>(at(n).data)[e * step_] = numbers[static_cast<std::size_t>(n * size + e)];
  }

  // Row n and those after it; in_one(n) of them lie one stride apart.
  StridedRows<T> at(index_t n) const {
    const index_t offset = in_panels_ ? n / 16 * 16 * size_ + n % 16 : first_ + n * row_;
    return {memory_->data() + offset, row_, step_};
  }
  index_t in_one(index_t n) const { return in_panels_ ? 16 - n % 16 : kBlock; }
  index_t step() const { return step_; }

 private:
  index_t size_, row_ = 0, step_ = 1, first_ = 0;
  bool in_panels_;
  std::unique_ptr<Guarded<T>> memory_;
};

template <class T>
struct Result {
  std::vector<T> out;       // [rows, d_v]
  std::vector<T> max, sum;  // [rows]
};

// One panel: rows [first, first + count) of `rows`.
template <class T>
class PanelRun {
 public:
  PanelRun(const Kernels<T>& kernels, const Rows<T>& rows, const StoredRows<T>& k,
           const StoredRows<T>& v, index_t first, index_t count, std::uint64_t seed)
      : kernels_(kernels), rows_(rows), k_(k), v_(v), first_(first), count_(count), random_(seed) {
    const index_t least = (count + kernels.width - 1) / kernels.width;
    vectors_ = random_.between(least, kernels.lanes / kernels.width);
    q_ = panel(rows.d_k);
    scores_ = panel(kBlock);
    new_max_ = panel(1);
    alpha_ = panel(1);
    if (rows.has_bias) bias_ = panel(kBlock);
  }

  void run(Result<T>& result) {
    pack();
    std::vector<std::unique_ptr<State>> nodes;
    for (index_t begin = 0; begin < rows_.kv_len; begin += kChunk) {
      nodes.push_back(chunk(begin, std::min(rows_.kv_len, begin + kChunk)));
      for (index_t bits = begin / kChunk; (bits & 1) != 0; bits >>= 1) merge_last_two(nodes);
    }
    while (nodes.size() > 1) merge_last_two(nodes);
    if (nodes.empty() || !nodes[0]) {
      nodes.clear();
      nodes.push_back(fresh());
    }
    finish(*nodes[0], result);
  }

 private:
  using Panel = std::unique_ptr<Guarded<T>>;
  struct State {
    Panel max, sum, a;
    PanelState<T> view() const { return {max->data(), sum->data(), a->data()}; }
  };

  Edge edge() { return random_.one_in(2) ? Edge::begin : Edge::end; }
  Panel panel(index_t n) {
    return std::make_unique<Guarded<T>>(n * kernels_.lanes, edge(), std::size_t{64});
  }

  std::unique_ptr<State> fresh() {
    auto state = std::make_unique<State>(State{panel(1), panel(1), panel(rows_.d_v)});
    for (index_t lane = 0; lane < kernels_.lanes; ++lane) {
      (*state->max)[lane] = Arithmetic<T>::kStart;
      (*state->sum)[lane] = 0;
      for (index_t d = 0; d < rows_.d_v; ++d) (*state->a)[d * kernels_.lanes + lane] = 0;
    }
    return state;
  }

  void pack() {
    std::vector<T> numbers(rows_.q.begin() + first_ * rows_.d_k,
                           rows_.q.begin() + (first_ + count_) * rows_.d_k);
    const StoredRows<T> stored(random_, numbers, count_, rows_.d_k);
    std::vector<const T*> starts;
    for (index_t r = 0; r < count_; ++r) starts.push_back(stored.at(r).data);
    kernels_.pack(
        {starts.data(), stored.step(), count_, rows_.d_k, rows_.scale, vectors_, q_->data()});
  }

  // A bit per row of the panel; what stands in the other lanes' bits is anything.
  std::uint32_t bits(const std::vector<std::uint8_t>& of_pair, index_t key) {
    auto word = static_cast<std::uint32_t>(random_.bits());
    for (index_t r = 0; r < count_; ++r) {
      const std::uint32_t bit =
          of_pair[static_cast<std::size_t>((first_ + r) * rows_.kv_len + key)];
      word = (word & ~(std::uint32_t{1} << r)) | (bit << r);
    }
    return word;
  }
  bool is_seen(index_t key) {
    for (index_t r = 0; r < count_; ++r) {
      if (rows_.allowed[static_cast<std::size_t>((first_ + r) * rows_.kv_len + key)] != 0)
        return true;
    }
    return false;
  }
  bool is_seen_by_all(index_t key) {
    for (index_t r = 0; r < count_; ++r) {
      if (rows_.allowed[static_cast<std::size_t>((first_ + r) * rows_.kv_len + key)] == 0)
        return false;
    }
    return true;
  }
  bool is_finite(index_t key) {
    return kernels_.are_finite({rows_.v.data() + key * rows_.d_v, rows_.d_v, 1}, 1, rows_.d_v);
  }

  std::unique_ptr<State> chunk(index_t begin, index_t end) {
    std::unique_ptr<State> state;
    for (index_t at = begin; at < end; at += kBlock) {
      index_t first = at, last = std::min(end, at + kBlock);
      // Keys that no row sees at either end of a block may be left out, and whole blocks of them.
      while (first < last && !is_seen(first) && !random_.one_in(8)) ++first;
      while (first < last && !is_seen(last - 1) && !random_.one_in(8)) --last;
      if (first == last) continue;
      if (!state) state = fresh();
      block(first, last, *state);
    }
    return state;
  }

  // Pieces of [begin, end) whose keys lie one stride apart, cut anywhere; some are empty.
  template <class F>
  void pieces(const StoredRows<T>& stored, index_t begin, index_t end, const F& f) {
    for (index_t at = begin; at < end;) {
      index_t size = std::min(end - at, stored.in_one(at));
      if (random_.one_in(3)) size = random_.below(size + 1);
      f(at, size);
      at += size;
    }
  }

  void block(index_t begin, index_t end, State& state) {
    const index_t lanes = kernels_.lanes;
    std::vector<std::uint32_t> allowed, kept;
    bool sees_all = true, is_all_finite = true;
    for (index_t key = begin; key < end; ++key) {
      allowed.push_back(bits(rows_.allowed, key));
      sees_all = sees_all && is_seen_by_all(key);
      is_all_finite = is_all_finite && is_finite(key);
      if (rows_.has_dropout) kept.push_back(bits(rows_.kept, key));
      if (!rows_.has_bias) continue;
      for (index_t r = 0; r < lanes; ++r)
        (*bias_)[(key - begin) * lanes + r] =
            r < count_ ? rows_.bias[static_cast<std::size_t>((first_ + r) * rows_.kv_len + key)]
                       : std::numeric_limits<T>::quiet_NaN();
    }
    Guarded<std::uint32_t> mask(allowed, edge()), keeps(kept, edge());
    const std::uint32_t* given = sees_all && random_.one_in(2) ? nullptr : mask.data();
    for (index_t lane = 0; lane < lanes; ++lane) (*new_max_)[lane] = (*state.max)[lane];
    pieces(k_, begin, end, [&](index_t at, index_t size) {
      const index_t n = at - begin;
      kernels_.scores({q_->data(), rows_.d_k, k_.at(at), size, rows_.softcap,
                       rows_.has_bias ? bias_->data() + n * lanes : nullptr,
                       given == nullptr ? nullptr : given + n, vectors_,
                       scores_->data() + n * lanes, new_max_->data()});
    });
    kernels_.softmax({scores_->data(), random_.one_in(2) ? begin : begin % kPartialSums,
                      end - begin, rows_.has_dropout ? keeps.data() : nullptr, vectors_,
                      new_max_->data(), state.max->data(), state.sum->data(), alpha_->data()});
    const bool is_plain = (sees_all || is_all_finite) && random_.one_in(2);
    bool is_first = true;
    pieces(v_, begin, end, [&](index_t at, index_t size) {
      const index_t n = at - begin;
      kernels_.accumulate({scores_->data() + n * lanes, size, v_.at(at), rows_.d_v,
                           is_first ? alpha_->data() : nullptr,
                           is_plain ? nullptr : mask.data() + n, vectors_, state.a->data()});
      is_first = false;
    });
  }

  void merge_last_two(std::vector<std::unique_ptr<State>>& nodes) {
    const std::unique_ptr<State> later = std::move(nodes.back());
    nodes.pop_back();
    // A state without a key may stand for a missing one: merging it changes nothing.
    const bool is_later = later != nullptr || random_.one_in(2);
    if (nodes.back() == nullptr && is_later) nodes.back() = fresh();
    if (!is_later) return;
    const std::unique_ptr<State> empty = later ? nullptr : fresh();
    const State& y = later ? *later : *empty;
    kernels_.merge({nodes.back()->view(), y.view(), rows_.d_v, vectors_});
  }

  void finish(const State& state, Result<T>& result) {
    const index_t step = random_.between(1, 3);
    std::vector<std::unique_ptr<Guarded<T>>> rows;
    std::vector<T*> starts;
    for (index_t r = 0; r < count_; ++r) {
      rows.push_back(std::make_unique<Guarded<T>>((rows_.d_v - 1) * step + 1, edge()));
      starts.push_back(rows.back()->data());
    }
    const T kept = rows_.has_dropout ? static_cast<T>(1 / (1 - rows_.dropout_p)) : T(1);
    kernels_.finish({state.view(), count_, rows_.d_v, kept, vectors_, starts.data(), step});
    for (index_t r = 0; r < count_; ++r) {
      for (index_t d = 0; d < rows_.d_v; ++d)
        result.out.push_back(starts[static_cast<std::size_t>(r)][d * step]);
      add_state((*state.max)[r], (*state.sum)[r], result);
    }
  }

  // Row state as it is reported: NaN as one quiet NaN, -inf for an empty row.
  static void add_state(T max, T sum, Result<T>& result) {
    using Limits = std::numeric_limits<T>;
    if (sum != sum) {
      sum = Limits::quiet_NaN();
      if (max != Limits::infinity()) max = Limits::quiet_NaN();
    }
    result.max.push_back(sum == 0 ? -Limits::infinity() : max);
    result.sum.push_back(sum);
  }

  const Kernels<T>& kernels_;
  const Rows<T>& rows_;
  const StoredRows<T>&k_, &v_;
  index_t first_, count_, vectors_ = 0;
  Random random_;
  Panel q_, scores_, new_max_, alpha_, bias_;
};

template <class T>
Result<T> run_rows(const Kernels<T>& kernels, const Rows<T>& rows, std::uint64_t seed) {
  Random random(seed);
  const StoredRows<T> k(random, rows.k, rows.kv_len, rows.d_k);
  const StoredRows<T> v(random, rows.v, rows.kv_len, rows.d_v);
  Result<T> result;
  for (index_t first = 0; first < rows.rows;) {
    const index_t most = std::min(kernels.lanes, rows.rows - first);
    const index_t count = random.one_in(2) ? most : random.between(1, most);
    PanelRun<T>(kernels, rows, k, v, first, count, random.bits()).run(result);
    first += count;
  }
  return result;
}

template <class T>
Result<T> reference_result(const Rows<T>& rows, bool in_bf16 = false) {
  Result<T> result;
  for (index_t i = 0; i < rows.rows; ++i) {
    const RowReference<T> row = reference_of(rows, i, in_bf16);
    result.out.insert(result.out.end(), row.out.begin(), row.out.end());
    result.max.push_back(row.max);
    result.sum.push_back(row.sum);
  }
  return result;
}

}  // namespace glasshead::test
