// What holds for every call, over the case table.
#include <algorithm>

#include "case_table.h"
#include "naive.h"
#include "testing.h"

namespace glasshead::test {
namespace {

// The call with its numbers as `type` stores them.
Attention rounded(const Attention& call, DType type) {
  Attention result = call;
  result.q = Stored(call.q, type).block();
  result.k = Stored(call.k, type).block();
  result.v = Stored(call.v, type).block();
  return result;
}

template <class F>
void for_cases(const F& f) {
  for (const Case& entry : case_table()) {
    SCOPED_TRACE(entry.name);
    f(entry.call);
  }
}

template <class R>
double largest_error(const std::vector<double>& found, const std::vector<R>& exact) {
  double largest = 0;
  for (std::size_t n = 0; n < found.size(); ++n) {
    const auto right = static_cast<double>(exact[n]);
    if (found[n] == right) continue;  // infinities too
    const double error = std::fabs(found[n] - right);
    if (std::isnan(error)) return error;  // no bar is above it
    largest = std::max(largest, error);
  }
  return largest;
}

std::vector<double> widened(const std::vector<float>& x) { return {x.begin(), x.end()}; }

double largest_of(const Block& block) {
  double largest = 0;
  for (const double x : block.x) largest = std::max(largest, std::fabs(x));
  return largest;
}

// The largest scaled score that could occur: rounding a score by u moves its weight by as much.
double largest_score(const Attention& call) {
  const double d_k = static_cast<double>(call.q.shape[3]);
  return 1 + largest_of(call.q) * largest_of(call.k) * std::sqrt(d_k);
}

TEST(AllCases, f64_agrees_with_the_naive_reference) {
  for_cases([](const Attention& call) {
    const Result r = run(call, DType::f64);
    const Naive<long double> exact = naive_attention<long double>(call);
    // A few roundings of 2^-53 on each score, weight and sum.
    const double u = 0x1p-53 * 8 * largest_score(call);
    EXPECT_LE(largest_error(r.out.x, exact.out), u * std::max(1.0, largest_of(call.v)));
    EXPECT_LE(largest_error(r.weights.x, exact.weights), u);
    EXPECT_LE(largest_error(r.lse.x, exact.lse), u);
  });
}

// The bar: at most twice the error of plain three-pass f32, plus a few units of the values.
TEST(AllCases, f32_is_at_most_twice_as_far_off_as_plain_f32) {
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    SCOPED_TRACE(name(type));
    for_cases([&](const Attention& given) {
      const Attention call = rounded(given, type);
      const Result r = run(call, type);
      const Naive<long double> exact = naive_attention<long double>(call);
      const Naive<float> plain = naive_attention<float>(call);
      const double atol = 4 * 0x1p-24;  // a few roundings of numbers of size 1
      EXPECT_LE(largest_error(r.out.x, exact.out),
                2 * largest_error(widened(plain.out), exact.out) +
                    atol * std::max(1.0, largest_of(call.v)));
      EXPECT_LE(largest_error(r.weights.x, exact.weights),
                2 * largest_error(widened(plain.weights), exact.weights) + atol);
      EXPECT_LE(largest_error(r.lse.x, exact.lse),
                2 * largest_error(widened(plain.lse), exact.lse) + atol * largest_score(call));
    });
  }
}

TEST(AllCases, weights_are_zero_exactly_where_a_pair_is_hidden) {
  for_cases([](const Attention& call) {
    const Result r = run(call, DType::f64);
    for (index_t b = 0; b < r.weights.shape[0]; ++b)
      for (index_t h = 0; h < r.weights.shape[1]; ++h)
        for (index_t i = 0; i < r.weights.shape[2]; ++i)
          for (index_t j = 0; j < r.weights.shape[3]; ++j) {
            if (!naive_allowed(call, b, h, i, j)) {
              EXPECT_EQ(r.weights(b, h, i, j), 0.0);
            }
          }
  });
}

TEST(AllCases, any_layout_gives_the_bits_of_a_dense_copy) {
  const std::vector<Layout> layouts{{{0, 2, 1, 3}, 1, -1},
                                    {{3, 2, 1, 0}, 1, -1},
                                    {{0, 1, 2, 3}, 3, -1},
                                    {{0, 1, 2, 3}, 1, 2},
                                    {{1, 3, 0, 2}, 2, 3}};
  for_cases([&](const Attention& call) {
    for (const DType type : {DType::f64, DType::f32}) {
      const Result dense = run(call, type);
      Attention other = call;
      for (std::size_t n = 0; n < layouts.size(); ++n) {
        other.q_layout = layouts[n];
        other.k_layout = layouts[(n + 1) % layouts.size()];
        other.v_layout = layouts[(n + 3) % layouts.size()];
        expect_same_bits(run(other, type), dense);
      }
    }
  });
}

TEST(AllCases, a_broadcast_view_gives_the_bits_of_the_repeated_copy) {
  // One key/value head and one batch entry, repeated by strides of 0.
  const Attention whole = random_call({3, 4, 4, 5, 7, 4, 3});
  Attention one = whole;
  one.k = random_block({1, 1, 7, 4}, 31);
  one.v = random_block({1, 1, 7, 3}, 32);
  Attention copied = whole;
  for (index_t b = 0; b < 3; ++b)
    for (index_t g = 0; g < 4; ++g)
      for (index_t j = 0; j < 7; ++j) {
        for (index_t d = 0; d < 4; ++d) copied.k(b, g, j, d) = one.k(0, 0, j, d);
        for (index_t d = 0; d < 3; ++d) copied.v(b, g, j, d) = one.v(0, 0, j, d);
      }
  const Stored q(whole.q, DType::f64), k(one.k, DType::f64), v(one.v, DType::f64);
  const ConstTensor<4> wide_k(k.view().data, DType::f64, {3, 4, 7, 4}, {0, 0, 4, 1});
  const ConstTensor<4> wide_v(v.view().data, DType::f64, {3, 4, 7, 3}, {0, 0, 3, 1});
  Stored out(Block({3, 4, 5, 3}, 0.0), DType::f64);
  attend(q.view(), wide_k, wide_v, out.mutable_view());
  EXPECT_TRUE(same_bits(out.block().x, run(copied, DType::f64).out.x));
}

// The keys of the call that no query of their batch entry and key/value head may see.
std::vector<std::array<index_t, 3>> wholly_hidden(const Attention& call) {
  std::vector<std::array<index_t, 3>> list;
  const index_t group = call.q.shape[1] / call.k.shape[1];
  for (index_t b = 0; b < call.k.shape[0]; ++b)
    for (index_t g = 0; g < call.k.shape[1]; ++g)
      for (index_t j = 0; j < call.k.shape[2]; ++j) {
        bool is_seen = false;
        for (index_t h = g * group; h < (g + 1) * group; ++h)
          for (index_t i = 0; i < call.q.shape[2]; ++i)
            is_seen = is_seen || naive_allowed(call, b, h, i, j);
        if (!is_seen) list.push_back({b, g, j});
      }
  return list;
}

TEST(AllCases, what_hidden_keys_and_values_hold_changes_no_bit) {
  std::size_t poisoned = 0;
  for_cases([&](const Attention& call) {
    const auto hidden = wholly_hidden(call);
    if (hidden.empty()) return;
    poisoned += hidden.size();
    const Block d_out =
        random_block({call.q.shape[0], call.q.shape[1], call.q.shape[2], call.v.shape[3]}, 77);
    for (const double poison : {kNan, kInf, -kInf, 1e30}) {
      Attention other = call;
      for (const auto& [b, g, j] : hidden) {
        for (index_t d = 0; d < call.k.shape[3]; ++d) other.k(b, g, j, d) = poison;
        for (index_t d = 0; d < call.v.shape[3]; ++d) other.v(b, g, j, d) = poison;
      }
      for (const DType type : {DType::f64, DType::f32})
        expect_same_bits(run(other, type), run(call, type));
      const GradientBlocks a = run_backward(call, d_out, DType::f64);
      const GradientBlocks b = run_backward(other, d_out, DType::f64);
      EXPECT_TRUE(same_bits(a.dq.x, b.dq.x));
      EXPECT_TRUE(same_bits(a.dk.x, b.dk.x));
      EXPECT_TRUE(same_bits(a.dv.x, b.dv.x));
    }
  });
  EXPECT_GE(poisoned, 30U);  // the table does hide keys
}

// One NaN key: rows that see it are NaN throughout, all others keep their bits.
TEST(AllCases, a_nan_key_reaches_exactly_the_rows_that_see_it) {
  for_cases([](const Attention& call) {
    if (call.options.dropout.p > 0) return;
    const Result clean = run(call, DType::f64);
    Attention other = call;
    const index_t j = call.k.shape[2] / 2;
    const index_t group = call.q.shape[1] / call.k.shape[1];
    for (index_t b = 0; b < call.k.shape[0]; ++b) other.k(b, 0, j, 0) = kNan;
    const Result r = run(other, DType::f64);
    for (index_t b = 0; b < r.out.shape[0]; ++b)
      for (index_t h = 0; h < r.out.shape[1]; ++h)
        for (index_t i = 0; i < r.out.shape[2]; ++i)
          for (index_t d = 0; d < r.out.shape[3]; ++d) {
            if (h < group && naive_allowed(call, b, h, i, j))
              EXPECT_TRUE(std::isnan(r.out(b, h, i, d)));
            else
              EXPECT_EQ(r.out(b, h, i, d), clean.out(b, h, i, d));
          }
  });
}

// Likewise a NaN in component 0 of one value.
TEST(AllCases, a_nan_value_reaches_exactly_the_rows_that_see_it) {
  for_cases([](const Attention& call) {
    const Result clean = run(call, DType::f64);
    Attention other = call;
    const index_t j = call.k.shape[2] / 2;
    const index_t group = call.q.shape[1] / call.k.shape[1];
    for (index_t b = 0; b < call.k.shape[0]; ++b) other.v(b, 0, j, 0) = kNan;
    const Result r = run(other, DType::f64);
    for (index_t b = 0; b < r.out.shape[0]; ++b)
      for (index_t h = 0; h < r.out.shape[1]; ++h)
        for (index_t i = 0; i < r.out.shape[2]; ++i)
          for (index_t d = 0; d < r.out.shape[3]; ++d) {
            if (d == 0 && h < group && naive_allowed(call, b, h, i, j))
              EXPECT_TRUE(std::isnan(r.out(b, h, i, d)));
            else
              EXPECT_EQ(r.out(b, h, i, d), clean.out(b, h, i, d));
          }
  });
}

// Keys appended and hidden change no bit: sums are made in blocks at absolute positions.
TEST(AllCases, appended_hidden_keys_change_no_bit) {
  for (const index_t kv_len : {index_t{1}, index_t{100}, index_t{128}, index_t{200}}) {
    Attention call = random_call({2, 2, 1, 4, kv_len, 6, 5});
    call.options.mask = Mask::causal();
    call.options.query_start = kv_len - 1;
    Attention longer = call;
    const index_t room = kv_len + 300;
    longer.k = Block({2, 1, room, 6}, kNan);
    longer.v = Block({2, 1, room, 5}, kNan);
    for (index_t b = 0; b < 2; ++b)
      for (index_t j = 0; j < kv_len; ++j) {
        for (index_t d = 0; d < 6; ++d) longer.k(b, 0, j, d) = call.k(b, 0, j, d);
        for (index_t d = 0; d < 5; ++d) longer.v(b, 0, j, d) = call.v(b, 0, j, d);
      }
    longer.options.mask = longer.options.mask & Mask::key_lengths({kv_len});
    for (const DType type : {DType::f64, DType::f32})
      EXPECT_TRUE(same_bits(run(longer, type).out.x, run(call, type).out.x));
  }
}

// One entry of the batch, alone.
Block entry_of(const Block& block, index_t b) {
  const std::size_t size = block.x.size() / static_cast<std::size_t>(block.shape[0]);
  const auto first =
      block.x.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(b) * size);
  return {{1, block.shape[1], block.shape[2], block.shape[3]},
          {first, first + static_cast<std::ptrdiff_t>(size)}};
}

