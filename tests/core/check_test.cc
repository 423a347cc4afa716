// What check refuses, and how it says so.
#include "core/validate.h"
#include "testing.h"

namespace glasshead::test {
namespace {

Attention sizes(std::array<index_t, 4> q, std::array<index_t, 4> k, std::array<index_t, 4> v) {
  return {Block(q, 1.0), Block(k, 1.0), Block(v, 1.0), {}};
}
Attention three_rows() { return sizes({1, 1, 3, 8}, {1, 1, 3, 8}, {1, 1, 3, 8}); }

// `edit` makes one thing wrong: check must name it, and nothing else.
template <class Edit>
void expect_one(const Edit& edit, const char* where, const char* text,
                Attention call = three_rows()) {
  edit(call.options);
  const std::vector<Problem> problems = problems_of(call);
  ASSERT_EQ(problems.size(), 1U) << text;
  EXPECT_EQ(problems[0].where, where);
  EXPECT_NE(problems[0].what.find(text), std::string::npos) << problems[0].what;
}
void expect_shape(const Attention& call, const char* where, const char* text) {
  expect_one([](AttentionOptions&) {}, where, text, call);
}

TEST(Check, finds_nothing_wrong_with_a_right_call) {
  EXPECT_TRUE(problems_of(small()).empty());
  EXPECT_TRUE(problems_of(sizes({0, 2, 3, 4}, {0, 2, 3, 4}, {0, 2, 3, 4})).empty());
  EXPECT_TRUE(problems_of(sizes({1, 2, 0, 4}, {1, 2, 3, 4}, {1, 2, 3, 4})).empty());
  EXPECT_TRUE(problems_of(sizes({1, 2, 3, 4}, {1, 1, 0, 4}, {1, 1, 0, 0})).empty());
  EXPECT_TRUE(problems_of(sizes({1, 0, 3, 4}, {1, 0, 3, 4}, {1, 0, 3, 4})).empty());
}

TEST(Check, names_the_axis_of_sizes_that_do_not_fit) {
  expect_shape(sizes({1, 2, 3, 8}, {1, 2, 3, 7}, {1, 2, 3, 8}), "k",
               "axis d_k has 7 where q has 8; they must be equal (q [1,2,3,8], k [1,2,3,7])");
  expect_shape(sizes({1, 2, 3, 8}, {1, 2, 3, 8}, {1, 2, 4, 8}), "v",
               "axis kv_len has 4 where k has 3");
  expect_shape(sizes({1, 9, 3, 8}, {1, 4, 3, 8}, {1, 4, 3, 8}), "q",
               "axis heads has 9, k has 4 kv_heads; heads must be a multiple of kv_heads "
               "(q [1,9,3,8], k [1,4,3,8])");
  expect_shape(sizes({1, 3, 3, 8}, {1, 3, 3, 8}, {1, 1, 3, 8}), "v",
               "axis kv_heads has 1 where k has 3");
  expect_shape(sizes({1, 2, 3, 8}, {1, 0, 3, 8}, {1, 0, 3, 8}), "q", "k has 0 kv_heads");
  expect_shape(sizes({1, 1, 3, 0}, {1, 1, 3, 0}, {1, 1, 3, 4}), "q", "axis d_k has 0");
  const std::vector<Problem> both = problems_of(sizes({2, 1, 3, 8}, {3, 1, 3, 8}, {3, 1, 3, 8}));
  ASSERT_EQ(both.size(), 2U);
  EXPECT_TRUE(says(both, "k", "axis batch has 3 where q has 2"));
  EXPECT_TRUE(says(both, "v", "axis batch has 3 where q has 2"));
}

TEST(Check, refuses_numbers_outside_their_range) {
  for (const double bad : {kNan, kInf, -kInf})
    expect_one([&](AttentionOptions& o) { o.scale = bad; }, "scale", "any finite number");
  for (const double bad : {kNan, kInf, -1.0})
    expect_one([&](AttentionOptions& o) { o.softcap = bad; }, "softcap", "positive number");
  for (const double bad : {kNan, -0.1, 1.0, 2.0})
    expect_one([&](AttentionOptions& o) { o.dropout.p = bad; }, "dropout", "[0, 1)");
  for (const double bad : {kNan, kInf, -kInf})
    expect_one([&](AttentionOptions& o) { o.sinks = {bad}; }, "sinks", "sinks[0] is");
  expect_one([](AttentionOptions& o) { o.sinks = {1, 2}; }, "sinks",
             "2 numbers where q has 1 heads");
  expect_one([](AttentionOptions& o) { o.query_start = std::numeric_limits<index_t>::max(); },
             "query_start", "between -2^61 and 2^61");
}

TEST(Check, refuses_masks_that_do_not_fit) {
  expect_one([](AttentionOptions& o) { o.mask = Mask::window(-2, 0); }, "mask.window",
             "left is -2");
  expect_one([](AttentionOptions& o) { o.mask = Mask::window({}, -1); }, "mask.window",
             "right is -1");
  expect_one([](AttentionOptions& o) { o.mask = Mask::key_lengths({9}); }, "mask.key_lengths",
             "lengths[0] is 9; a length lies between 0 and kv_len = 3");
  expect_one([](AttentionOptions& o) { o.mask = Mask::key_lengths({-1}); }, "mask.key_lengths",
             "lengths[0] is -1");
  expect_one([](AttentionOptions& o) { o.mask = Mask::key_lengths({1, 2}); }, "mask.key_lengths",
             "2 lengths where batch is 1");
  expect_one([](AttentionOptions& o) { o.mask = Mask::prefix({}); }, "mask.prefix", "0 lengths");
  expect_one([](AttentionOptions& o) { o.mask = Mask::prefix({4}); }, "mask.prefix",
             "lengths[0] is 4");
  expect_one([](AttentionOptions& o) { o.mask = Mask::segments(1, {1, 2}, {1, 2, 3}); },
             "mask.segments", "query_ids has 2 ids; [batch, q_len] = [1,3]");
  expect_one([](AttentionOptions& o) { o.mask = Mask::segments(2, {}, {}); }, "mask.segments",
             "batch 2 where q has 1");
  expect_one([](AttentionOptions& o) { o.mask = mask_of({2, 3}, std::vector<double>(6, 1.0)); },
             "mask.allowed", "axis q_len has 2 where 3 or 1 is right");
  expect_one([](AttentionOptions& o) { o.mask = mask_of({2}, {1, 1}); }, "mask.allowed",
             "axis kv_len has 2 where 3 or 1 is right");
  expect_one([](AttentionOptions& o) { o.mask = mask_of({2, 1, 1}, {1, 1}); }, "mask.allowed",
             "axis heads has 2 where 1 is right");
  expect_one(
      [](AttentionOptions& o) {
        Broadcast five = broadcast_of({1, 1, 3, 3}, std::vector<double>(9, 1.0), DType::u8);
        five.rank = 5;
        o.mask = Mask::allowed(five);
      },
      "mask.allowed", "has rank 5");
  expect_one(
      [](AttentionOptions& o) { o.mask = Mask::allowed(broadcast_of({3}, {1, 1, 0}, DType::f32)); },
      "mask.allowed", "has dtype f32; a mask is bool");
  expect_one(
      [](AttentionOptions& o) {
        Broadcast nothing = broadcast_of({3}, {1, 1, 0}, DType::u8);
        nothing.data = nullptr;
        o.mask = Mask::allowed(nothing);
      },
      "mask.allowed", "data is null");
}

TEST(Check, refuses_biases_that_cannot_be_added) {
  const std::vector<double> with_nan{0, 0, kNan}, with_inf{0, kInf, kInf};
  expect_one([&](AttentionOptions& o) { o.bias = bias_of({3}, with_nan); }, "bias.dense",
             "entry (2) is nan; a finite number is added, -inf hides the pair");
  expect_one([&](AttentionOptions& o) { o.bias = bias_of({1, 3}, with_inf); }, "bias.dense",
             "entry (0, 1) is inf (2 such entries)");
  expect_one([](AttentionOptions& o) { o.bias = bias_of({4}, {0, 0, 0, 0}); }, "bias.dense",
             "axis kv_len has 4 where 3 or 1 is right");
  expect_one([](AttentionOptions& o) { o.bias = bias_of({3}, {1, 1, 0}, DType::u8); }, "bias.dense",
             "has dtype bool");
  expect_one([](AttentionOptions& o) { o.bias = Bias::alibi({1, 2}); }, "bias.alibi",
             "2 slopes where q has 1 heads");
  expect_one([](AttentionOptions& o) { o.bias = Bias::alibi({kNan}); }, "bias.alibi",
             "slopes[0] is nan");
  const auto t5 = [](index_t buckets, index_t heads, std::size_t entries, index_t max_distance) {
    return Bias::t5({buckets, heads, std::vector<double>(entries, 0.0), true, max_distance});
  };
  expect_one([&](AttentionOptions& o) { o.bias = t5(32, 1, 31, 128); }, "bias.t5",
             "table has 31 numbers; [buckets, heads] = [32,1]");
  expect_one([&](AttentionOptions& o) { o.bias = t5(32, 2, 64, 128); }, "bias.t5",
             "heads is 2 where q has 1");
  expect_one([&](AttentionOptions& o) { o.bias = t5(2, 1, 2, 128); }, "bias.t5", "2 buckets");
  expect_one([&](AttentionOptions& o) { o.bias = t5(32, 1, 32, 8); }, "bias.t5",
             "max_distance is 8");
}

TEST(Check, looks_at_every_number_of_a_bias_whatever_its_type_and_strides) {
  for (const DType type : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    SCOPED_TRACE(name(type));
    const double most = type == DType::f16 ? 65504 : 0x1.fep127;
    for (std::size_t bad = 0; bad < 9; ++bad) {
      std::vector<double> values(9, -kInf);
      values[(bad + 4) % 9] = most;
      values[(bad + 5) % 9] = -most;
      Attention call = three_rows();
      Broadcast fine = broadcast_of({3, 3}, values, type);
      values[bad] = bad % 2 == 0 ? kInf : kNan;
      Broadcast wrong = broadcast_of({3, 3}, values, type);
      for (const bool is_transposed : {false, true}) {
        if (is_transposed) {
          std::swap(fine.strides[0], fine.strides[1]);
          std::swap(wrong.strides[0], wrong.strides[1]);
        }
        const std::size_t row = is_transposed ? bad % 3 : bad / 3;
        const std::size_t column = is_transposed ? bad / 3 : bad % 3;
        for (const DType compute : {DType::f32, DType::f64}) {
          call.options.bias = Bias::dense(fine);
          EXPECT_TRUE(problems_of(call, compute).empty());
          call.options.bias = Bias::dense(wrong);
          EXPECT_TRUE(says(problems_of(call, compute), "bias.dense",
                           "entry (" + std::to_string(row) + ", " + std::to_string(column) +
                               ") is " + (bad % 2 == 0 ? "inf" : "nan")));
        }
      }
    }
  }
}

TEST(Check, refuses_the_first_number_that_rounds_to_an_infinity_of_the_compute_type) {
  const double infinite = 0x1.ffffffp127;  // half way between the largest float and 2^128
  for (const double sign : {1.0, -1.0}) {
    Attention call = three_rows();
    call.options.bias = bias_of({3}, {0, sign * std::nextafter(infinite, 0), 0}, DType::f64);
    EXPECT_TRUE(problems_of(call, DType::f32).empty());
    call.options.bias = bias_of({3}, {0, sign * infinite, 0}, DType::f64);
    EXPECT_EQ(problems_of(call, DType::f32).size(), 1U);
    EXPECT_TRUE(problems_of(call, DType::f64).empty());
  }
}

TEST(Check, refuses_a_finite_bias_beyond_the_compute_type) {
  Attention call = three_rows();
  call.options.bias = bias_of({3}, {0, -1e300, 0}, DType::f64);
  EXPECT_TRUE(problems_of(call, DType::f64).empty());
  EXPECT_TRUE(says(problems_of(call, DType::f32), "bias.dense",
                   "beyond the range of the compute type f32"));
  call.options.bias = {};
  call.options.sinks = {1e300};
  EXPECT_TRUE(problems_of(call, DType::f64).empty());
  EXPECT_TRUE(says(problems_of(call, DType::bf16), "sinks", "sinks[0] is 1e300"));
}

TEST(Check, asks_for_query_start_only_where_positions_matter) {
  const Attention call = sizes({1, 1, 2, 4}, {1, 1, 5, 4}, {1, 1, 5, 4});
  const auto count = [&](AttentionOptions options) {
    Attention with = call;
    with.options = std::move(options);
    return problems_of(with).size();
  };
  AttentionOptions causal, window, prefix, alibi, by_key, t5, lengths, stated;
  causal.mask = Mask::causal();
  window.mask = Mask::window(1, {});
  prefix.mask = Mask::prefix({1});
  alibi.bias = Bias::alibi({0.5});
  by_key.bias = Bias::alibi({0.5}, Bias::AlibiForm::key_index);  // speaks of keys alone
  t5.bias = Bias::t5({32, 1, std::vector<double>(32, 0.0), true, 128});
  lengths.mask = Mask::key_lengths({3});
  stated = causal;
  stated.query_start = index_t{3};
  for (const auto& options : {causal, window, prefix, alibi, t5}) EXPECT_EQ(count(options), 1U);
  for (const auto& options : {by_key, lengths, stated}) EXPECT_EQ(count(options), 0U);
}

TEST(Check, names_every_problem_at_once_and_no_other) {
  Attention call = sizes({2, 3, 4, 8}, {2, 2, 5, 7}, {2, 1, 6, 8});
  call.options.scale = kNan;
  call.options.softcap = -1;
  call.options.mask = Mask::causal() & Mask::key_lengths({1, 2, 3});
  call.options.sinks = {0, 0};
  call.options.dropout.p = 1;
  const std::vector<Problem> problems = problems_of(call);
  std::vector<std::string> where;
  for (const Problem& problem : problems) where.push_back(problem.where);
  EXPECT_EQ(where, (std::vector<std::string>{"q", "k", "v", "v", "scale", "softcap", "dropout",
                                             "sinks", "query_start", "mask.key_lengths"}));
}

TEST(Check, lists_the_rows_without_a_key_under_error) {
  Attention call = sizes({1, 1, 4, 2}, {1, 1, 2, 2}, {1, 1, 2, 2});
  call.options.mask = Mask::causal();
  call.options.query_start = Align::end;
  EXPECT_TRUE(problems_of(call).empty());
  call.options.empty_row = EmptyRow::error;
  EXPECT_TRUE(says(problems_of(call), "empty_row",
                   "2 rows have no allowed key: (batch, head, row) (0, 0, 0), (0, 0, 1)"));
  EXPECT_TRUE(says(problems_of([&] {
                     Attention many = sizes({1, 1, 40, 2}, {1, 1, 2, 2}, {1, 1, 2, 2});
                     many.options = call.options;
                     return many;
                   }()),
                   "empty_row", "and 30 more"));
}

TEST(Check, a_row_with_a_sink_is_not_empty) {
  Attention call = sizes({1, 2, 2, 2}, {1, 1, 3, 2}, {1, 1, 3, 2});
  call.options.mask = Mask::key_lengths({0});
  call.options.empty_row = EmptyRow::error;
  EXPECT_TRUE(says(problems_of(call), "empty_row", "4 rows have no allowed key"));
  call.options.sinks = {0, -1};
  EXPECT_TRUE(problems_of(call).empty());
  const Result result = run(call, DType::f64);  // the sink takes everything
  EXPECT_EQ(result.out.x, std::vector<double>(8, 0.0));
  EXPECT_EQ(result.lse.x, (std::vector<double>{0, 0, -1, -1}));
}

TEST(Check, absurd_sizes_are_refused_without_overflow) {
  constexpr index_t kHuge = index_t{1} << 62;
  double x = 0;
  const ConstTensor<4> one(&x, DType::f64, {1, 1, 1, 1}, {1, 1, 1, 1});
  for (const std::array<index_t, 4>& shape : {std::array<index_t, 4>{kHuge, kHuge, 1, 1},
                                              {1, 1, kHuge, 8},
                                              {1, 1, 1, kHuge},
                                              {-1, 1, 1, 1}}) {
    const ConstTensor<4> huge(&x, DType::f64, shape, {0, 0, 0, 0});
    EXPECT_FALSE(check(huge, one, one).empty());
    EXPECT_FALSE(check(one, huge, huge).empty());
    EXPECT_FALSE(check(huge, huge, huge).empty());
  }
  const ConstTensor<4> far(&x, DType::f64, {1, 1, 3, 1}, {0, 0, kHuge, 0});
  EXPECT_TRUE(says(check(one, far, far), "k", "larger than 64-bit addresses"));
}

TEST(Check, no_row_is_looked_for_where_there_is_none) {
  constexpr index_t kMany = index_t{1} << 59;  // bytes to hold them all there can't be
  AttentionOptions options;
  options.empty_row = EmptyRow::error;
  const auto tensor = [](index_t batch, index_t heads) {
    return ConstTensor<4>(nullptr, DType::f64, {batch, heads, kMany, 1}, {0, 0, 0, 0});
  };
  EXPECT_TRUE(check(tensor(0, 1), tensor(0, 1), tensor(0, 1), options).empty());
  EXPECT_TRUE(check(tensor(1, 0), tensor(1, 0), tensor(1, 0), options).empty());
}

TEST(Check, refuses_null_and_misaligned_data) {
  double x[8] = {};
  const ConstTensor<4> good(x, DType::f64, {1, 1, 2, 2}, {4, 4, 2, 1});
  ConstTensor<4> bad = good;
  bad.data = nullptr;
  EXPECT_TRUE(says(check(good, bad, good), "k", "data is null, but [1,1,2,2] has 4 elements"));
  bad.data = reinterpret_cast<const unsigned char*>(x) + 3;
  EXPECT_TRUE(says(check(good, bad, good), "k", "not aligned to the 8 bytes"));
}

TEST(Check, attend_throws_what_check_finds_and_what_is_wrong_with_its_outputs) {
  const Stored q(Block({1, 1, 2, 2}, 1.0), DType::f64), k(Block({1, 1, 3, 2}, 1.0), DType::f64);
  Stored out(Block({1, 2, 2, 2}, 0.0), DType::f64);
  Tensor<std::uint8_t, 3> lse({1, 1, 2});
  RowState rows;
  rows.lse = lse;
  AttentionOptions options;
  options.softcap = kNan;
  try {
    attend(q.view(), k.view(), k.view(), out.mutable_view(), options, rows);
    FAIL() << "was not refused";
  } catch (const ShapeError& error) {
    EXPECT_EQ(error.function(), "attend");
    EXPECT_EQ(error.problems().size(), 3U);
    EXPECT_TRUE(says(error.problems(), "softcap", "nan"));
    EXPECT_TRUE(says(error.problems(), "out", "axis heads has 2 where 1 is right"));
    EXPECT_TRUE(says(error.problems(), "rows.lse", "has dtype bool"));
  }
  Stored right(Block({1, 1, 2, 2}, 0.0), DType::f64);
  EXPECT_THROW(attend(q.view(), k.view(), k.view(), right.mutable_view(), options), OptionError);
  MutableTensor<4> repeated = right.mutable_view();
  repeated.strides[2] = 0;
  EXPECT_THROW(attend(q.view(), k.view(), k.view(), repeated), OptionError);
  Stored both(Block({1, 1, 2, 2}, 0.0), DType::f64);
  EXPECT_THROW(attend(both.view(), k.view(), k.view(), both.mutable_view()), OptionError);
}

TEST(Check, results_that_begin_where_an_input_or_another_result_does_are_refused) {
  const Stored q(Block({1, 1, 2, 2}, 1.0), DType::f64);
  Stored k(Block({1, 1, 2, 2}, 1.0), DType::f64);
  Stored out(Block({1, 1, 2, 2}, 0.0), DType::f64);
  const auto problems_with = [](const auto& call) {
    try {
      call();
    } catch (const OptionError& error) {
      return error.problems();
    }
    return std::vector<Problem>{};
  };
  const auto row_at = [](const MutableTensor<4>& t) {
    return MutableTensor<3>(t.data, t.dtype, {1, 1, 2}, {2, 2, 1});
  };
  Stored state(Block({1, 1, 2, 1}, 0.0), DType::f64);
  const auto attended = [&](const RowState& rows) {
    return problems_with(
        [&] { attend(q.view(), k.view(), k.view(), out.mutable_view(), {}, rows); });
  };
  EXPECT_TRUE(attended({row_at(state.mutable_view()), {}, {}}).empty());
  EXPECT_TRUE(says(attended({row_at(out.mutable_view()), {}, {}}), "rows.max",
                   "shares its memory with out"));
  EXPECT_TRUE(says(attended({row_at(state.mutable_view()), {}, row_at(state.mutable_view())}),
                   "rows.lse", "shares its memory with rows.max"));
  EXPECT_TRUE(
      says(attended({{}, row_at(k.mutable_view()), {}}), "rows.sum", "shares its memory with k"));
  EXPECT_TRUE(says(problems_with([&] {
                     attention_weights(q.view(), k.view(), {}, {0, 1, 0, 2}, k.mutable_view());
                   }),
                   "weights", "shares its memory with k"));
  Stored dk(Block({1, 1, 2, 2}, 0.0), DType::f64);
  const auto gradients = [&](const MutableTensor<4>& dq, const MutableTensor<4>& dv) {
    return problems_with([&] {
      attend_backward(q.view(), q.view(), k.view(), k.view(), {dq, dk.mutable_view(), dv});
    });
  };
  EXPECT_TRUE(
      says(gradients(out.mutable_view(), out.mutable_view()), "dv", "shares its memory with dq"));
  EXPECT_TRUE(
      says(gradients(out.mutable_view(), k.mutable_view()), "dv", "shares its memory with k"));
  Stored d_out(Block({1, 1, 2, 2}, 1.0), DType::f64);
  EXPECT_TRUE(says(problems_with([&] {
                     attend_backward(d_out.view(), q.view(), k.view(), k.view(),
                                     {d_out.mutable_view(), dk.mutable_view(), out.mutable_view()});
                   }),
                   "dq", "shares its memory with d_out"));
}

TEST(Check, weights_and_gradients_refuse_what_does_not_fit_them) {
  const Stored q(Block({1, 2, 2, 2}, 1.0), DType::f64), k(Block({1, 1, 3, 2}, 1.0), DType::f64);
  Stored weights(Block({1, 1, 2, 3}, 0.0), DType::f64);
  for (const RowRange& range :
       {RowRange{0, 3, 0, 2}, RowRange{1, 0, 0, 2}, RowRange{0, 1, -1, 1}, RowRange{0, 2, 0, 2}})
    EXPECT_THROW(attention_weights(q.view(), k.view(), {}, range, weights.mutable_view()),
                 ShapeError);
  attention_weights(q.view(), k.view(), {}, {1, 2, 0, 2}, weights.mutable_view());
  Stored dq(Block({1, 2, 2, 2}, 0.0), DType::f64), dk(Block({1, 1, 3, 2}, 0.0), DType::f64);
  const Stored d_out(Block({1, 2, 2, 1}, 1.0), DType::f64);
  EXPECT_THROW(attend_backward(d_out.view(), q.view(), k.view(), k.view(),
                               {dq.mutable_view(), dk.mutable_view(), dk.mutable_view()}),
               ShapeError);
}

TEST(Findings, numbers_are_written_as_one_would) {
  const std::pair<double, const char*> written[] = {{0, "0"},
                                                    {-0.0, "0"},
                                                    {-1, "-1"},
                                                    {0.25, "0.25"},
                                                    {1.5e300, "1.5e300"},
                                                    {1e-300, "1e-300"},
                                                    {kNan, "nan"},
                                                    {kInf, "inf"},
                                                    {-kInf, "-inf"},
                                                    {12345678, "12345678"},
                                                    {0.9999999, "1"},
                                                    {1e15, "1e15"},
                                                    {-2.5e-5, "-2.5e-5"}};
  for (const auto& [x, text] : written) EXPECT_EQ(number_text(x), text);
}

}  // namespace
}  // namespace glasshead::test
