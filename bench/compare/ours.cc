// Glasshead behind a C interface for bench/compare/peer_glasshead.py: everything is set up by
// `open` (a cache filled, a forward pass run), so that `run` is one call of the library.
#include <array>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <vector>

#include "glasshead/attention.h"
#include "glasshead/context.h"
#include "glasshead/kv_cache.h"

namespace glasshead {
namespace {

// The layout is repeated in peer_glasshead.py.
struct CompareCall {
  const void *q, *k, *v;        // dense, row-major: [batch, heads, q_len, d], k and v [batch,
                                // kv_heads, kv_len, d]
  void* out;                    // [batch, heads, q_len, d], f32
  const float* bias;            // [q_len, kv_len] for all heads, or null
  const std::uint8_t* allowed;  // [q_len, kv_len] for all heads, or null
  const float* d_out;           // not null: the backward pass, into dq, dk, dv
  float *dq, *dk, *dv;
  std::int64_t batch, heads, kv_heads, q_len, kv_len, d;
  std::int64_t window;  // keys in sight, the query's own included; 0: all
  std::int32_t is_causal;
  std::int32_t is_bf16;  // q, k, v; else f32
  std::int32_t cache;    // a KvType: k and v are kept in a KvCache of it; -1: read where they are
};

struct Prepared {
  ConstTensor<4> q, k, v, d_out;
  MutableTensor<4> out;
  Gradients gradients;
  AttentionOptions options;
  std::optional<KvCache> cache;
  bool is_backward = false;
  RowState rows;  // backward: what the forward pass kept, its result in `kept_out`
  std::vector<float> kept_out, kept_max, kept_sum;
};

AttentionOptions options_of(const CompareCall& call) {
  AttentionOptions options;
  if (call.cache < 0) options.query_start = Align::end;  // a cache has that by itself
  if (call.is_causal != 0) options.mask = Mask::causal();
  if (call.window > 0) options.mask = options.mask & Mask::window(call.window - 1, std::nullopt);
  const std::array<index_t, 2> shape{call.q_len, call.kv_len};
  if (call.allowed != nullptr)
    options.mask = options.mask &
                   Mask::allowed(ConstTensor<2>(View<const std::uint8_t, 2>(call.allowed, shape)));
  if (call.bias != nullptr)
    options.bias = Bias::dense(ConstTensor<2>(View<const float, 2>(call.bias, shape)));
  return options;
}

// The forward pass whose result and rows the backward pass is given.
void run_forward(const CompareCall& call, Prepared& prepared) {
  const std::array<index_t, 3> rows{call.batch, call.heads, call.q_len};
  const auto count = static_cast<std::size_t>(call.batch * call.heads * call.q_len);
  prepared.kept_out.resize(count * static_cast<std::size_t>(call.d));
  prepared.kept_max.resize(count);
  prepared.kept_sum.resize(count);
  prepared.out = View<float, 4>(prepared.kept_out.data(), prepared.q.shape);
  prepared.rows.max = View<float, 3>(prepared.kept_max.data(), rows);
  prepared.rows.sum = View<float, 3>(prepared.kept_sum.data(), rows);
  attend(prepared.q, prepared.k, prepared.v, prepared.out, prepared.options, prepared.rows);
}

// One sequence (or as many as the batch has) of a known length: a run of memory each.
void fill_cache(const CompareCall& call, Prepared& prepared) {
  prepared.cache.emplace(KvCacheOptions{.batch = call.batch,
                                        .kv_heads = call.kv_heads,
                                        .d_k = call.d,
                                        .d_v = call.d,
                                        .type = static_cast<KvType>(call.cache),
                                        .storage = KvContiguous{call.kv_len}});
  prepared.cache->append(prepared.k, prepared.v);
}

std::unique_ptr<Prepared> prepare(const CompareCall& call) {
  const DType dtype = call.is_bf16 != 0 ? DType::bf16 : DType::f32;
  using Shape = ConstTensor<4>::Shape;
  const Shape queries{call.batch, call.heads, call.q_len, call.d};
  const Shape keys{call.batch, call.kv_heads, call.kv_len, call.d};
  const auto input = [&](const void* data, const Shape& shape) {
    return ConstTensor<4>(data, dtype, shape, row_major(shape));
  };
  auto prepared = std::make_unique<Prepared>();
  prepared->q = input(call.q, queries);
  prepared->k = input(call.k, keys);
  prepared->v = input(call.v, keys);
  prepared->options = options_of(call);
  prepared->is_backward = call.d_out != nullptr;
  if (prepared->is_backward) {
    prepared->d_out = View<const float, 4>(call.d_out, queries);
    using Out = View<float, 4>;
    prepared->gradients = {Out(call.dq, queries), Out(call.dk, keys), Out(call.dv, keys)};
    run_forward(call, *prepared);
  } else {
    prepared->out = MutableTensor<4>(call.out, DType::f32, queries, row_major(queries));
    if (call.cache >= 0) fill_cache(call, *prepared);
  }
  return prepared;
}

void run(const Prepared& call) {
  if (call.is_backward)
    attend_backward(call.d_out, call.q, call.k, call.v, call.out, call.rows, call.gradients,
                    call.options);
  else if (call.cache)
    attend(call.q, call.cache->input(), call.out, call.options);
  else
    attend(call.q, call.k, call.v, call.out, call.options);
}

// No exception crosses the C interface: the text goes to `error` instead.
template <class Call>
bool guarded(char* error, std::size_t size, Call call) noexcept {
  try {
    call();
    return true;
  } catch (const std::exception& problem) {
    std::strncpy(error, problem.what(), size - 1);
    error[size - 1] = '\0';
    return false;
  }
}

}  // namespace
}  // namespace glasshead

extern "C" {

// The kernel set that runs, "avx2".
const char* glasshead_compare_isa() { return glasshead::default_context().isa(); }

// Null, with the reason in `error` [size], if the call is refused. The data stays the caller's.
void* glasshead_compare_open(const glasshead::CompareCall* call, char* error, std::size_t size) {
  void* handle = nullptr;
  glasshead::guarded(error, size, [&] { handle = glasshead::prepare(*call).release(); });
  return handle;
}

// 1, or 0 with the reason in `error`.
int glasshead_compare_run(const void* handle, char* error, std::size_t size) {
  return glasshead::guarded(
             error, size, [&] { glasshead::run(*static_cast<const glasshead::Prepared*>(handle)); })
             ? 1
             : 0;
}

void glasshead_compare_close(void* handle) { delete static_cast<glasshead::Prepared*>(handle); }

}  // extern "C"
