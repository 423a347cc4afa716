// The fused path over random calls against the literal row function, by memcmp: every kernel set
// that runs here, 1, 2, 3 and 8 threads, every type and layout, every mask, bias and option, NaN,
// infinities and subnormals; and parts of a call against the whole.
#include <cstring>
#include <map>

#include "core/bias_plan.h"
#include "core/mask_plan.h"
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

// What attend writes, widened (which keeps every bit of a NaN).
struct Written {
  Block out, max, sum, lse;
};

Written written(const Attention& call, DType type, const Context& context) {
  const DType compute = type == DType::f64 ? DType::f64 : DType::f32;
  const Stored q(call.q, type, call.q_layout), k(call.k, type, call.k_layout),
      v(call.v, type, call.v_layout);
  const auto& s = call.q.shape;
  Stored out(Block({s[0], s[1], s[2], call.v.shape[3]}, 77.0), compute);
  const Block rows({s[0], s[1], s[2], 1}, 77.0);
  Stored max(rows, compute), sum(rows, compute), lse(rows, compute);
  const auto state = [](Stored& stored) {
    const MutableTensor<4> t = stored.mutable_view();
    return MutableTensor<3>(t.data, t.dtype, {t.shape[0], t.shape[1], t.shape[2]},
                            {t.strides[0], t.strides[1], t.strides[2]});
  };
  attend(q.view(), k.view(), v.view(), out.mutable_view(), call.options,
         {state(max), state(sum), state(lse)}, context);
  return {out.block(), max.block(), sum.block(), lse.block()};
}

template <class T>
std::vector<T> narrowed(const Block& block) {
  std::vector<T> numbers;
  for (const double x : block.x) numbers.push_back(static_cast<T>(x));
  return numbers;
}

template <class T>
RowReference<T> literal_row(const Attention& call, const MaskPlan& mask, const BiasPlan& bias,
                            const std::array<std::vector<T>, 3>& qkv,
                            const std::array<index_t, 3>& at, bool in_bf16) {
  const auto [b, h, i] = at;
  const AttentionOptions& options = call.options;
  const index_t kv_len = call.k.shape[2], d_k = call.k.shape[3], d_v = call.v.shape[3];
  const index_t head =
      b * call.k.shape[1] + h / (call.q.shape[1] / call.k.shape[1]);  // of keys and values
  std::vector<std::uint8_t> allowed(static_cast<std::size_t>(kv_len)), kept(allowed.size(), 1);
  std::vector<T> added(allowed.size());
  const KeyRange keys = mask.key_range(b, h, i);
  mask.fill_row(b, h, i, keys, allowed.data());
  for (index_t j = keys.begin; j < keys.end; ++j) {
    const auto n = static_cast<std::size_t>(j);
    if (!bias.is_empty()) added[n] = bias.at<T>(b, h, i, j);
    if (options.dropout.p > 0 && dropped(options.dropout.seed, {b, h, i, j}, options.dropout.p))
      kept[n] = 0;
  }
  RowInputs<T> row;
  row.q = {qkv[0].data() + ((b * call.q.shape[1] + h) * call.q.shape[2] + i) * d_k, {d_k}};
  row.scale =
      options.scale ? *options.scale : 1.0 / std::sqrt(static_cast<double>(call.q.shape[3]));
  row.k = {qkv[1].data() + head * kv_len * d_k, {kv_len, d_k}};
  row.v = {qkv[2].data() + head * kv_len * d_v, {kv_len, d_v}};
  row.softcap = static_cast<T>(options.softcap);
  if (!bias.is_empty()) row.bias = {added.data(), {kv_len}};
  row.allowed = {allowed.data(), {kv_len}};
  if (!options.sinks.empty()) row.sink = static_cast<T>(options.sinks[static_cast<std::size_t>(h)]);
  if (options.dropout.p > 0) row.kept = {kept.data(), {kv_len}};
  row.dropout_p = options.dropout.p;
  row.in_bf16 = in_bf16;
  return row_reference(row);
}

// Every row of the call by the literal function.
template <class T>
Written literal(const Attention& call, DType type, bool in_bf16 = false) {
  const auto& s = call.q.shape;
  const PairShape pairs{s[0], s[1], s[2], call.k.shape[2]};
  const MaskPlan mask(call.options, pairs);
  const BiasPlan bias(call.options, pairs);
  const std::array<std::vector<T>, 3> qkv{narrowed<T>(Stored(call.q, type).block()),
                                          narrowed<T>(Stored(call.k, type).block()),
                                          narrowed<T>(Stored(call.v, type).block())};
  const Block rows({s[0], s[1], s[2], 1}, 0.0);
  Written result{Block({s[0], s[1], s[2], call.v.shape[3]}, 0.0), rows, rows, rows};
  for (index_t b = 0; b < s[0]; ++b)
    for (index_t h = 0; h < s[1]; ++h)
      for (index_t i = 0; i < s[2]; ++i) {
        const RowReference<T> row = literal_row<T>(call, mask, bias, qkv, {b, h, i}, in_bf16);
        for (index_t d = 0; d < call.v.shape[3]; ++d)
          result.out(b, h, i, d) = static_cast<double>(row.out[static_cast<std::size_t>(d)]);
        result.max(b, h, i, 0) = static_cast<double>(row.max + T(0));  // attend writes no -0
        result.sum(b, h, i, 0) = static_cast<double>(row.sum);
        result.lse(b, h, i, 0) = static_cast<double>(row.lse);
      }
  return result;
}

