#include "core/panel_work.h"

#include <algorithm>
#include <type_traits>

#include "base/assert.h"
#include "core/rows.h"

namespace glasshead {
namespace {

// The part of a tile's array that belongs to keys from `first` on.
template <class A>
const A* from_key(const A* array, index_t keys, index_t width) {
  return array == nullptr ? nullptr : array + keys * width;
}

// How far into a tile each vector of lanes reaches (kernel_set.h).
class Reach {
 public:
  Reach(const std::uint32_t* allowed, index_t keys, std::uint32_t lanes, index_t width,
        index_t vectors)
      : vectors_(vectors) {
    if (allowed == nullptr) return;
    index_t n = keys;
    for (index_t c = 0; c < vectors; ++c) {
      const std::uint32_t here = lanes & (~std::uint32_t{0} << (c * width));
      while (n > 0 && (allowed[n - 1] & here) == 0) --n;
      ends_[c] = n;
      is_everywhere_ = is_everywhere_ && n == keys;
    }
  }

  // Of the tile's keys [n, n + count).
  const index_t* of(index_t n, index_t count) {
    if (is_everywhere_) return nullptr;
    for (index_t c = 0; c < vectors_; ++c) part_[c] = std::clamp<index_t>(ends_[c] - n, 0, count);
    return part_;
  }

