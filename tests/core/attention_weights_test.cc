// Weights on demand: what the literal row function says, pair by pair, and the largest of each row
// and the maps of whole heads against a plain look at all the weights.
#include "glasshead/attention_weights.h"

#include <algorithm>
#include <map>

#include "core/row_reference.h"
#include "random_calls.h"

namespace glasshead::test {
namespace {

const Context& context_of(const std::string& isa, int threads) {
  static std::map<std::pair<std::string, int>, Context> contexts;
  const std::pair key{isa, threads};
  if (contexts.find(key) == contexts.end())
    contexts.emplace(key, Context({.isa = isa, .threads = threads, .parallel_for = {}}));
  return contexts.at(key);
}

// Every supported set, with 1, 2, 3 and 8 threads: f(context, name).
template <class F>
void for_contexts(const F& f) {
  for (const KernelSetInfo& set : kernel_sets())
    for (const int threads : {1, 2, 3, 8})
      if (set.is_supported)
        f(context_of(set.name, threads), std::string(set.name) + " on " + std::to_string(threads));
}

// A call with its tensors stored, and its rows' state as attend writes it.
struct Prepared {
  Attention call;
  DType type, compute;
  Stored q, k, v, out, max, sum;

  Prepared(const Attention& given, DType t)
      : call(given),
        type(t),
        compute(t == DType::f64 ? DType::f64 : DType::f32),
        q(given.q, t, given.q_layout),
        k(given.k, t, given.k_layout),
        v(given.v, t, given.v_layout),
        out(Block({given.q.shape[0], given.q.shape[1], given.q.shape[2], given.v.shape[3]}, 77.0),
            compute),
        max(row_block(), compute),
        sum(row_block(), compute) {
    attend(q.view(), k.view(), v.view(), out.mutable_view(), call.options, rows());
  }
  Block row_block() const {
    return Block({call.q.shape[0], call.q.shape[1], call.q.shape[2], 1}, 77.0);
  }
  static MutableTensor<3> state(Stored& stored) {
    const MutableTensor<4> t = stored.mutable_view();
    return MutableTensor<3>(t.data, t.dtype, {t.shape[0], t.shape[1], t.shape[2]},
                            {t.strides[0], t.strides[1], t.strides[2]});
  }
  RowState rows() { return {state(max), state(sum), {}}; }
  RowRange all() const { return {0, call.q.shape[1], 0, call.q.shape[2]}; }