void expect_same(const Written& found, const Written& expected, const std::string& how) {
  const auto same = [&](const Block& x, const Block& y, const char* what) {
    if (same_bits(x.x, y.x)) return;
    std::size_t n = 0;
    while (std::memcmp(&x.x[n], &y.x[n], sizeof(double)) == 0) ++n;
    const auto row = static_cast<index_t>(n) / x.shape[3];
    ADD_FAILURE() << what << " by " << how << ", row " << row / x.shape[2] / x.shape[1] << " "
                  << row / x.shape[2] % x.shape[1] << " " << row % x.shape[2] << ": " << x.x[n]
                  << " instead of " << y.x[n];
  };
  same(found.out, expected.out, "out");
  same(found.max, expected.max, "max");
  same(found.sum, expected.sum, "sum");
  same(found.lse, expected.lse, "lse");
}

// Every set, each with one thread and with several; in f64 those that round do not.
void expect_literal(const Attention& call, DType type, CallDraw& draw) {
  const bool is_f64 = type == DType::f64;
  const auto expect = [&](const std::vector<KernelSetInfo>& sets, const Written& expected) {
    for (const KernelSetInfo& set : sets) {
      if (!set.is_supported) continue;
      const int several[] = {2, 3, 8};
      for (const int threads : {1, several[draw.below(3)]})
        expect_same(written(call, type, context_of(set.name, threads)), expected,
                    std::string(set.name) + " on " + std::to_string(threads));
    }
  };
  expect(kernel_sets(), is_f64 ? literal<double>(call, type) : literal<float>(call, type));
  expect(rounding_kernel_sets(),
         is_f64 ? literal<double>(call, type) : literal<float>(call, type, true));
}

Kind any_kind(CallDraw& draw) {
  const Kind kinds[] = {Kind::normal, Kind::large,   Kind::huge,
                        Kind::tiny,   Kind::special, Kind::special};
  return kinds[draw.below(6)];
}

// Tensors of the call in random kinds, each its own.
Attention any_call(CallDraw& draw, const CallDraw::Shape& shape) {
  Attention call = draw.call(shape, Kind::normal);
  for (Block* block : {&call.q, &call.k, &call.v})
    if (draw.one_in(2)) *block = draw.block(block->shape, any_kind(draw));
  return call;
}

CallDraw::Shape any_shape(CallDraw& draw) {
  const index_t groups[] = {1, 1, 2, 3, 4, 8, 33};
  CallDraw::Shape shape;
  shape.kv_heads = draw.within(1, 2);
  const index_t group = groups[draw.below(7)];
  const index_t kv_lens[] = {draw.within(0, 9), draw.within(10, 60), draw.within(120, 140),
                             draw.within(100, 300)};
  const index_t q_len = draw.one_in(6) ? draw.within(1, 60) : draw.within(1, 7);
  shape.pairs = {draw.within(1, 2), shape.kv_heads * group, group > 8 ? 1 : q_len,
                 kv_lens[draw.below(4)]};
  shape.d_k = draw.within(1, 20);
  shape.d_v = draw.within(0, 20);
  return shape;
}

TEST(Fused, rows_are_those_of_the_literal_row_function) {
  for (std::uint64_t seed = 1; seed <= 1000 && !HasFailure(); ++seed) {
    CallDraw draw(seed);
    const CallDraw::Shape shape = any_shape(draw);
    Attention call = any_call(draw, shape);
    if (shape.pairs.kv_len > 0 && draw.one_in(4))
      call.options.query_start = draw.start(shape.pairs);
    const DType type = draw.type();
    SCOPED_TRACE(std::string(name(type)) + ", seed " + std::to_string(seed));
    expect_literal(call, type, draw);
  }
}

