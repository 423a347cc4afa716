// How a cache lays out the keys and values that it keeps together (a page, or a whole sequence), a
// slab: for every kv head its keys in panels of 16, [keys / 16][d_k][16], which both forms of the
// kernels read in place; then the values as rows, [keys][d_v]; of int8 also the scales of either,
// [keys]. A slot is a key's place in the slab.
//
//   const SlabLayout layout({.type = KvType::bf16, .kv_heads = 8, .keys = 128, .d_k = 64, ...});
//   layout.write(slab, slot, {k, v, first, count});
#pragma once

#include <cstddef>
#include <optional>

#include "core/kv_source.h"

namespace glasshead {

struct SlabSizes {
  KvType type = KvType::f32;
  index_t kv_heads = 0, keys = 0, d_k = 0, d_v = 0;  // keys: a multiple of kPanelKeys
};

// Rows [first, first + count) of new keys and values.
struct NewKeys {
  const ConstTensor<3>& k;  // [kv_heads, n, d_k]
  const ConstTensor<3>& v;  // [kv_heads, n, d_v]
  index_t first = 0, count = 0;
};

class SlabLayout {
 public:
  // The sizes must have passed `bytes_of`.
  explicit SlabLayout(const SlabSizes& sizes);

  // Bytes of a slab; nullopt if they don't fit index_t.
  static std::optional<index_t> bytes_of(const SlabSizes& sizes);

  index_t keys() const { return sizes_.keys; }
  index_t bytes() const { return bytes_; }

  // Rounds to the slab's type; slots [slot, slot + count) lie in the slab.
  void write(std::byte* slab, index_t slot, const NewKeys& keys) const;
  // What the slots [0, count) hold, whole panels.
  void copy(const std::byte* from, std::byte* to, index_t count) const;

  // Keys [begin, end) from `slot` on, a multiple of kPanelKeys.
  KvPiece piece(const std::byte* slab, index_t slot, KeyRange keys) const;
  KvLayout key_layout() const;
  KvLayout value_layout() const;

 private:
  template <class Out>
  void write_as(std::byte* slab, index_t slot, const NewKeys& keys) const;
  template <class Out, class Wide>  // widened to Wide, rounded once to Out
  void write_from(std::byte* slab, index_t slot, const NewKeys& keys) const;

  SlabSizes sizes_;
  index_t v_at_ = 0, k_scales_at_ = 0, v_scales_at_ = 0, bytes_ = 0;  // bytes
};

}  // namespace glasshead