  Block weights(const RowRange& range, const RowState& given, const Context& context,
                const Layout& layout = {}) {
    Stored w(Block({call.q.shape[0], range.head_end - range.head_begin,
                    range.row_end - range.row_begin, call.k.shape[2]},
                   77.0),
             compute, layout);
    attention_weights(q.view(), k.view(), given, call.options, range, w.mutable_view(), context);
    return w.block();
  }
};

CallDraw::Shape small_shape(CallDraw& draw, index_t most_keys) {
  CallDraw::Shape shape;
  shape.kv_heads = draw.within(1, 2);
  shape.pairs = {draw.within(1, 2), shape.kv_heads * draw.within(1, 3),
                 draw.one_in(4) ? draw.within(1, 70) : draw.within(1, 6),
                 draw.below(most_keys + 1)};
  shape.d_k = draw.within(1, 12);
  shape.d_v = draw.within(0, 3);
  return shape;
}

Attention any_call(CallDraw& draw, const CallDraw::Shape& shape) {
  Attention call = draw.call(shape, Kind::normal);
  if (draw.one_in(4)) call.q = draw.block(call.q.shape, Kind::special);
  if (draw.one_in(4)) call.k = draw.block(call.k.shape, Kind::special);
  return call;
}

// exp(s - max) / sum of one pair, where the score is the maximum of a row that sees this key alone.
template <class T>
double literal_weight(Prepared& p, const std::array<index_t, 4>& at) {
  const auto [b, h, i, j] = at;
  const index_t g = h / (p.call.q.shape[1] / p.call.k.shape[1]), d_k = p.call.q.shape[3];
  std::vector<T> q;
  std::vector<T> k;
  for (index_t d = 0; d < d_k; ++d) {
    q.push_back(static_cast<T>(p.q.view().load(b, h, i, d)));
    k.push_back(static_cast<T>(p.k.view().load(b, g, j, d)));
  }
  const BiasPlan bias(p.call.options,
                      {p.call.q.shape[0], p.call.q.shape[1], p.call.q.shape[2], p.call.k.shape[2]});
  const T added = bias.is_empty() ? T(0) : bias.at<T>(b, h, i, j);
  RowInputs<T> row;
  row.q = {q.data(), {d_k}};
  row.k = {k.data(), {1, d_k}};
  row.v = {k.data(), {1, 0}};
  row.scale =
      p.call.options.scale ? *p.call.options.scale : 1.0 / std::sqrt(static_cast<double>(d_k));
  row.softcap = static_cast<T>(p.call.options.softcap);
  if (!bias.is_empty()) row.bias = {&added, {1}};
  const T score = row_reference(row).max;
  const T max = static_cast<T>(p.max.view().load(b, h, i, 0));
  const T sum = static_cast<T>(p.sum.view().load(b, h, i, 0));
  if (sum == 0) return 0;
  const T w = row_exp(static_cast<T>(score - max)) / sum;
  return w != w ? kNan : static_cast<double>(w);
}

TEST(AttentionWeights, are_those_of_the_literal_row_function) {
  for (std::uint64_t seed = 1; seed <= 150 && !HasFailure(); ++seed) {
    CallDraw draw(seed + 50000);
    CallDraw::Shape shape = small_shape(draw, 40);
    shape.pairs.q_len = std::min<index_t>(shape.pairs.q_len, 6);
    const DType type = draw.type();
    Prepared p(any_call(draw, shape), type);
    SCOPED_TRACE(std::string(name(type)) + ", seed " + std::to_string(seed));
    const Block found = p.weights(p.all(), p.rows(), default_context());
    std::array<index_t, 4> at{};
    for (at[0] = 0; at[0] < found.shape[0]; ++at[0])
      for (at[1] = 0; at[1] < found.shape[1]; ++at[1])
        for (at[2] = 0; at[2] < found.shape[2]; ++at[2])
          for (at[3] = 0; at[3] < found.shape[3]; ++at[3]) {
            double expected = 0;
            if (naive_allowed(p.call, at[0], at[1], at[2], at[3]))
              expected =
                  type == DType::f64 ? literal_weight<double>(p, at) : literal_weight<float>(p, at);
            const double w = found(at[0], at[1], at[2], at[3]);
            ASSERT_EQ(std::memcmp(&w, &expected, sizeof w), 0)
                << at[0] << " " << at[1] << " " << at[2] << " " << at[3] << ": " << w
                << " instead of " << expected;
          }
  }
}

TEST(AttentionWeights, are_the_same_bits_however_they_are_asked_for) {
  for (std::uint64_t seed = 1; seed <= 150 && !HasFailure(); ++seed) {
    CallDraw draw(seed + 51000);
    const CallDraw::Shape shape = small_shape(draw, draw.one_in(8) ? 2500 : 300);
    const DType type = draw.type();
    Prepared p(any_call(draw, shape), type);
    SCOPED_TRACE(std::string(name(type)) + ", seed " + std::to_string(seed));
    const Block whole = p.weights(p.all(), p.rows(), default_context());
    EXPECT_TRUE(same_bits(p.weights(p.all(), {}, default_context(), draw.layout()).x, whole.x))
        << "without the rows' state";
    for_contexts([&](const Context& context, const std::string& how) {
      EXPECT_TRUE(same_bits(p.weights(p.all(), p.rows(), context).x, whole.x)) << how;
    });
    RowRange part;
    part.head_begin = draw.below(shape.pairs.heads + 1);
    part.head_end = draw.within(part.head_begin, shape.pairs.heads);
    part.row_begin = draw.below(shape.pairs.q_len + 1);
    part.row_end = draw.within(part.row_begin, shape.pairs.q_len);
    const Block expected =
        take(take(whole, 1, part.head_begin, part.head_end), 2, part.row_begin, part.row_end);
    EXPECT_TRUE(same_bits(p.weights(part, {}, default_context()).x, expected.x)) << "a part";
  }
}

TEST(AttentionWeights, of_few_long_rows_go_to_several_threads_in_the_same_bits) {
  for (std::uint64_t seed = 1; seed <= 24 && !HasFailure(); ++seed) {
    CallDraw draw(seed + 51500);
    CallDraw::Shape shape = small_shape(draw, 1);
    shape.pairs.batch = 1;
    shape.pairs.q_len = draw.within(1, 3);
    shape.pairs.kv_len = draw.within(3000, 9000);  // 3 to 9 chunks
    shape.d_k = draw.within(1, 3);
    const DType type = draw.type();
    Prepared p(any_call(draw, shape), type);
    SCOPED_TRACE(std::string(name(type)) + ", seed " + std::to_string(seed));
    const Block whole = p.weights(p.all(), p.rows(), context_of("scalar", 1));
    for_contexts([&](const Context& context, const std::string& how) {
      EXPECT_TRUE(same_bits(p.weights(p.all(), {}, context).x, whole.x)) << how;
      EXPECT_TRUE(same_bits(p.weights(p.all(), p.rows(), context).x, whole.x)) << how;
    });
  }
  // One row of one head: as many tasks as threads, twice more where its state is found, too.
  std::vector<index_t> tasks;
  ContextOptions lent;
  lent.threads = 4;
  lent.parallel_for = [&](index_t count, const std::function<void(index_t)>& task) {
    tasks.push_back(count);
    for (index_t n = 0; n < count; ++n) task(n);
  };
  const Context context(lent);
  Attention call;
  call.q = Block({1, 1, 1, 2}, 0.5);
  call.k = call.v = Block({1, 1, 20000, 2}, 0.25);
  Prepared p(call, DType::f32);
  p.weights(p.all(), p.rows(), context);
  EXPECT_EQ(tasks, std::vector<index_t>{4});
  tasks.clear();
  p.weights(p.all(), {}, context);
  EXPECT_EQ(tasks, (std::vector<index_t>{4, 4}));  // the nodes are joined in place
}

TEST(AttentionWeights, of_a_row_sum_to_one) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    CallDraw draw(seed + 52000);
    const CallDraw::Shape shape = small_shape(draw, 1500);
    const DType type = draw.type();
    Prepared p(draw.call(shape, Kind::normal), type);
    SCOPED_TRACE(std::string(name(type)) + ", seed " + std::to_string(seed));
    const Block w = p.weights(p.all(), p.rows(), default_context());
    const double unit = p.compute == DType::f64 ? 0x1p-53 : 0x1p-24;
    for (index_t b = 0; b < w.shape[0]; ++b)
      for (index_t h = 0; h < w.shape[1]; ++h)
        for (index_t i = 0; i < w.shape[2]; ++i) {
          const double sum = p.sum.view().load(b, h, i, 0), max = p.max.view().load(b, h, i, 0);
          if (sum == 0) continue;
          double total = 0;
          for (index_t j = 0; j < w.shape[3]; ++j) total += w(b, h, i, j);
          const auto& sinks = p.call.options.sinks;
          if (!sinks.empty()) total += std::exp(sinks[static_cast<std::size_t>(h)] - max) / sum;
          // Within a block at most 16 additions in a row, then a tree of 3, then a block each; each
          // of them, the division and the exponentials' rescaling round.
          const double roundings = 24 + 3.0 * static_cast<double>(w.shape[3]) / 128;
          EXPECT_NEAR(total, 1, roundings * unit) << b << " " << h << " " << i;
        }
  }
}