bool names_batches(const AttentionOptions& options) {
  const auto is_batched = [](const Broadcast& t) { return t.rank == 4 && t.shape[0] > 1; };
  for (const Mask::Part& part : options.mask.parts()) {
    const auto* lengths = std::get_if<Mask::KeyLengths>(&part);
    const auto* prefix = std::get_if<Mask::Prefix>(&part);
    const auto* segments = std::get_if<Mask::Segments>(&part);
    const auto* given = std::get_if<Mask::Explicit>(&part);
    if ((lengths && lengths->lengths.size() > 1) || (prefix && prefix->lengths.size() > 1) ||
        (segments && segments->batch > 1) || (given && is_batched(given->allowed)))
      return true;
  }
  for (const Bias::Term& term : options.bias.terms()) {
    const auto* dense = std::get_if<Bias::Dense>(&term);
    if (dense && is_batched(dense->values)) return true;
  }
  return options.dropout.p > 0;  // whose draw depends on the batch entry
}

TEST(AllCases, a_batch_gives_each_entry_the_bits_it_has_alone_in_any_order) {
  for_cases([](const Attention& call) {
    if (names_batches(call.options)) return;
    for (const DType type : {DType::f64, DType::f32}) {
      const Result whole = run(call, type);
      const index_t batch = call.q.shape[0];
      for (index_t b = 0; b < batch; ++b) {
        const Attention alone{entry_of(call.q, b), entry_of(call.k, b), entry_of(call.v, b),
                              call.options};
        EXPECT_TRUE(same_bits(run(alone, type).out.x, entry_of(whole.out, b).x));
      }
    }
  });
}

