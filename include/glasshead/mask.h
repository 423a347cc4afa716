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
#include <memory>
#include <optional>
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
  using Part = std::variant<Causal, Window, KeyLengths, Segments, Prefix, Explicit>;

  Mask() = default;  // everything may attend to everything
  static Mask causal();
  static Mask window(std::optional<index_t> left, std::optional<index_t> right);
  static Mask key_lengths(std::vector<index_t> lengths);
  static Mask segments(index_t batch, std::vector<index_t> query_ids, std::vector<index_t> key_ids);
  static Mask prefix(std::vector<index_t> lengths);
  static Mask allowed(Broadcast booleans);

  friend Mask operator&(Mask a, const Mask& b);  // the intersection: hidden if either hides

  const std::vector<Part>& parts() const { return parts_; }
  std::vector<Part>& parts() { return parts_; }

 private:
  std::vector<Part> parts_;
};

}  // namespace glasshead