TEST(TopWeights, are_the_largest_of_all_weights_in_order) {
  for (std::uint64_t seed = 1; seed <= 150 && !HasFailure(); ++seed) {
    CallDraw draw(seed + 53000);
    const CallDraw::Shape shape = small_shape(draw, 300);
    const DType type = draw.type();
    Attention call = any_call(draw, shape);
    if (draw.one_in(3)) call.k = draw.block(call.k.shape, Kind::whole);  // equal weights
    Prepared p(call, type);
    SCOPED_TRACE(std::string(name(type)) + ", seed " + std::to_string(seed));
    const Block w = p.weights(p.all(), p.rows(), default_context());
    const index_t count = draw.below(9);
    const Block room({w.shape[0], w.shape[1], w.shape[2], count}, 77.0);
    Stored keys(room, DType::i64), best(room, p.compute);
    const RowState rows = draw.one_in(2) ? p.rows() : RowState{};
    for_contexts([&](const Context& context, const std::string& how) {
      top_weights(p.q.view(), p.k.view(), rows, p.call.options, p.all(), keys.mutable_view(),
                  best.mutable_view(), context);
      for (index_t b = 0; b < w.shape[0]; ++b)
        for (index_t h = 0; h < w.shape[1]; ++h)
          for (index_t i = 0; i < w.shape[2]; ++i) {
            std::vector<index_t> order;
            for (index_t j = 0; j < w.shape[3]; ++j)
              if (naive_allowed(p.call, b, h, i, j) && p.sum.view().load(b, h, i, 0) != 0)
                order.push_back(j);
            std::sort(order.begin(), order.end(), [&](index_t x, index_t y) {
              const double a = w(b, h, i, x), c = w(b, h, i, y);
              return a > c || (!(c > a) && x < y);  // of equal weights the lower key
            });
            for (index_t n = 0; n < count; ++n) {
              const bool is_there = n < static_cast<index_t>(order.size());
              const index_t key = is_there ? order[static_cast<std::size_t>(n)] : -1;
              ASSERT_EQ(static_cast<index_t>(keys.view().load(b, h, i, n)), key) << how;
              const double expected = is_there ? w(b, h, i, key) : 0.0;
              const double found = best.view().load(b, h, i, n);
              ASSERT_EQ(std::memcmp(&found, &expected, sizeof found), 0) << how;
            }
          }
    });
  }
}

