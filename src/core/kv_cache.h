// What a KvCache holds: slabs of memory, and for each sequence which of them are its own, in order.
// The three forms of storage are one: a page, a sequence of a fixed size and a ring are slabs, of
// which a sequence has any number, one, and one that is used over and over.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "base/stream_memory.h"
#include "core/kv_slab.h"
#include "glasshead/kv_cache.h"

namespace glasshead {

// Slabs of one size, taken and given back, each with a count of the sequences that share it.
class SlabPool {
 public:
  explicit SlabPool(index_t slab_bytes) : slab_bytes_(slab_bytes) {}

  int take();  // used by one
  void share(int slab) { ++users_[static_cast<std::size_t>(slab)]; }
  void give(int slab);  // free when nobody uses it
  bool is_shared(int slab) const { return users_[static_cast<std::size_t>(slab)] > 1; }
  std::byte* data(int slab) const { return slabs_[static_cast<std::size_t>(slab)]; }
  index_t in_use() const { return static_cast<index_t>(slabs_.size() - free_.size()); }

 private:
  void grow();

  index_t slab_bytes_;
  std::vector<StreamMemory> memory_;  // of several slabs each, so that small ones share huge pages
  std::vector<std::byte*> slabs_;
  std::vector<int> users_, free_;
};

struct KvCache::Impl {
  struct Sequence {
    index_t first = 0, length = 0;
    std::vector<int> slabs;
  };

  explicit Impl(const KvCacheOptions& given);
  ~Impl() { ++*changes; }

  bool is_ring() const { return std::holds_alternative<KvRing>(options.storage); }
  bool is_paged() const { return std::holds_alternative<KvPaged>(options.storage); }
  index_t slot_of(index_t position) const { return position % layout.keys(); }
  // Which of the sequence's slabs holds a position.
  std::size_t slab_of(index_t position) const {
    return is_paged() ? static_cast<std::size_t>(position / layout.keys()) : 0;
  }

  void append(Sequence& sequence, const ConstTensor<3>& k, const ConstTensor<3>& v);
  void truncate(Sequence& sequence, index_t length);
  std::vector<KvPiece> pieces(const Sequence& sequence) const;

  KvCacheOptions options;
  SlabLayout layout;
  SlabPool pool;
  std::vector<Sequence> sequences;
  std::shared_ptr<std::uint64_t> changes = std::make_shared<std::uint64_t>(0);

 private:
  void own(Sequence& sequence, std::size_t slab);
};

}  // namespace glasshead
