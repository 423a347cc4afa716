// The fused gradients: against the readable path and plain f32 over the case table, the same bits
// however the work is cut, and what must not reach them.
#include <algorithm>
#include <memory>
#include <optional>

#include "case_table.h"
#include "naive_backward.h"
#include "testing.h"

namespace glasshead::test {
namespace {

// Every gradient that a call has, as numbers.
struct AllGradients {
  std::vector<std::vector<double>> parts;  // dq, dk, dv, each term's, the sinks'
};

Block d_out_of(const Attention& call, std::uint64_t seed = 71) {
  return random_block({call.q.shape[0], call.q.shape[1], call.q.shape[2], call.v.shape[3]}, seed);
}

MutableTensor<3> rows_of(Stored& stored) {
  const MutableTensor<4> t = stored.mutable_view();
  return {t.data,
          t.dtype,
          {t.shape[0], t.shape[1], t.shape[2]},
          {t.strides[0], t.strides[1], t.strides[2]}};
}

enum class Path { with_rows, without_rows, transparent };

// Results over garbage, in f64, so that nothing is rounded away.
AllGradients gradients_of(const Attention& call, const Block& d_out, DType type,
                          Path path = Path::with_rows, const Context& context = default_context(),
                          const Layout& d_out_layout = {}) {
  const Stored q(call.q, type, call.q_layout), k(call.k, type, call.k_layout),
      v(call.v, type, call.v_layout), d(d_out, type, d_out_layout);
  Stored dq(Block(call.q.shape, 77.0), DType::f64), dk(Block(call.k.shape, 77.0), DType::f64),
      dv(Block(call.v.shape, 77.0), DType::f64);
  Gradients gradients{dq.mutable_view(), dk.mutable_view(), dv.mutable_view()};
  std::vector<std::unique_ptr<Stored>> terms;
  for (const Bias::Term& term : call.options.bias.terms()) {
    terms.push_back(std::make_unique<Stored>(Block(term_shape(term), 77.0), DType::f64));
    gradients.d_bias.push_back(terms.back()->mutable_view());
    if (std::holds_alternative<Bias::Alibi>(term)) gradients.d_bias.back().data = nullptr;
  }
  const auto heads = static_cast<index_t>(call.options.sinks.size());
  Stored sinks(Block({heads, 1, 1, 1}, 77.0), DType::f64);
  if (heads > 0) gradients.d_sinks = {sinks.mutable_view().data, DType::f64, {heads}, {1}};

  if (path == Path::transparent) {
    attend_backward_transparent(d.view(), q.view(), k.view(), v.view(), gradients, call.options);
  } else if (path == Path::without_rows) {
    attend_backward(d.view(), q.view(), k.view(), v.view(), gradients, call.options, context);
  } else {
    const DType wide = type == DType::f64 ? DType::f64 : DType::f32;
    Stored out(Block(d_out.shape, 77.0), wide);
    const Block row({d_out.shape[0], d_out.shape[1], d_out.shape[2], 1}, 77.0);
    Stored max(row, wide), sum(row, wide);
    const RowState rows{rows_of(max), rows_of(sum), {}};
    attend(q.view(), k.view(), v.view(), out.mutable_view(), call.options, rows, context);
    attend_backward(d.view(), q.view(), k.view(), v.view(), out.view(), rows, gradients,
                    call.options, context);
  }
  AllGradients result{{dq.block().x, dk.block().x, dv.block().x}};
  for (std::size_t n = 0; n < terms.size(); ++n) {
    const bool is_wanted = gradients.d_bias[n].data != nullptr;
    result.parts.push_back(is_wanted ? terms[n]->block().x : std::vector<double>{});
  }
  result.parts.push_back(sinks.block().x);
  return result;
}

void expect_same(const AllGradients& a, const AllGradients& b) {
  ASSERT_EQ(a.parts.size(), b.parts.size());
  for (std::size_t n = 0; n < a.parts.size(); ++n)
    EXPECT_TRUE(same_bits(a.parts[n], b.parts[n])) << "gradient " << n;
}

template <class R>
std::vector<std::vector<R>> parts_of(const NaiveGradients<R>& naive) {
  std::vector<std::vector<R>> parts{naive.dq, naive.dk, naive.dv};
  parts.insert(parts.end(), naive.d_bias.begin(), naive.d_bias.end());
  parts.push_back(naive.d_sinks);
  return parts;
}

template <class Found, class Exact>
double largest_error(const std::vector<Found>& found, const std::vector<Exact>& exact) {
  double largest = 0;
  for (std::size_t n = 0; n < found.size(); ++n) {
    const double error = std::fabs(static_cast<double>(found[n]) - static_cast<double>(exact[n]));
    if (std::isnan(error)) return error;  // no bar is above it
    largest = std::max(largest, error);
  }
  return largest;
}

Attention rounded(const Attention& call, DType type) {
  Attention result = call;
  result.q = Stored(call.q, type).block();
  result.k = Stored(call.k, type).block();
  result.v = Stored(call.v, type).block();
  return result;
}

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

// What a gradient of size 1 is multiplied with on its way.
double largest_factor(const Attention& call) {
  return std::max({1.0, largest_of(call.q), largest_of(call.k)}) *
         std::max(1.0, largest_of(call.v));
}

template <class F>
void for_cases(const F& f) {
  for (const Case& entry : case_table()) {
    SCOPED_TRACE(entry.name);
    f(entry.call);
  }
}

TEST(Backward, f64_agrees_with_the_readable_path_and_both_with_the_naive_one) {
  for_cases([](const Attention& call) {
    const Block d_out = d_out_of(call);
    const auto exact = parts_of(naive_backward<long double>(call, d_out));
    // A few roundings of 2^-53 on each score, weight, product and sum, over d_v and the rows.
    const double bar = 0x1p-53 * 64 * largest_score(call) * largest_factor(call);
    for (const Path path : {Path::with_rows, Path::without_rows, Path::transparent}) {
      const AllGradients found = gradients_of(call, d_out, DType::f64, path);
      for (std::size_t n = 0; n < exact.size(); ++n) {
        if (exact[n].empty()) continue;
        EXPECT_LE(largest_error(found.parts[n], exact[n]), bar) << "gradient " << n;
      }
    }
  });
}

// The bar: at most twice the error of plain f32, plus a few units of what a gradient is made of.
TEST(Backward, f32_is_at_most_twice_as_far_off_as_plain_f32) {
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    SCOPED_TRACE(name(type));
    for_cases([&](const Attention& given) {
      const Attention call = rounded(given, type);
      const Block d_out = Stored(d_out_of(call), type).block();
      const auto exact = parts_of(naive_backward<long double>(call, d_out));
      const auto plain = parts_of(naive_backward<float>(call, d_out));
      const AllGradients found = gradients_of(call, d_out, type);
      for (std::size_t n = 0; n < exact.size(); ++n) {
        if (exact[n].empty()) continue;
        EXPECT_LE(largest_error(found.parts[n], exact[n]),
                  2 * largest_error(plain[n], exact[n]) + 4 * 0x1p-24 * largest_factor(call))
            << "gradient " << n;
      }
    });
  }
}

// Long rows: many blocks, two chunks of keys, rows of several groups; where sums are long.
std::vector<Case> long_cases() {
  std::vector<Case> list;
  const auto add = [&](const char* name, const Sizes& sizes, const auto& edit) {
    Case entry{name, random_call(sizes, 9)};
    edit(entry.call.options);
    list.push_back(std::move(entry));
  };
  add("full", {1, 2, 2, 130, 1300, 9, 8}, [](AttentionOptions&) {});
  add("causal, group 2", {2, 4, 2, 260, 260, 16, 24},
      [](AttentionOptions& o) { o.mask = Mask::causal(); });
  add("window, more keys, group 3", {1, 3, 1, 150, 1200, 8, 5}, [](AttentionOptions& o) {
    o.mask = Mask::causal() & Mask::window(300, 0);
    o.query_start = Align::end;
  });
  add("lengths, alibi, sinks", {3, 2, 2, 97, 200, 8, 8}, [](AttentionOptions& o) {
    o.mask = Mask::key_lengths({200, 3, 129});
    o.bias = Bias::alibi({0.5, 0.01});
    o.sinks = {0.5, -1};
    o.query_start = index_t{50};
  });
  add("booleans, dense bias, softcap", {1, 4, 1, 70, 300, 8, 8}, [](AttentionOptions& o) {
    o.mask = random_mask({70, 300}, 3, 0.5);
    o.bias = random_bias({4, 1, 300}, 4, DType::f32, 0.9) + random_bias({70, 1}, 5, DType::f64);
    o.softcap = 3;
  });
  add("t5, dropout", {2, 2, 1, 140, 280, 8, 8}, [](AttentionOptions& o) {
    Bias::T5 t5{16, 2, {}, true, 60};
    for (index_t n = 0; n < 32; ++n)
      t5.table.push_back(standard_normal(21, static_cast<std::uint64_t>(n)));
    o.bias = Bias::t5(t5);
    o.dropout = {0.2, 5};
    o.query_start = Align::end;
  });
  return list;
}

TEST(Backward, of_long_rows_agree_with_the_readable_path) {
  for (const Case& entry : long_cases()) {
    SCOPED_TRACE(entry.name);
    const Block d_out = d_out_of(entry.call);
    const AllGradients exact = gradients_of(entry.call, d_out, DType::f64, Path::transparent);
    const AllGradients f64 = gradients_of(entry.call, d_out, DType::f64);
    const Attention call = rounded(entry.call, DType::f32);
    const Block narrow = Stored(d_out, DType::f32).block();
    const AllGradients exact32 = gradients_of(call, narrow, DType::f64, Path::transparent);
    const AllGradients f32 = gradients_of(call, narrow, DType::f32);
    const auto plain = parts_of(naive_backward<float>(call, narrow));
    for (std::size_t n = 0; n < exact.parts.size(); ++n) {
      if (exact.parts[n].empty()) continue;
      EXPECT_LE(largest_error(f64.parts[n], exact.parts[n]),
                0x1p-53 * 64 * largest_score(call) * largest_factor(call))
          << "gradient " << n;
      EXPECT_LE(largest_error(f32.parts[n], exact32.parts[n]),
                2 * largest_error(plain[n], exact32.parts[n]) + 4 * 0x1p-24 * largest_factor(call))
          << "gradient " << n;
    }
  }
}

// One thread makes whole heads; where threads outnumber them, dq and dk, dv are made apart.
TEST(Backward, has_the_same_bits_on_any_threads_and_any_instruction_set) {
  for (const Case& entry : long_cases()) {
    SCOPED_TRACE(entry.name);
    const Block d_out = d_out_of(entry.call);
    for (const DType type : {DType::f32, DType::f64}) {
      SCOPED_TRACE(name(type));
      std::optional<AllGradients> first;
      for (const KernelSetInfo& set : kernel_sets()) {
        if (!set.is_supported) continue;
        for (const int threads : {1, 2, 3, 8}) {
          if (threads == 3 && std::string(set.name) == "scalar") continue;  // seconds saved
          SCOPED_TRACE(set.name + std::to_string(threads));
          const Context context({.isa = set.name, .threads = threads, .parallel_for = nullptr});
          const AllGradients found =
              gradients_of(entry.call, d_out, type, Path::with_rows, context);
          if (!first)
            first = found;
          else
            expect_same(found, *first);
        }
      }
    }
  }
}

// The entries of the batch in another order.
Block reversed(const Block& block) {
  Block result = block;
  const std::size_t size = block.x.size() / static_cast<std::size_t>(block.shape[0]);
  for (std::size_t b = 0; b < static_cast<std::size_t>(block.shape[0]); ++b)
    std::copy_n(block.x.begin() + static_cast<std::ptrdiff_t>(b * size), size,
                result.x.end() - static_cast<std::ptrdiff_t>((b + 1) * size));
  return result;
}

TEST(Backward, of_a_reversed_batch_are_reversed_and_each_entry_is_as_alone) {
  Attention call = random_call({3, 4, 2, 140, 150, 8, 7}, 12);
  call.options.mask = Mask::causal();
  call.options.query_start = Align::end;
  const Block d_out = d_out_of(call);
  Attention other = call;
  other.q = reversed(call.q);
  other.k = reversed(call.k);
  other.v = reversed(call.v);
  for (const DType type : {DType::f32, DType::f64}) {
    const AllGradients a = gradients_of(call, d_out, type);
    const AllGradients b = gradients_of(other, reversed(d_out), type);
    EXPECT_TRUE(same_bits(b.parts[0], reversed({call.q.shape, a.parts[0]}).x));
    EXPECT_TRUE(same_bits(b.parts[1], reversed({call.k.shape, a.parts[1]}).x));
    EXPECT_TRUE(same_bits(b.parts[2], reversed({call.v.shape, a.parts[2]}).x));
    const auto first_of = [](const Block& block) {
      const auto size = static_cast<std::ptrdiff_t>(block.x.size()) / block.shape[0];
      return Block({1, block.shape[1], block.shape[2], block.shape[3]},
                   {block.x.begin(), block.x.begin() + size});
    };
    const Attention alone{first_of(call.q), first_of(call.k), first_of(call.v), call.options};
    const AllGradients c = gradients_of(alone, first_of(d_out), type);
    EXPECT_TRUE(same_bits(c.parts[0], first_of({call.q.shape, a.parts[0]}).x));
    EXPECT_TRUE(same_bits(c.parts[1], first_of({call.k.shape, a.parts[1]}).x));
    EXPECT_TRUE(same_bits(c.parts[2], first_of({call.v.shape, a.parts[2]}).x));
  }
}

TEST(Backward, of_any_layout_have_the_bits_of_a_dense_copy) {
  const std::vector<Layout> layouts{{{0, 2, 1, 3}, 1, -1},
                                    {{3, 2, 1, 0}, 1, -1},
                                    {{0, 1, 2, 3}, 3, -1},
                                    {{0, 1, 2, 3}, 1, 2},
                                    {{1, 3, 0, 2}, 2, 3}};
  for_cases([&](const Attention& call) {
    const Block d_out = d_out_of(call);
    for (const DType type : {DType::f64, DType::f32, DType::bf16}) {
      const AllGradients dense = gradients_of(call, d_out, type);
      Attention other = call;
      for (std::size_t n = 0; n < layouts.size(); ++n) {
        other.q_layout = layouts[n];
        other.k_layout = layouts[(n + 1) % layouts.size()];
        other.v_layout = layouts[(n + 3) % layouts.size()];
        expect_same(gradients_of(other, d_out, type, Path::with_rows, default_context(),
                                 layouts[(n + 2) % layouts.size()]),
                    dense);
      }
    }
  });
}

TEST(Backward, writes_results_of_any_type_and_layout_rounded_once) {
  const Attention call = random_call({2, 4, 2, 5, 140, 6, 3}, 14);
  const Block d_out = d_out_of(call);
  const AllGradients wide = gradients_of(call, d_out, DType::f32);
  const Stored q(call.q, DType::f32), k(call.k, DType::f32), v(call.v, DType::f32),
      d(d_out, DType::f32);
  const Layout backwards{{0, 2, 1, 3}, 2, 2};
  for (const DType type : kAllTypes) {
    Stored dq(Block(call.q.shape, 77.0), type, backwards), dk(Block(call.k.shape, 77.0), type),
        dv(Block(call.v.shape, 77.0), type, {{3, 2, 1, 0}, 1, 3});
    attend_backward(d.view(), q.view(), k.view(), v.view(),
                    {dq.mutable_view(), dk.mutable_view(), dv.mutable_view()});
    EXPECT_TRUE(same_bits(dq.block().x, Stored({call.q.shape, wide.parts[0]}, type).block().x));
    EXPECT_TRUE(same_bits(dk.block().x, Stored({call.k.shape, wide.parts[1]}, type).block().x));
    EXPECT_TRUE(same_bits(dv.block().x, Stored({call.v.shape, wide.parts[2]}, type).block().x));
  }
}

// --- what must not reach them ---

// Query row 3 sees keys 0 to 3. Poison in a later key, its value, a later query or its d_out
// reaches neither that row's dq nor the gradients of keys that the poisoned row doesn't see.
TEST(Backward, keep_what_is_hidden_from_a_row_out_of_it) {
  for (const DType type : {DType::f32, DType::f64}) {
    for (const double poison : {kNan, kInf, -kInf}) {
      for (const index_t n : {index_t{8}, index_t{200}}) {
        Attention call = random_call({1, 2, 1, n, n, 4, 4}, 15);
        call.options.mask = Mask::window(2, 0);
        Block d_out = d_out_of(call);
        const AllGradients clean = gradients_of(call, d_out, type);
        const index_t at = n - 4;
        Attention keys = call;  // rows at .. at+2 see key `at`
        for (index_t d = 0; d < 4; ++d) keys.k(0, 0, at, d) = keys.v(0, 0, at, d) = poison;
        const AllGradients found = gradients_of(keys, d_out, type);
        for (index_t h = 0; h < 2; ++h)
          for (index_t i = 0; i < n; ++i)
            for (index_t d = 0; d < 4; ++d) {
              const std::size_t e = call.q.index(0, h, i, d);
              if (i < at || i > at + 2)
                EXPECT_EQ(found.parts[0][e], clean.parts[0][e]) << "row " << i;
              else
                EXPECT_FALSE(std::isfinite(found.parts[0][e])) << "row " << i;
            }
        Attention rows = call;  // row `at` sees keys at-2 .. at
        for (index_t d = 0; d < 4; ++d) rows.q(0, 1, at, d) = d_out(0, 1, at, d) = poison;
        const AllGradients other = gradients_of(rows, d_out, type);
        for (index_t j = 0; j < n; ++j)
          for (index_t d = 0; d < 4; ++d) {
            const std::size_t e = call.k.index(0, 0, j, d);
            if (j >= at - 2 && j <= at) continue;
            EXPECT_EQ(other.parts[1][e], clean.parts[1][e]) << "key " << j;
            EXPECT_EQ(other.parts[2][e], clean.parts[2][e]) << "key " << j;
          }
      }
    }
  }
}

// An infinite key of a score -inf has weight 0 for a row that sees it: no 0 * inf.
TEST(Backward, of_a_score_of_minus_infinity_are_zero_in_every_type) {
  for (const DType type : {DType::f32, DType::f64}) {
    const Attention call{Block({1, 1, 2, 1}, 1.0),
                         Block({1, 1, 3, 1}, {-kInf, 0, 1}),
                         Block({1, 1, 3, 1}, {7, 1, 2}),
                         {}};
    const AllGradients found = gradients_of(call, Block({1, 1, 2, 1}, 1.0), type);
    const AllGradients exact =
        gradients_of(call, Block({1, 1, 2, 1}, 1.0), DType::f64, Path::transparent);
    EXPECT_EQ(found.parts[1][0], 0.0);
    EXPECT_EQ(found.parts[2][0], 0.0);
    for (std::size_t n = 0; n < 3; ++n)
      EXPECT_LE(largest_error(found.parts[n], exact.parts[n]), 1e-6);  // f32: a few units
  }
}

TEST(Backward, of_rows_without_a_key_are_zero) {
  for (const DType type : {DType::f32, DType::f64}) {
    Attention call = random_call({2, 2, 2, 5, 4, 3, 2}, 16);
    call.options.mask = Mask::key_lengths({0, 4});
    for (std::size_t n = 0; n < 30; ++n) call.q.x[n] = kNan;  // batch entry 0
    Block d_out = d_out_of(call);
    for (std::size_t n = 0; n < 20; ++n) d_out.x[n] = kInf;
    const AllGradients found = gradients_of(call, d_out, type);
    for (std::size_t part = 0; part < 3; ++part)
      for (std::size_t n = 0; n < found.parts[part].size() / 2; ++n)
        EXPECT_EQ(found.parts[part][n], 0.0);
    for (const double x : found.parts[0]) EXPECT_TRUE(std::isfinite(x));
  }
}

TEST(Backward, of_no_rows_or_no_keys_are_zero) {
  for (const Sizes& sizes : {Sizes{2, 2, 1, 0, 3, 4, 4}, Sizes{2, 2, 1, 3, 0, 4, 4},
                             Sizes{0, 2, 1, 3, 3, 4, 4}, Sizes{1, 2, 2, 3, 5, 4, 0}}) {
    Attention call = random_call(sizes);
    call.options.sinks = {0.5, 1};
    const AllGradients found = gradients_of(call, d_out_of(call), DType::f32);
    for (const std::vector<double>& part : found.parts)
      for (const double x : part) EXPECT_EQ(x, 0.0);
  }
}

// --- refusals ---

TEST(Backward, refuses_everything_that_is_wrong_at_once) {
  const Stored q(Block({1, 2, 2, 4}, 1.0), DType::f32), k(Block({1, 1, 3, 4}, 1.0), DType::f32),
      d_out(Block({1, 2, 2, 4}, 1.0), DType::f32), out(Block({1, 2, 3, 4}, 1.0), DType::f32);
  Stored dq(Block({1, 2, 2, 4}, 0.0), DType::f32), dk(Block({1, 1, 3, 4}, 0.0), DType::f32),
      dv(Block({1, 1, 3, 5}, 0.0), DType::f32), max(Block({1, 2, 2, 1}, 0.0), DType::bf16),
      sum(Block({1, 2, 2, 1}, 0.0), DType::f32), term(Block({1, 1, 1, 1}, 0.0), DType::f32);
  AttentionOptions options;
  options.bias = Bias::alibi({1, 2}) + bias_of({2, 3}, {1, 2, 3, 4, 5, 6});
  Gradients gradients{dq.mutable_view(), dk.mutable_view(), dv.mutable_view()};
  gradients.d_bias = {term.mutable_view(), term.mutable_view()};
  gradients.d_sinks = {term.mutable_view().data, DType::f32, {3}, {1}};
  std::vector<Problem> problems;
  try {
    attend_backward(d_out.view(), q.view(), k.view(), k.view(), out.view(), {rows_of(max), {}, {}},
                    gradients, options);
  } catch (const ShapeError& e) {
    EXPECT_EQ(e.function(), "attend_backward");
    problems = e.problems();
  }
  EXPECT_TRUE(says(problems, "out", "[1,2,3,4]"));
  EXPECT_TRUE(says(problems, "rows.max", "bf16"));
  EXPECT_TRUE(says(problems, "rows.sum", "[1,2,2] is right"));
  EXPECT_TRUE(says(problems, "dv", "needed [1,1,3,4]"));
  EXPECT_TRUE(says(problems, "d_bias[0]", "ALiBi"));
  EXPECT_TRUE(says(problems, "d_bias[1]", "needed [1,1,2,3]"));
  EXPECT_TRUE(says(problems, "d_sinks", "has 3 where 0"));
  EXPECT_TRUE(says(problems, "d_bias", "shares its memory with d_sinks"));
  EXPECT_TRUE(says(problems, "d_bias", "shares its memory with d_bias"));
}

TEST(Backward, names_rows_without_a_key_where_that_is_an_error) {
  Attention call{
      Block({1, 1, 2, 1}, {1, 1}), Block({1, 1, 1, 1}, -kInf), Block({1, 1, 1, 1}, 1.0), {}};
  call.options.empty_row = EmptyRow::error;
  try {
    gradients_of(call, Block({1, 1, 2, 1}, 1.0), DType::f32, Path::without_rows);
    ADD_FAILURE() << "accepted";
  } catch (const OptionError& e) {
    EXPECT_EQ(e.function(), "attend_backward");
    EXPECT_TRUE(says(e.problems(), "empty_row", "2 rows have only scores of -inf"));
  }
}

}  // namespace
}  // namespace glasshead::test
