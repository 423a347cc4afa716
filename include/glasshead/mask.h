// A mask is the *set* of (query, key) pairs that may attend. Masks select; they never add or
// multiply, so what a hidden key holds can never matter. Masks intersect:
//
//   Mask mask = Mask::causal() & Mask::window(128, 0) & Mask::key_lengths({7, 12});
//
// Rules that speak of positions use the query's position p = query_start + i (see QueryStart in
// attention.h) and the key's index j as its position.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "glasshead/tensor.h"

namespace glasshead {

// A tensor of rank 0 to 4 that is broadcast, right-aligned, to [batch, heads, q_len, kv_len]:
// rank 1 is (kv), rank 2 (q, kv), rank 3 (heads, q, kv). An axis of size 1 repeats.
struct Broadcast {
  const void* data = nullptr;
  DType dtype = DType::u8;
  int rank = 0;
  std::array<index_t, 4> shape{1, 1, 1, 1};    // the first `rank` entries count
  std::array<index_t, 4> strides{0, 0, 0, 0};  // in elements, likewise
  std::shared_ptr<const void>
      owner;  // kept alive with the mask; null: the caller keeps the data alive

  Broadcast() = default;
  template <int Rank>
    requires(Rank <= 4)
  Broadcast(const ConstTensor<Rank>& tensor, std::shared_ptr<const void> keep = nullptr)
      : data(tensor.data), dtype(tensor.dtype), rank(Rank), owner(std::move(keep)) {
    for (std::size_t axis = 0; axis < tensor.shape.size(); ++axis) {
      shape[axis] = tensor.shape[axis];
      strides[axis] = tensor.strides[axis];
    }
  }
};

// Whether query head h of batch entry b, at query position p, may attend to the key at position j.
// A pure function of the four: a pair may be asked when any call needs it, from any thread.
using PairPredicate = std::function<bool(index_t b, index_t h, index_t p, index_t j)>;

// What a predicate looks at. Set false where it doesn't: it is then asked for 0 alone, which saves
// that many times the questions and the memory.
struct PairRuleOptions {
  bool per_batch = true;
  bool per_head = true;
};

// A predicate with the answers it has given. Each pair of a call's sizes is asked once; the answers
// are kept as a map of blocks (none, all, or some with a bit per pair) that later calls of the same
// sizes share: batch, heads, q_len, kv_len and the position of query row 0. Copies share the maps;
// the last few are kept. Any number of threads may use it at once. The predicate must not run a
// call with the rule itself.
class PairRule {
 public:
  PairRule(PairPredicate predicate, PairRuleOptions options = {});
  template <class F>
    requires(std::is_invocable_r_v<bool, const F&, index_t, index_t, index_t, index_t> &&
             !std::is_same_v<F, PairPredicate>)
  PairRule(F predicate, PairRuleOptions options = {})
      : PairRule(PairPredicate(std::move(predicate)), options) {}

  const PairPredicate& predicate() const;  // a null one is refused by `check`
  const PairRuleOptions& options() const;

  struct State;  // the library's own
  State& state() const { return *state_; }

 private:
  std::shared_ptr<State> state_;
};

class Mask {
 public:
  struct Causal {};  // j <= p
  struct Window {    // p - left <= j <= p + right; nullopt: no limit on that side
    std::optional<index_t> left, right;  // the query's own position is always included
  };
  struct KeyLengths {
    std::vector<index_t> lengths;
  };  // [batch] or one for all: j < lengths[b]
  struct Segments {                           // packed documents: query_ids[b,i] == key_ids[b,j]
    index_t batch = 1;                        // rows of ids; 1 repeats over the batch
    std::vector<index_t> query_ids, key_ids;  // [batch, q_len], [batch, kv_len]
  };
  struct Prefix {
    std::vector<index_t> lengths;
  };  // [batch] or one for all: j < lengths[b], or j <= p
  struct Explicit {
    Broadcast allowed;
  };  // u8: nonzero = may attend
  struct Where {  // any function of (b, h, query position, key position)
    PairRule rule;
    std::uint64_t version = 0;  // another number: the rule has changed, ask again
  };
  using Part = std::variant<Causal, Window, KeyLengths, Segments, Prefix, Explicit, Where>;

  Mask() = default;  // everything may attend to everything
  static Mask causal();
  static Mask window(std::optional<index_t> left, std::optional<index_t> right);
  static Mask key_lengths(std::vector<index_t> lengths);
  static Mask segments(index_t batch, std::vector<index_t> query_ids, std::vector<index_t> key_ids);
  static Mask prefix(std::vector<index_t> lengths);
  static Mask allowed(Broadcast booleans);
  // A mask by rule, at the speed of any other:
  //
  //   Mask::where([](index_t, index_t, index_t p, index_t j) { return (p - j) % 64 == 0; })
  //
  // Keep the PairRule (or the mask) between calls, so that they share its answers; pass a new
  // version when what the predicate would answer has changed.
  static Mask where(PairRule rule, std::uint64_t version = 0);

  friend Mask operator&(Mask a, const Mask& b);  // the intersection: hidden if either hides

  const std::vector<Part>& parts() const { return parts_; }
  std::vector<Part>& parts() { return parts_; }

 private:
  std::vector<Part> parts_;
};

}  // namespace glasshead
