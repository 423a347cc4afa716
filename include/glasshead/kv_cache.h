// Keys and values that stay while queries come and go: what decoding keeps between steps.
//
//   KvCache cache({.batch = 1, .kv_heads = 8, .d_k = 128, .d_v = 128, .type = KvType::bf16});
//   cache.append(k, v);  // [1, 8, n, 128] each: a prompt, or one token
//   options.mask = Mask::causal();
//   attend(q, cache.input(), out, options);  // q's last row stands at the last key
//
// Key and value n of a sequence keep position n for good, whatever is stored where. The bits of a
// result are those of attend over tensors that hold the same numbers (docs/kv-cache.md): not a
// matter of pages, of how many keys came in one append, or of the other sequences of a call.
#pragma once

#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "glasshead/attention.h"

namespace glasshead {

// What a cache stores. All but f64 are computed with in f32.
enum class KvType : std::uint8_t {
  f64,
  f32,
  bf16,  // rounded to nearest even, as f16
  f16,
  int8  // a key or value x of one kv head is stored as n * scale: scale = max|x| / 127 rounded to
        // f32 (of all its elements), n = x / scale rounded to the nearest even number. An infinity
        // or NaN in it makes all of it NaN.
};
const char* name(KvType type);  // "f64", "f32", "bf16", "f16", "int8"

// Keys and values of some sequences, as pieces in position order. A view: what it is made of must
// outlive it and stay as it is (attend refuses that of a cache which has changed since).
class KvInput {
 public:
  // Keys [first, first + n) of a sequence: k [kv_heads, n, d_k], v [kv_heads, n, d_v]. n is a
  // multiple of 16 but in a sequence's last piece.
  struct Piece {
    ConstTensor<3> k, v;
  };
  struct Sequence {
    std::vector<Piece> pieces;
    index_t first = 0;  // position of the first key, a multiple of 16: those before it are gone
  };
  // For a program that has pages of its own. All pieces share sizes, strides and dtype (f64, f32,
  // bf16 or f16), as slices of one pool do. Throws ShapeError or OptionError with all problems.
  explicit KvInput(const std::vector<Sequence>& sequences);

  index_t sequences() const;
  index_t length(index_t sequence) const;  // the position after the last key

  struct State;  // the library's own
  const State& state() const { return *state_; }
  explicit KvInput(std::shared_ptr<const State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<const State> state_;
};

// attend over pieces. q [sequences, heads, q_len, d_k], out [sequences, heads, q_len, d_v]: batch
// entry b is sequence b of `kv`, which may be of any length; kv_len is the longest of them, for
// masks and biases of that size, and keys past a sequence's end are hidden from it. q is f64 where
// the keys are f64, else f32, bf16 or f16. Query row i of sequence b stands at position
// length(b) - q_len + i unless options.query_start states one position for all; where a rule
// speaks of positions, each row must stand on a key that the sequence has. A key that a ring no
// longer holds must be hidden by a window: else the call is refused. Everything else as attend
// over tensors, to the bit.
void attend(const ConstTensor<4>& q, const KvInput& kv, const MutableTensor<4>& out,
            const AttentionOptions& options = {}, const RowState& rows = {},
            const Context& context = default_context());

// Pages are taken as they are needed and shared by forks until one of them writes.
struct KvPaged {
  index_t page_size = 128;  // keys, a multiple of 16. Larger: fewer pieces; smaller: less unused
};
// One run of memory for each sequence, of a fixed size.
struct KvContiguous {
  index_t capacity = 0;  // keys; appending beyond it is refused
};
// One run of memory for each sequence, whose oldest keys are overwritten.
struct KvRing {
  index_t keys = 0;  // the last so many stay at least: the window's `left` + q_len
};
using KvStorage = std::variant<KvPaged, KvContiguous, KvRing>;

struct KvCacheOptions {
  index_t batch = 1;  // sequences at the beginning, all empty
  index_t kv_heads = 1;
  index_t d_k = 0;  // at least 1
  index_t d_v = 0;
  KvType type = KvType::f32;
  KvStorage storage = KvPaged{};
};

class KvCache {
 public:
  // Throws OptionError with everything that is wrong.
  explicit KvCache(const KvCacheOptions& options);
  ~KvCache();
  KvCache(KvCache&&) noexcept;
  KvCache& operator=(KvCache&&) noexcept;

  // Adds n keys and values to one sequence: k [kv_heads, n, d_k], v [kv_heads, n, d_v], f64, f32,
  // bf16 or f16, any strides; each number is rounded once to the cache's type. Nothing is stored if
  // anything is wrong.
  void append(index_t sequence, const ConstTensor<3>& k, const ConstTensor<3>& v);
  // To all sequences, in order: k [sequences, kv_heads, n, d_k], v [sequences, kv_heads, n, d_v].
  void append(const ConstTensor<4>& k, const ConstTensor<4>& v);

  // Forgets the keys from position `length` on, 0 <= length <= this->length(sequence); 0 begins
  // anew. A ring cannot go back to keys that are overwritten.
  void truncate(index_t sequence, index_t length);
  // A new sequence, whose number is returned, with the same keys: shared until either is appended
  // to, and then copied page by page (a run of memory as a whole).
  index_t fork(index_t sequence);
  // The same in a sequence that is there already, which forgets its own keys.
  void fork(index_t sequence, index_t into);

  index_t sequences() const;
  index_t length(index_t sequence) const;
  index_t first(index_t sequence) const;  // the first key still held: 0 but in a ring
  index_t bytes() const;  // of the pages or runs in use, what forks share counted once

  KvInput input() const;  // all sequences, in order
  KvInput input(const std::vector<index_t>& sequences) const;

  struct Impl;  // the library's own

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace glasshead
