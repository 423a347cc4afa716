// Keys and values as the fused path reads them: pieces in position order, whatever they are stored
// in. A tensor is one piece; a ring buffer two; a paged cache as many as it has pages.
//
//   const KvSource source = kv_of(k, v);
//   KvBlock<float> block(source);
//   block.load(b, g, {j0, j1});                       // inside one block of 128 keys
//   block.for_keys(keys, [](const StridedRows<float>& rows, index_t first, index_t count) { ... });
//
// Element (j, d) of kv head g of a piece stands at
//     head_stride * g + panel_stride * (n / 16) + row_stride * (n % 16) + step * d,  n = j - begin
// so that row-major rows (panel_stride = 16 row_stride) and panels of 16 keys transposed in place
// ([16 keys] as [d][16]: row_stride 1, step 16) are one form. An int8 element is multiplied by its
// row's scale, which stands at scale_stride * g + n.
#pragma once

#include <cstdint>
#include <vector>

#include "core/mask_plan.h"
#include "glasshead/kv_cache.h"
#include "glasshead/tensor.h"
#include "kernels/kernel_set.h"

namespace glasshead {

struct KvLayout {
  KvType type = KvType::f32;
  index_t head_stride = 0, panel_stride = 0, row_stride = 0, step = 1;  // in elements
  bool is_panels = false;    // whole panels of 16 keys can be read, whatever the number of keys
  index_t scale_stride = 0;  // between heads, of int8
  index_t offset(index_t g, index_t n) const {
    return head_stride * g + panel_stride * (n / kPanelKeys) + row_stride * (n % kPanelKeys);
  }
};

// Keys [begin, end) of one sequence.
struct KvPiece {  // all but the last hold a multiple of kPanelKeys
  index_t begin = 0, end = 0;
  const void* k = nullptr;
  const void* v = nullptr;
  const float* k_scales = nullptr;  // int8
  const float* v_scales = nullptr;
};

struct KvSource {
  index_t kv_heads = 0, d_k = 0, d_v = 0;
  KvLayout k, v;
  // [batch] pieces in order, without gaps; where the first doesn't begin at 0, those before are
  // gone
  std::vector<std::vector<KvPiece>> sequences;
};

KvType kv_type_of(DType dtype);  // of a floating dtype
index_t size_of(KvType type);    // bytes of an element

KvSource kv_of(const ConstTensor<4>& k, const ConstTensor<4>& v);

// Keys [begin, begin + count) inside one block, in the compute type.
template <class T>
struct KvRun {
  index_t begin = 0, count = 0;
  StridedRows<T> rows;     // row 0 is key `begin`
  NarrowRows narrow = {};  // instead of rows.data
};

// Up to 128 keys and values of one kv head, in place where they are stored as T, else widened into
// room of its own: keys in panels as such panels.
template <class T>
class KvBlock {
 public:
  // for_rows: for the kernels of single rows (row_kernels.h). They need the elements of a vector
  // side by side, or keys in panels of 16: what lies otherwise is copied. And they widen f16, bf16
  // and int8 themselves: such runs are told by for_key_runs and for_value_runs alone.
  KvBlock(const KvSource& source, bool for_rows);

  // Keys and values [begin, end) of one block of 128, begin < end.
  void load(index_t b, index_t g, KeyRange keys);

  // Calls f(rows, first, count) for the runs that make up `keys`, a part of what was loaded; row 0
  // of `rows` is key `first`.
  template <class F>
  void for_keys(KeyRange keys, const F& f) const {
    for_runs(key_runs_, keys, f);
  }
  template <class F>
  void for_values(KeyRange keys, const F& f) const {
    for_runs(value_runs_, keys, f);
  }
  // The same with f(run), where kernels widen narrow elements themselves.
  template <class F>
  void for_key_runs(KeyRange keys, const F& f) const {
    for_parts(key_runs_, keys, source_->k, f);
  }
  template <class F>
  void for_value_runs(KeyRange keys, const F& f) const {
    for_parts(value_runs_, keys, source_->v, f);
  }
  bool keys_are_finite(const Kernels<T>& kernels) const;
  bool values_are_finite(const Kernels<T>& kernels) const;
  index_t room_bytes() const {
    return static_cast<index_t>((key_room_.size() + value_room_.size()) * sizeof(T));
  }

 private:
  template <class F>
  void for_runs(const std::vector<KvRun<T>>& runs, KeyRange keys, const F& f) const {
    for (const KvRun<T>& run : runs) {
      const index_t begin = run.begin > keys.begin ? run.begin : keys.begin;
      const index_t end = run.begin + run.count < keys.end ? run.begin + run.count : keys.end;
      if (begin >= end) continue;
      StridedRows<T> rows = run.rows;
      if (begin > run.begin) rows.data += (begin - run.begin) * rows.row_stride;
      f(rows, begin, end - begin);
    }
  }

  template <class F>
  void for_parts(const std::vector<KvRun<T>>& runs, KeyRange keys, const KvLayout& layout,
                 const F& f) const {
    for (const KvRun<T>& run : runs) {
      KvRun<T> part = run;
      if (part.begin < keys.begin) part.begin = keys.begin;
      const index_t end = run.begin + run.count < keys.end ? run.begin + run.count : keys.end;
      part.count = end - part.begin;
      if (part.count <= 0) continue;
      const index_t skipped = part.begin - run.begin;
      if (run.narrow.type == Narrow::none) {
        if (skipped > 0) part.rows.data += skipped * run.rows.row_stride;
      } else {
        // Pieces and blocks begin with a panel: a key's lane is its number mod 16.
        const index_t at =
            layout.offset(0, part.begin % kBlock) - layout.offset(0, run.begin % kBlock);
        part.narrow.data = static_cast<const char*>(run.narrow.data) + at * size_of(layout.type);
        if (run.narrow.scales != nullptr) part.narrow.scales += skipped;
      }
      f(part);
    }
  }

  static bool are_finite(const Kernels<T>& kernels, const std::vector<KvRun<T>>& runs,
                         index_t size);

  struct Side {
    const KvLayout* layout;
    index_t size;
    bool is_keys;
    bool is_narrow;        // left as it is stored
    std::vector<T>* room;  // empty: read in place
    std::vector<KvRun<T>>* runs;
  };
  void load_side(const Side& side, index_t b, index_t g);
  void narrow_piece(const Side& side, const KvPiece& piece, index_t g, KeyRange keys);
  void load_piece(const Side& side, const KvPiece& piece, index_t g, KeyRange keys);
  void widen_piece(const Side& side, const KvPiece& piece, index_t g, KeyRange keys);

  const KvSource* source_;
  bool keys_are_narrow_ = false, values_are_narrow_ = false;
  KeyRange keys_;
  std::vector<KvRun<T>> key_runs_, value_runs_;
  std::vector<T> key_room_, value_room_;  // [128, d] or 8 of [d, 16] where widening is needed
};

}  // namespace glasshead