struct Maps {
  Block mean, max;
};
Maps plain_maps(const Block& w, index_t cell_rows, index_t cell_keys) {
  const index_t rows = (w.shape[2] + cell_rows - 1) / cell_rows;
  const index_t columns = (w.shape[3] + cell_keys - 1) / cell_keys;
  Maps maps{Block({w.shape[0], w.shape[1], rows, columns}, 0.0),
            Block({w.shape[0], w.shape[1], rows, columns}, 0.0)};
  Block pairs = maps.mean;
  for (index_t b = 0; b < w.shape[0]; ++b)
    for (index_t h = 0; h < w.shape[1]; ++h)
      for (index_t i = 0; i < w.shape[2]; ++i)
        for (index_t j = 0; j < w.shape[3]; ++j) {
          const double x = w(b, h, i, j);
          const index_t r = i / cell_rows, c = j / cell_keys;
          maps.mean(b, h, r, c) += x;
          pairs(b, h, r, c) += 1;
          double& max = maps.max(b, h, r, c);
          if (x > max || std::isnan(x)) max = x;
        }
  for (std::size_t n = 0; n < pairs.x.size(); ++n) maps.mean.x[n] /= pairs.x[n];
  return maps;
}

TEST(WeightMaps, are_the_means_and_maxima_of_their_cells_in_the_same_bits_everywhere) {
  for (std::uint64_t seed = 1; seed <= 150 && !HasFailure(); ++seed) {
    CallDraw draw(seed + 54000);
    const CallDraw::Shape shape = small_shape(draw, draw.one_in(8) ? 1500 : 300);
    const DType type = draw.type();
    Prepared p(any_call(draw, shape), type);
    const index_t sizes[] = {1, 2, 7, 16, 64, 100, 128, 500};
    const index_t cell_rows = sizes[draw.below(8)], cell_keys = sizes[draw.below(8)];
    SCOPED_TRACE(std::string(name(type)) + ", seed " + std::to_string(seed) + ", cells " +
                 std::to_string(cell_rows) + " x " + std::to_string(cell_keys));
    const Maps expected =
        plain_maps(p.weights(p.all(), p.rows(), default_context()), cell_rows, cell_keys);
    const Block room(expected.mean.shape, 77.0);
    Maps first;
    for_contexts([&](const Context& context, const std::string& how) {
      Stored mean(room, DType::f64), max(room, p.compute), out(p.out.block(), p.compute);
      attend_with_maps(p.q.view(), p.k.view(), p.v.view(), out.mutable_view(),
                       {cell_rows, cell_keys, mean.mutable_view(), max.mutable_view()},
                       p.call.options, {}, context);
      EXPECT_TRUE(same_bits(out.block().x, p.out.block().x)) << how;
      EXPECT_TRUE(same_bits(max.block().x, expected.max.x)) << how;
      if (first.mean.x.empty()) first.mean = mean.block();
      EXPECT_TRUE(same_bits(mean.block().x, first.mean.x)) << how;
    });
    Stored mean(room, DType::f64), max(room, p.compute);
    weight_maps(p.q.view(), p.k.view(), {}, p.call.options,
                {cell_rows, cell_keys, mean.mutable_view(), max.mutable_view()});
    EXPECT_TRUE(same_bits(mean.block().x, first.mean.x)) << "alone";
    // A row's keys in one block are added in T, one rounding each; the weights here round once.
    const double unit = p.compute == DType::f64 ? 0x1p-53 : 0x1p-24;
    for (std::size_t n = 0; n < first.mean.x.size(); ++n) {
      const double x = first.mean.x[n], right = expected.mean.x[n];
      if (std::isnan(right))
        EXPECT_TRUE(std::isnan(x)) << "cell " << n;
      else
        EXPECT_NEAR(x, right, (130 * unit + 1e-14) * right + 1e-44) << "cell " << n;
    }
  }
}