// Rows handed over a few at a time, with their position, have the bits of the whole.
TEST(AllCases, chunks_of_queries_give_the_bits_of_the_whole) {
  Attention call = random_call({1, 4, 2, 11, 140, 4, 3});
  call.options.mask = Mask::causal() & Mask::window(131, 0);
  call.options.bias = Bias::alibi(Bias::alibi_slopes(4));
  call.options.query_start = index_t{129};
  for (const DType type : {DType::f64, DType::f32}) {
    const Result whole = run(call, type);
    for (index_t begin = 0; begin < 11; begin += 4) {
      const index_t rows = std::min<index_t>(4, 11 - begin);
      Attention chunk = call;
      chunk.q = Block({1, 4, rows, 4}, 0.0);
      for (index_t h = 0; h < 4; ++h)
        for (index_t i = 0; i < rows; ++i)
          for (index_t d = 0; d < 4; ++d) chunk.q(0, h, i, d) = call.q(0, h, begin + i, d);
      chunk.options.query_start = 129 + begin;
      const Result part = run(chunk, type);
      for (index_t h = 0; h < 4; ++h)
        for (index_t i = 0; i < rows; ++i)
          for (index_t d = 0; d < 3; ++d)
            EXPECT_EQ(part.out(0, h, i, d), whole.out(0, h, begin + i, d));
    }
  }
}

}  // namespace
}  // namespace glasshead::test
