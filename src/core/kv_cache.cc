#include "core/kv_cache.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/float_environment.h"
#include "core/findings.h"
#include "core/kv_input.h"
#include "core/validate.h"

namespace glasshead {
namespace {

constexpr index_t kLargestChunk = index_t{64} << 20;  // bytes that a pool takes at once

index_t whole_panels(index_t keys) { return (keys + kPanelKeys - 1) / kPanelKeys * kPanelKeys; }

// Keys of a slab. A ring's is one panel larger than its keys: the one that is being overwritten.
index_t slab_keys(const KvStorage& storage) {
  if (const auto* paged = std::get_if<KvPaged>(&storage)) return paged->page_size;
  if (const auto* ring = std::get_if<KvRing>(&storage))
    return whole_panels(ring->keys - 1) + kPanelKeys;
  return whole_panels(std::get<KvContiguous>(storage).capacity);
}

SlabSizes sizes_of(const KvCacheOptions& options) {
  return {options.type, options.kv_heads, slab_keys(options.storage), options.d_k, options.d_v};
}

constexpr index_t kMostKeys = index_t{1} << 61;       // positions end there
constexpr index_t kMostSequences = index_t{1} << 20;  // at the beginning: more is a slip

// False if the storage's keys can't be counted with.
bool check_storage(const KvStorage& storage, Findings& findings) {
  const std::size_t before = findings.problems.size();
  const auto at_least_one = [&](const char* where, index_t found, const char* what) {
    if (found < 1 || found > kMostKeys)
      findings.option(where, fmt::format("{}; {}, 1 to 2^61", found, what));
  };
  if (const auto* paged = std::get_if<KvPaged>(&storage)) {
    at_least_one("storage.page_size", paged->page_size, "the keys of a page");
    if (paged->page_size % kPanelKeys != 0)
      findings.option("storage.page_size",
                      fmt::format("{}; a multiple of {} keys", paged->page_size, kPanelKeys));
  } else if (const auto* ring = std::get_if<KvRing>(&storage)) {
    at_least_one("storage.keys", ring->keys, "the keys that a ring keeps");
  } else {
    at_least_one("storage.capacity", std::get<KvContiguous>(storage).capacity,
                 "the keys there is room for");
  }
  return findings.problems.size() == before;
}

void check_options(const KvCacheOptions& options, Findings& findings) {
  const auto size = [&](const char* where, index_t found, index_t least) {
    if (found < least) findings.option(where, fmt::format("{}; {} or more", found, least));
    return found >= least;
  };
  bool is_sound = size("batch", options.batch, 0);
  if (options.batch > kMostSequences) {
    findings.option("batch",
                    fmt::format("{}; at most {} sequences", options.batch, kMostSequences));
    is_sound = false;
  }
  is_sound = size("kv_heads", options.kv_heads, 1) && is_sound;
  is_sound = size("d_k", options.d_k, 1) && is_sound;
  is_sound = size("d_v", options.d_v, 0) && is_sound;
  is_sound = check_storage(options.storage, findings) && is_sound;
  if (is_sound && !SlabLayout::bytes_of(sizes_of(options)))
    findings.option("storage", fmt::format("{} keys of {} kv_heads of {} + {} elements of {} are "
                                           "larger than 64-bit addresses",
                                           slab_keys(options.storage), options.kv_heads,
                                           options.d_k, options.d_v, name(options.type)));
}

KvCacheOptions checked(const KvCacheOptions& options) {
  Findings findings;
  check_options(options, findings);
  refuse("KvCache", findings);
  return options;
}

struct NamedKeys {
  const char* name;
  const char* axes;
  const ConstTensor<3>& tensor;  // [kv_heads, n, size]
  index_t size;
};

void check_keys(const NamedKeys& keys, index_t kv_heads, Findings& findings) {
  const ConstTensor<3>& t = keys.tensor;
  if (!is_floating(t.dtype))
    findings.option(keys.name, fmt::format("has dtype {}; f64, f32, bf16 or f16 would be right",
                                           name(t.dtype)));
  if (t.shape[0] != kv_heads || t.shape[1] < 0 || t.shape[2] != keys.size) {
    findings.shape(keys.name, fmt::format("{} where {} = [{},n,{}] is right", shape_text(t.shape),
                                          keys.axes, kv_heads, keys.size));
    return;
  }
  const std::optional<index_t> size = checked_size(t.shape);
  if (!size || !spans_memory(t.shape, t.strides, t.dtype)) {
    findings.shape(keys.name, fmt::format("{} with strides {} is larger than 64-bit addresses",
                                          shape_text(t.shape), shape_text(t.strides)));
  } else if (*size > 0 && t.data == nullptr) {
    findings.option(
        keys.name, fmt::format("data is null, but {} has {} elements", shape_text(t.shape), *size));
  } else if (*size > 0 && reinterpret_cast<std::uintptr_t>(t.data) % size_of(t.dtype) != 0) {
    findings.option(keys.name, fmt::format("data is not aligned to the {} bytes of an element of "
                                           "{}",
                                           size_of(t.dtype), name(t.dtype)));
  }
}

void check_append(const KvCache::Impl& impl, const KvCache::Impl::Sequence& sequence,
                  const ConstTensor<3>& k, const ConstTensor<3>& v, Findings& findings) {
  check_keys({"k", "[kv_heads, n, d_k]", k, impl.options.d_k}, impl.options.kv_heads, findings);
  check_keys({"v", "[kv_heads, n, d_v]", v, impl.options.d_v}, impl.options.kv_heads, findings);
  if (k.shape[1] != v.shape[1]) {
    findings.shape(
        "v", fmt::format("{} keys where k has {}; each key has its value", v.shape[1], k.shape[1]));
  }
  if (k.shape[1] < 0) return;
  const std::optional<index_t> length = checked_add(sequence.length, k.shape[1]);
  if (!length || *length > kMostKeys) {
    findings.shape("k", fmt::format("{} keys after the {} there are lie beyond position 2^61",
                                    k.shape[1], sequence.length));
    return;
  }
  const auto* contiguous = std::get_if<KvContiguous>(&impl.options.storage);
  if (contiguous == nullptr || *length <= contiguous->capacity) return;
  findings.shape("k",
                 fmt::format("{} keys after the {} there are, but the capacity is {}; a larger "
                             "one, or KvPaged, which has none",
                             k.shape[1], sequence.length, contiguous->capacity));
}

// The numbers of one sequence in a tensor of all.
ConstTensor<3> of_sequence(const ConstTensor<4>& t, index_t b) {
  const auto* data = static_cast<const std::byte*>(t.data);
  if (data != nullptr) data += b * t.strides[0] * static_cast<index_t>(size_of(t.dtype));
  return {data,
          t.dtype,
          {t.shape[1], t.shape[2], t.shape[3]},
          {t.strides[1], t.strides[2], t.strides[3]}};
}

std::size_t checked_sequence(const KvCache::Impl& impl, const char* function, index_t sequence) {
  const auto count = static_cast<index_t>(impl.sequences.size());
  if (sequence < 0 || sequence >= count)
    fail(ErrorKind::option, function, "sequence",
         fmt::format("{}; there are {}, numbered from 0", sequence, count));
  return static_cast<std::size_t>(sequence);
}

}  // namespace

// --- slabs ---

void SlabPool::grow() {
  const index_t most = std::max<index_t>(1, kLargestChunk / slab_bytes_);
  const index_t count = std::clamp<index_t>(static_cast<index_t>(slabs_.size()), 1, most);
  memory_.emplace_back(static_cast<std::size_t>(count * slab_bytes_));
  auto* const data = static_cast<std::byte*>(memory_.back().data());
  for (index_t n = 0; n < count; ++n) slabs_.push_back(data + n * slab_bytes_);
  users_.resize(slabs_.size());
  for (index_t n = 0; n < count; ++n)  // the first is taken first
    free_.push_back(static_cast<int>(slabs_.size()) - 1 - static_cast<int>(n));
}

int SlabPool::take() {
  if (free_.empty()) grow();
  const int slab = free_.back();
  free_.pop_back();
  users_[static_cast<std::size_t>(slab)] = 1;
  return slab;
}

void SlabPool::give(int slab) {
  if (--users_[static_cast<std::size_t>(slab)] == 0) free_.push_back(slab);
}

// --- sequences ---

KvCache::Impl::Impl(const KvCacheOptions& given)
    : options(checked(given)),
      layout(sizes_of(options)),
      pool(layout.bytes()),
      sequences(static_cast<std::size_t>(options.batch)) {}

// After it the sequence may write to that slab: it has one, and alone.
void KvCache::Impl::own(Sequence& sequence, std::size_t slab) {
  if (slab == sequence.slabs.size()) {
    sequence.slabs.push_back(pool.take());
    return;
  }
  const int shared = sequence.slabs[slab];
  if (!pool.is_shared(shared)) return;
  const int copy = pool.take();
  const index_t before = is_paged() ? static_cast<index_t>(slab) * layout.keys() : 0;
  layout.copy(pool.data(shared), pool.data(copy),
              std::min(sequence.length - before, layout.keys()));
  pool.give(shared);
  sequence.slabs[slab] = copy;
}

void KvCache::Impl::append(Sequence& sequence, const ConstTensor<3>& k, const ConstTensor<3>& v) {
  const index_t count = k.shape[1];
  for (index_t n = 0; n < count;) {
    const index_t position = sequence.length;
    const std::size_t slab = slab_of(position);
    const index_t slot = slot_of(position);
    const index_t run = std::min(count - n, layout.keys() - slot);
    own(sequence, slab);
    layout.write(pool.data(sequence.slabs[slab]), slot, {k, v, n, run});
    n += run;
    sequence.length += run;
  }
  if (is_ring())
    sequence.first = std::max(sequence.first, whole_panels(sequence.length) - layout.keys());
}

void KvCache::Impl::truncate(Sequence& sequence, index_t length) {
  sequence.length = length;
  if (length == 0) sequence.first = 0;
  const std::size_t used = length == 0 ? 0 : slab_of(length - 1) + 1;
  while (sequence.slabs.size() > used) {
    pool.give(sequence.slabs.back());
    sequence.slabs.pop_back();
  }
}

std::vector<KvPiece> KvCache::Impl::pieces(const Sequence& sequence) const {
  std::vector<KvPiece> pieces;
  for (index_t j = sequence.first; j < sequence.length;) {
    const index_t end = std::min(sequence.length, j - slot_of(j) + layout.keys());
    pieces.push_back(layout.piece(pool.data(sequence.slabs[slab_of(j)]), slot_of(j), {j, end}));
    j = end;
  }
  return pieces;
}

// --- KvCache ---

KvCache::KvCache(const KvCacheOptions& options) : impl_(std::make_unique<Impl>(options)) {}
KvCache::~KvCache() = default;
KvCache::KvCache(KvCache&&) noexcept = default;
KvCache& KvCache::operator=(KvCache&&) noexcept = default;

void KvCache::append(index_t sequence, const ConstTensor<3>& k, const ConstTensor<3>& v) {
  Impl::Sequence& to = impl_->sequences[checked_sequence(*impl_, "KvCache::append", sequence)];
  Findings findings;
  check_append(*impl_, to, k, v, findings);
  refuse("KvCache::append", findings);
  const DefaultFloatEnvironment environment;
  ++*impl_->changes;
  impl_->append(to, k, v);
}

void KvCache::append(const ConstTensor<4>& k, const ConstTensor<4>& v) {
  Findings findings;
  const index_t count = sequences();
  if (k.shape[0] != count || v.shape[0] != count) {
    findings.shape("k", fmt::format("k {}, v {} where the cache has {} sequences; one of each for "
                                    "every sequence",
                                    shape_text(k.shape), shape_text(v.shape), count));
  }
  refuse("KvCache::append", findings);
  for (index_t b = 0; b < count && findings.is_empty(); ++b)
    check_append(*impl_, impl_->sequences[static_cast<std::size_t>(b)], of_sequence(k, b),
                 of_sequence(v, b), findings);
  refuse("KvCache::append", findings);
  const DefaultFloatEnvironment environment;
  ++*impl_->changes;
  for (index_t b = 0; b < count; ++b)
    impl_->append(impl_->sequences[static_cast<std::size_t>(b)], of_sequence(k, b),
                  of_sequence(v, b));
}

void KvCache::truncate(index_t sequence, index_t length) {
  constexpr const char* kFunction = "KvCache::truncate";
  Impl::Sequence& from = impl_->sequences[checked_sequence(*impl_, kFunction, sequence)];
  if (length < 0 || length > from.length)
    fail(ErrorKind::option, kFunction, "length",
         fmt::format("{}; sequence {} holds {} keys", length, sequence, from.length));
  if (length != 0 && length < from.first)
    fail(ErrorKind::option, kFunction, "length",
         fmt::format("{}; the ring has overwritten the keys before {}. 0 begins anew", length,
                     from.first));
  ++*impl_->changes;
  impl_->truncate(from, length);
}

index_t KvCache::fork(index_t sequence) {
  const std::size_t from = checked_sequence(*impl_, "KvCache::fork", sequence);
  impl_->sequences.push_back(Impl::Sequence(impl_->sequences[from]));
  for (const int slab : impl_->sequences.back().slabs) impl_->pool.share(slab);
  return sequences() - 1;
}

void KvCache::fork(index_t sequence, index_t into) {
  const std::size_t from = checked_sequence(*impl_, "KvCache::fork", sequence);
  const std::size_t to = checked_sequence(*impl_, "KvCache::fork", into);
  if (from == to) return;
  Impl::Sequence copy = impl_->sequences[from];
  ++*impl_->changes;
  impl_->truncate(impl_->sequences[to], 0);
  impl_->sequences[to] = std::move(copy);
  for (const int slab : impl_->sequences[to].slabs) impl_->pool.share(slab);
}

index_t KvCache::sequences() const { return static_cast<index_t>(impl_->sequences.size()); }

index_t KvCache::length(index_t sequence) const {
  return impl_->sequences[checked_sequence(*impl_, "KvCache::length", sequence)].length;
}

index_t KvCache::first(index_t sequence) const {
  return impl_->sequences[checked_sequence(*impl_, "KvCache::first", sequence)].first;
}

index_t KvCache::bytes() const { return impl_->pool.in_use() * impl_->layout.bytes(); }

KvInput KvCache::input() const {
  std::vector<index_t> all(impl_->sequences.size());
  std::iota(all.begin(), all.end(), index_t{0});
  return input(all);
}

KvInput KvCache::input(const std::vector<index_t>& sequences) const {
  auto state = std::make_shared<KvInput::State>();
  state->source = {impl_->options.kv_heads,    impl_->options.d_k,           impl_->options.d_v,
                   impl_->layout.key_layout(), impl_->layout.value_layout(), {}};
  for (const index_t number : sequences) {
    const Impl::Sequence& sequence =
        impl_->sequences[checked_sequence(*impl_, "KvCache::input", number)];
    state->source.sequences.push_back(impl_->pieces(sequence));
    state->held.push_back({sequence.first, sequence.length});
  }
  state->changes = impl_->changes;
  state->made_at = *impl_->changes;
  return KvInput(std::shared_ptr<const KvInput::State>(std::move(state)));
}

}  // namespace glasshead