TEST(Fused, rows_over_up_to_5000_keys_are_those_of_the_literal_row_function) {
  for (std::uint64_t seed = 1; seed <= 80 && !HasFailure(); ++seed) {
    CallDraw draw(seed + 10000);
    CallDraw::Shape shape;
    shape.kv_heads = draw.within(1, 2);
    const index_t group = draw.one_in(2) ? 1 : draw.within(1, 4);
    shape.pairs = {
        1, shape.kv_heads * group, draw.one_in(4) ? draw.within(1, 20) : 1,
        draw.one_in(3) ? 1024 * draw.within(1, 4) + draw.within(0, 2) : draw.within(1, 5000)};
    shape.d_k = draw.within(1, 9);
    shape.d_v = draw.within(1, 9);
    Attention call = any_call(draw, shape);
    if (draw.one_in(2)) {  // a window with its left edge anywhere
      call.options.query_start = Align::end;
      call.options.mask = Mask::window(draw.below(shape.pairs.kv_len), draw.below(3));
      if (draw.one_in(3)) call.options.mask = call.options.mask & draw.part(shape.pairs);
    }
    const DType type = draw.type();
    SCOPED_TRACE(std::string(name(type)) + ", seed " + std::to_string(seed));
    expect_literal(call, type, draw);
  }
}

// Rows [begin, end) of the whole's result.
Written rows_of(const Written& whole, index_t begin, index_t end) {
  return {take(whole.out, 2, begin, end), take(whole.max, 2, begin, end),
          take(whole.sum, 2, begin, end), take(whole.lse, 2, begin, end)};
}

TEST(Fused, prefill_in_chunks_or_token_by_token_changes_no_bit) {
  for (std::uint64_t seed = 1; seed <= 60 && !HasFailure(); ++seed) {
    CallDraw draw(seed + 20000);
    CallDraw::Shape shape = any_shape(draw);
    const index_t n = draw.one_in(8) ? draw.within(1020, 1100) : draw.within(1, 150);
    if (n > 1000) shape.pairs.heads = shape.kv_heads;
    shape.pairs.q_len = std::min<index_t>(n, 40);
    shape.pairs.kv_len = n;
    Attention call = any_call(draw, shape);
    call.options.dropout = {};  // whose draw counts rows
    call.options.mask = call.options.mask & Mask::causal();
    call.options.query_start = Align::end;
    const DType type = draw.type();
    SCOPED_TRACE(std::string(name(type)) + ", seed " + std::to_string(seed));
    const Context& context = context_of("", 1 + static_cast<int>(draw.below(3)));
    const Written whole = written(call, type, context);
    const index_t q_len = shape.pairs.q_len, first = n - q_len;
    const index_t chunk = draw.within(1, q_len);
    for (index_t begin = 0; begin < q_len; begin += chunk) {
      const index_t end = std::min(q_len, begin + chunk);
      // As when the later keys are not there yet.
      const Attention part = keys_of(rows_of(call, begin, end), first + end);
      expect_same(written(part, type, context), rows_of(whole, begin, end), "chunk");
    }
    for (index_t i = 0; i < q_len; ++i) {
      const Attention part = keys_of(rows_of(call, i, i + 1), first + i + 1);
      expect_same(written(part, type, context), rows_of(whole, i, i + 1), "token");
    }
  }
}

TEST(Fused, neither_the_rest_of_the_batch_nor_other_rows_change_a_bit) {
  for (std::uint64_t seed = 1; seed <= 200 && !HasFailure(); ++seed) {
    CallDraw draw(seed + 30000);
    CallDraw::Shape shape = any_shape(draw);
    shape.pairs.batch = draw.within(2, 3);
    Attention call = any_call(draw, shape);
    call.options.dropout = {};  // whose draw counts batch entries
    const DType type = draw.type();
    SCOPED_TRACE(std::string(name(type)) + ", seed " + std::to_string(seed));
    const Context& context = context_of("", 1 + static_cast<int>(draw.below(3)));
    const Written whole = written(call, type, context);
    for (index_t b = 0; b < shape.pairs.batch; ++b)
      expect_same(written(entry_of(call, b), type, context),
                  {take(whole.out, 0, b, b + 1), take(whole.max, 0, b, b + 1),
                   take(whole.sum, 0, b, b + 1), take(whole.lse, 0, b, b + 1)},
                  "batch entry alone");
    const index_t kept = draw.below(shape.pairs.q_len);  // the other rows get other queries
    for (index_t b = 0; b < shape.pairs.batch; ++b)
      for (index_t h = 0; h < shape.pairs.heads; ++h)
        for (index_t i = 0; i < shape.pairs.q_len; ++i)
          for (index_t d = 0; i != kept && d < shape.d_k; ++d)
            call.q(b, h, i, d) = draw.one_in(9) ? kNan : 1e30 * draw.TileDraw::number();
    expect_same(rows_of(written(call, type, context), kept, kept + 1),
                rows_of(whole, kept, kept + 1), "other neighbours");
  }
}

}  // namespace
}  // namespace glasshead::test