 private:
  index_t vectors_;
  bool is_everywhere_ = true;
  index_t ends_[kMostRows];
  index_t part_[kMostRows];
};

}  // namespace

template <class T>
PanelWork<T>::PanelWork(const Kernels<T>& kernels, const PanelSizes& sizes)
    : kernels_(kernels),
      sizes_(sizes),
      lanes_(rows_of(kernels, sizes.form)),
      queries_(sizes.d_k * lanes_),
      states_((sizes.levels + 2) * state_size()),
      tree_(sizes.levels) {}

template <class T>
void PanelWork<T>::reset_rows(int n) {
  std::fill_n(slot(n), lanes_, Arithmetic<T>::kStart);
  std::fill_n(slot(n) + lanes_, lanes_, T(0));
}

template <class T>
void PanelWork<T>::reset(int n) {
  reset_rows(n);
  std::fill_n(slot(n) + 2 * lanes_, sizes_.d_v * lanes_, T(0));
}

template <class T>
void PanelWork<T>::start(const T* const* queries, index_t step, double scale) {
  if (sizes_.form == Form::panel) {
    vectors_ = (rows_.count + kernels_.width - 1) / kernels_.width;
    kernels_.pack({queries, step, rows_.count, sizes_.d_k, scale, vectors_, queries_.data()});
  } else {
    for (index_t r = 0; r < rows_.count; ++r) {
      for (index_t d = 0; d < sizes_.d_k; ++d)
        queries_.data()[r * sizes_.d_k + d] = scaled_element<T>(queries[r][d * step], scale);
    }
  }
  free_.clear();
  for (int n = sizes_.levels + 1; n > 0; --n) free_.push_back(n);
  current_ = 0;
  has_keys_ = false;
}

template <class T>
void PanelWork<T>::add(const Tile<T>& tile, const KvBlock<T>& block, TileRoom<T>& room) {
  if (!has_keys_) {
    if (sizes_.form == Form::panel)
      reset_rows(current_);
    else
      reset(current_);
  }
  std::copy_n(max(), lanes_, room.new_max.data());
  if (sizes_.form == Form::panel)
    add_panel(tile, block, room);
  else
    add_rows(tile, block, room);
  has_keys_ = true;
}

template <class T>
void PanelWork<T>::add_panel(const Tile<T>& tile, const KvBlock<T>& block, TileRoom<T>& room) {
  const PanelState<T> state = panel(current_);
  const index_t begin = tile.keys.begin, keys = tile.keys.end - begin;
  T* scores = room.scores.data();
  Reach reach(tile.allowed, keys, lanes_of(rows_), kernels_.width, vectors_);
  // Who looks sees every lane, those that see nothing of the last keys as the rule has it.
  const bool is_whole = is_watched();
  block.for_keys(tile.keys, [&](const StridedRows<T>& k, index_t first, index_t count) {
    const index_t n = first - begin;
    kernels_.scores({queries_.data(), sizes_.d_k, k, count, tile.softcap,
                     from_key(tile.bias, n, lanes_), from_key(tile.allowed, n, 1), vectors_,
                     scores + n * lanes_, room.new_max.data(),
                     is_whole ? nullptr : reach.of(n, count)});
  });
  if (is_whole) keep_scores(tile.keys, room);
  kernels_.softmax({scores, begin % kPartialSums, keys, tile.kept, vectors_, room.new_max.data(),
                    state.max, state.sum, room.alpha.data(),
                    is_whole ? nullptr : reach.of(0, keys)});
  if (is_whole) show(tile.keys, room);
  bool is_first = true;
  block.for_values(tile.keys, [&](const StridedRows<T>& v, index_t first, index_t count) {
    const index_t n = first - begin;
    kernels_.accumulate({scores + n * lanes_, count, v, sizes_.d_v,
                         is_first ? room.alpha.data() : nullptr,
                         tile.selects_values ? from_key(tile.allowed, n, 1) : nullptr, vectors_,
                         state.a, reach.of(n, count), is_first && !has_keys_});
    is_first = false;
  });
}

template <class T>
void PanelWork<T>::add_rows(const Tile<T>& tile, const KvBlock<T>& block, TileRoom<T>& room) {
  const RowsState<T> state = few(current_);
  const index_t begin = tile.keys.begin, keys = tile.keys.end - begin;
  T* scores = room.scores.data();
  block.for_key_runs(tile.keys, [&](const KvRun<T>& k) {
    const index_t n = k.begin - begin;
    kernels_.rows.scores({queries_.data(), rows_.count, sizes_.d_k, k.rows, k.begin % kBlock,
                          k.count, tile.softcap, from_key(tile.bias, n, lanes_), lanes_,
                          from_key(tile.allowed, n, 1), scores, room.new_max.data(), k.narrow});
  });
  if (is_watched()) keep_scores(tile.keys, room);
  kernels_.rows.softmax({scores, rows_.count, begin % kBlock, keys, tile.kept, room.new_max.data(),
                         state.max, state.sum, room.alpha.data()});
  if (is_watched()) show(tile.keys, room);
  const T* alpha = room.alpha.data();
  block.for_value_runs(tile.keys, [&](const KvRun<T>& v) {
    kernels_.rows.accumulate(
        {scores, rows_.count, v.begin % kBlock, v.count, v.rows, sizes_.d_v, alpha,
         tile.selects_values ? from_key(tile.allowed, v.begin - begin, 1) : nullptr, state.a,
         sizes_.d_v, v.narrow});
    alpha = nullptr;
  });
}

// Softmax puts the exponentials in their place.
template <class T>
void PanelWork<T>::keep_scores(KeyRange keys, TileRoom<T>& room) const {
  room.seen.resize(static_cast<std::size_t>(kBlock * lanes_));
  const index_t count = keys.end - keys.begin;
  if (sizes_.form == Form::panel) {
    std::copy_n(room.scores.data(), count * lanes_, room.seen.data());
    return;
  }
  for (index_t r = 0; r < rows_.count; ++r) {
    const index_t at = r * kBlock + keys.begin % kBlock;
    std::copy_n(room.scores.data() + at, count, room.seen.data() + at);
  }
}

template <class T>
void PanelWork<T>::show(KeyRange keys, const TileRoom<T>& room) const {
  if constexpr (std::is_same_v<T, float>) {
    const bool is_panel = sizes_.form == Form::panel;
    const index_t first = is_panel ? 0 : keys.begin % kBlock;
    (*sizes_.watch)({rows_, keys, is_panel ? lanes_ : 1, is_panel ? 1 : kBlock,
                     room.seen.data() + first, room.scores.data() + first, room.new_max.data()});
  }
}

template <class T>
void PanelWork<T>::merge(int x, int y) {
  if (sizes_.form == Form::panel)
    kernels_.merge({panel(x), panel(y), sizes_.d_v, vectors_});
  else
    kernels_.rows.merge({few(x), few(y), rows_.count, sizes_.d_v, sizes_.d_v});
}

template <class T>
void PanelWork<T>::end_chunk(index_t chunk) {
  const auto merged = [this](int x, int y) {
    merge(x, y);
    free_.push_back(y);
  };
  if (!has_keys_) {
    tree_.push(chunk, kMissing, merged);
    return;
  }
  tree_.push(chunk, current_, merged);
  GLASSHEAD_ASSERT(!free_.empty());
  current_ = free_.back();
  free_.pop_back();
  has_keys_ = false;
}

template <class T>
void PanelWork<T>::take(const T* state, index_t node) {
  std::copy_n(state, state_size(), slot(current_));
  has_keys_ = true;
  end_chunk(node);
}

template <class T>
void PanelWork<T>::end() {
  const int whole = tree_.finish([this](int x, int y) { merge(x, y); });
  if (whole != kMissing)
    current_ = whole;
  else
    reset(current_);
}

template <class T>
void PanelWork<T>::add_sinks(const T* sinks) {
  const int sink = current_ == 0 ? 1 : 0;
  reset(sink);
  std::copy_n(sinks, rows_.count, slot(sink));
  std::fill_n(slot(sink) + lanes_, rows_.count, T(1));
  merge(current_, sink);
}

template <class T>
void PanelWork<T>::finish(T kept, T* const* out, index_t step) {
  if (sizes_.form == Form::panel)
    kernels_.finish({panel(current_), rows_.count, sizes_.d_v, kept, vectors_, out, step});
  else
    kernels_.rows.finish({few(current_), rows_.count, sizes_.d_v, sizes_.d_v, kept, out, step});
}

template class PanelWork<float>;
template class PanelWork<double>;

}  // namespace glasshead