TEST(AttentionWeights, of_rows_without_a_key_are_zero_or_an_error) {
  Attention call = small();
  call.q.x = {kInf, 1, 1, 1};  // and a score of -inf through the data
  call.k.x = {-1, 0, -1, 0, -1, 0};
  call.options.mask = mask_of({2, 3}, {1, 1, 0, 0, 0, 0});
  for (const DType type : {DType::f64, DType::f32}) {
    Prepared p(call, type);
    for (const double w : p.weights(p.all(), {}, default_context()).x) EXPECT_EQ(w, 0.0);
    for (const double w : p.weights(p.all(), p.rows(), default_context()).x) EXPECT_EQ(w, 0.0);
  }
  Prepared p(call, DType::f64);
  p.call.options.mask = mask_of({2, 3}, {1, 1, 0, 1, 1, 1});
  p.call.options.empty_row = EmptyRow::error;
  try {
    p.weights(p.all(), {}, default_context());
    FAIL() << "was not refused";
  } catch (const OptionError& error) {
    EXPECT_TRUE(says(error.problems(), "empty_row",
                     "1 row has only scores of -inf: (batch, head, row) (0, 0, 0)"));
  }
}

TEST(AttentionWeights, refuses_what_does_not_fit_with_all_its_problems) {
  Prepared p(small(), DType::f64);
  Tensor<double, 4> w({1, 1, 2, 3}), keys({1, 1, 2, 3});
  Tensor<float, 3> narrow({1, 1, 2});
  const auto problems_of_call = [](const auto& f) {
    try {
      f();
    } catch (const ShapeError& error) {
      return error.problems();
    } catch (const OptionError& error) {
      return error.problems();
    }
    return std::vector<Problem>{};
  };
  auto problems = problems_of_call(
      [&] { attention_weights(p.q.view(), p.k.view(), {narrow, {}, {}}, {}, {0, 2, 0, 2}, w); });
  EXPECT_TRUE(says(problems, "range", "heads [0, 2)"));
  EXPECT_TRUE(says(problems, "rows.max", "f64 is what attend computed in"));
  EXPECT_TRUE(says(problems, "rows.sum", "axis"));
  problems =
      problems_of_call([&] { top_weights(p.q.view(), p.k.view(), {}, {}, p.all(), keys, w); });
  EXPECT_TRUE(says(problems, "keys", "i64 would be right"));
  problems = problems_of_call([&] { weight_maps(p.q.view(), p.k.view(), {}, {}, {0, 1, w, {}}); });
  EXPECT_TRUE(says(problems, "maps", "at least 1 x 1"));
  problems = problems_of_call([&] { weight_maps(p.q.view(), p.k.view(), {}, {}, {1, 1, {}, {}}); });
  EXPECT_TRUE(says(problems, "maps", "nothing to write"));
}

}  // namespace
}  // namespace glasshead::test
