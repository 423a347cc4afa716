// Random calls over every part of a mask and every term of a bias, alone and together, and random
// panels of query rows: what the tests of whole tiles draw from. Everything follows from a seed.
#pragma once

#include <algorithm>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "core/tile_plan.h"
#include "naive.h"
#include "testing.h"

namespace glasshead::test {

class TileDraw {
 public:
  explicit TileDraw(std::uint64_t seed) : engine_(seed) {}

  index_t below(index_t n) {
    return static_cast<index_t>(engine_() % static_cast<std::uint64_t>(n));
  }
  index_t within(index_t low, index_t high) { return low + below(high - low + 1); }
  bool one_in(index_t n) { return below(n) == 0; }

  PairShape shape() {
    const index_t kv[] = {1, 7, 40, 128, 129, 200, 300};
    return {within(1, 2), within(1, 5), one_in(4) ? 1 : within(1, 70), kv[below(7)]};
  }

  Mask part(const PairShape& s) {
    switch (below(9)) {
      case 8:
        return rule();
      case 0:
        return Mask::causal();
      case 1:
        return Mask::window(limit(), limit());
      case 2:
        return Mask::key_lengths(lengths(s));
      case 3:
        return Mask::prefix(lengths(s));
      case 4:
        return segments(s);
      default:
        return Mask::allowed(tensor(s, DType::u8, below(4)));
    }
  }

  Bias term(const PairShape& s) {
    switch (below(4)) {
      case 0: {
        std::vector<double> slopes;
        for (index_t h = 0; h < s.heads; ++h) slopes.push_back(number());
        return Bias::alibi(slopes,
                           one_in(2) ? Bias::AlibiForm::distance : Bias::AlibiForm::key_index);
      }
      case 1: {
        Bias::T5 t5;
        t5.buckets = 2 * within(2, 16);
        t5.heads = s.heads;
        t5.is_bidirectional = one_in(2);
        t5.max_distance = one_in(3) ? 1000000 : within(t5.buckets, 200);
        for (index_t n = 0; n < t5.buckets * t5.heads; ++n) t5.table.push_back(number());
        return Bias::t5(t5);
      }
      default: {
        const DType types[] = {DType::f32, DType::f64, DType::bf16, DType::f16};
        return Bias::dense(tensor(s, types[below(4)], below(4)));
      }
    }
  }

  QueryStart start(const PairShape& s) {
    switch (below(5)) {
      case 0:
        return Align::start;
      case 1:
        return Align::end;
      case 2:
        return (one_in(2) ? 1 : -1) * (index_t{1} << 61) / within(1, 3);
      default:
        return within(-s.q_len - 3, s.kv_len + 3);
    }
  }

  Attention call() {
    const PairShape s = shape();
    Attention made{Block({s.batch, s.heads, s.q_len, 1}, 0.0),
                   Block({s.batch, 1, s.kv_len, 1}, 0.0),
                   Block({s.batch, 1, s.kv_len, 1}, 0.0),
                   {}};
    for (index_t n = below(4); n > 0; --n) made.options.mask = made.options.mask & part(s);
    for (index_t n = below(4); n > 0; --n) made.options.bias = made.options.bias + term(s);
    made.options.query_start = start(s);
    return made;
  }

  // Packed rows from the first to the last or back, or rows of any heads in the order of their
  // indices.
  PanelRows rows(const PairShape& s) {
    const index_t most = std::min<index_t>(kMostRows, s.heads * s.q_len);
    const index_t count = within(1, most);
    const index_t first = below(s.heads * s.q_len - count + 1);
    const index_t b = below(s.batch);
    PanelRows rows;
    fill_rows(rows, b, 0, s.heads, first, first + count,
              one_in(2) ? Order::ascending : Order::descending);
    if (one_in(3)) {
      for (index_t r = 0; r < count; ++r) {
        rows.h[r] = below(s.heads);
        rows.i[r] = below(s.q_len);
      }
      std::sort(rows.i, rows.i + count);
      if (one_in(2)) std::reverse(rows.i, rows.i + count);
    }
    return rows;
  }

  // A run of keys inside one block of 128.
  KeyRange keys(const PairShape& s) {
    const index_t block = below((s.kv_len + 127) / 128) * 128;
    const index_t end = std::min(block + 128, s.kv_len);
    if (one_in(2)) return {block, end};
    const index_t begin = within(block, end - 1);
    return {begin, within(begin + 1, end)};
  }

  // Rank 0 to 4, axes of 1 here and there, any order and direction of strides. `kind`: how the
  // entries that hide lie, 0 none, 1 all, 2 whole stretches of keys, 3 anywhere.
  Broadcast tensor(const PairShape& s, DType type, index_t kind) {
    const index_t full[4] = {s.batch, s.heads, s.q_len, s.kv_len};
    Broadcast made;
    made.dtype = type;
    made.rank = static_cast<int>(below(5));
    const auto rank = static_cast<std::size_t>(made.rank);
    std::vector<std::size_t> order(rank);
    for (std::size_t n = 0; n < rank; ++n) order[n] = n;
    if (one_in(3)) std::shuffle(order.begin(), order.end(), engine_);
    index_t size = one_in(4) ? 2 : 1;  // the gap between neighbours
    index_t first = 0;
    for (std::size_t n = rank; n-- > 0;) {
      const std::size_t axis = order[n];
      made.shape[axis] = one_in(4) ? 1 : full[4 - rank + axis];
      made.strides[axis] = size;
      size *= made.shape[axis];
      if (one_in(8)) {
        first += (made.shape[axis] - 1) * made.strides[axis];
        made.strides[axis] *= -1;
      } else if (one_in(12)) {
        made.strides[axis] = 0;
      }
    }
    auto memory = std::make_shared<std::vector<double>>(static_cast<std::size_t>(size + 1));
    bool hides = kind == 1 || one_in(2);
    for (index_t n = 0; n <= size; ++n) {
      if (kind == 2 ? one_in(60) : kind == 3 && one_in(2)) hides = !hides;
      const double number_or_one =
          type == DType::u8 ? static_cast<double>(within(1, 255)) : number();
      const double hidden = type == DType::u8 ? 0 : -kInf;
      store_element(memory->data(), type, n, hides && kind != 0 ? hidden : number_or_one);
    }
    made.data = static_cast<const unsigned char*>(static_cast<const void*>(memory->data())) +
                first * static_cast<index_t>(size_of(type));
    made.owner = memory;
    return made;
  }

  // Of any size that every type can hold, -0 and subnormals of f16 included.
  double number() {
    if (one_in(20)) return -0.0;
    const double x = static_cast<double>(within(-2000, 2000)) / 1024.0;
    return one_in(10) ? std::ldexp(x, -14) : one_in(3) ? x / 3.0 : x;
  }

 private:
  std::optional<index_t> limit() {
    if (one_in(4)) return std::nullopt;
    return one_in(6) ? std::numeric_limits<index_t>::max() - below(2) : below(150);
  }
  // Blocks of 40 positions by 70 keys that are all, none, or some by a hash of the pair.
  Mask rule() {
    const auto salt = static_cast<std::uint64_t>(below(1000));
    const bool per_batch = one_in(2);
    const bool per_head = one_in(2);
    const auto hash = [=](index_t b, index_t h, index_t p, index_t j) {
      return philox(salt, static_cast<std::uint64_t>(p) * 1000003 + static_cast<std::uint64_t>(j),
                    static_cast<std::uint64_t>((per_batch ? b : 0) * 64 + (per_head ? h : 0)))[0];
    };
    const auto may_attend = [=](index_t b, index_t h, index_t p, index_t j) {
      const std::uint32_t block = hash(b, h, p / 40, j / 70) % 3;
      return block == 2 ? hash(b, h, p, j) % 2 == 0 : block == 1;
    };
    return Mask::where(PairRule(may_attend, {per_batch, per_head}));
  }
  std::vector<index_t> lengths(const PairShape& s) {
    std::vector<index_t> list;
    for (index_t n = one_in(2) ? 1 : s.batch; n > 0; --n) list.push_back(below(s.kv_len + 1));
    return list;
  }
  Mask segments(const PairShape& s) {
    const index_t batch = one_in(2) ? 1 : s.batch;
    const index_t change = one_in(3) ? 1 : within(2, 90);  // a document's length, about
    const auto ids = [&](index_t length) {
      std::vector<index_t> list;
      index_t id = below(2);
      for (index_t n = 0; n < length; ++n) list.push_back(one_in(change) ? id = below(4) : id);
      return list;
    };
    return Mask::segments(batch, ids(batch * s.q_len), ids(batch * s.kv_len));
  }

  std::mt19937_64 engine_;
};

}  // namespace glasshead::test
