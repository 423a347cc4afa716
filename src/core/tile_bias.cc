// The biases of a tile: each term gives every row a run of numbers in the compute type (in place
// where they lie so in memory, else from scratch memory that rows with the same numbers share),
// which a kernel then turns from [row][key] to [key][lane].
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <variant>

#include "core/foresee.h"
#include "core/tile_plan.h"
#include "core/widen.h"

namespace glasshead {
namespace {

// Numbers of one term for the rows of a panel at up to kRun keys.
template <class T>
struct RowRuns {
  static constexpr index_t kRun = 512 / static_cast<index_t>(sizeof(T));
  const T* row[kMostRows];
  index_t used = 0;
  alignas(64) T scratch[kMostRows * kRun];

  T* take(index_t count) {
    T* const room = scratch + used;
    used += count;
    return room;
  }
};

template <class T>
void load_rows(const Bias::Dense& dense, const PanelRows& rows, KeyRange keys, index_t kv_len,
               RowRuns<T>& runs) {
  const PairStrides strides(dense.values);
  const SourceRows sources(strides, rows);
  const index_t count = keys.end - keys.begin;
  const auto* const elements = static_cast<const unsigned char*>(dense.values.data);
  const auto size = static_cast<index_t>(size_of(dense.values.dtype));
  const index_t ahead = std::min(RowRuns<T>::kRun, kv_len - keys.end);  // keys of the next block
  for (index_t s = 0; s < sources.count; ++s) {
    const index_t offset = sources.offset[s] + keys.begin * strides.j;
    if (strides.j == 1) foresee(elements + (offset + count) * size, ahead * size);
    const T* run = nullptr;
    if (strides.j == 1 && dense.values.dtype == dtype_of<T>()) {
      run = static_cast<const T*>(dense.values.data) + offset;
    } else {
      T* const converted = runs.take(count);
      load_run(dense.values.data, dense.values.dtype, offset, strides.j, count, converted);
      run = converted;
    }
    for (std::uint32_t left = sources.lanes[s]; left != 0; left &= left - 1)
      runs.row[std::countr_zero(left)] = run;
  }
}

// Biases of j - p: rows of one head at nearby positions are windows of one strip of relative
// positions, fill(h, begin, end, strip).
template <class T, class Fill>
void load_strips(const PanelRows& rows, index_t query_start, KeyRange keys, RowRuns<T>& runs,
                 const Fill& fill) {
  const index_t count = keys.end - keys.begin;
  std::uint32_t left = lanes_of(rows);
  while (left != 0) {
    const int leader = std::countr_zero(left);
    const index_t h = rows.h[leader];
    std::uint32_t together = 0;
    index_t first = rows.i[leader];
    index_t last = first;
    for (index_t r = leader; r < rows.count; ++r) {
      if ((left >> r & 1) == 0 || rows.h[r] != h) continue;
      const index_t low = std::min(first, rows.i[r]);
      const index_t high = std::max(last, rows.i[r]);
      if (high - low > count) continue;  // a strip of its own costs less
      first = low;
      last = high;
      together |= std::uint32_t{1} << r;
    }
    const index_t begin = keys.begin - (query_start + last);
    const index_t end = keys.end - (query_start + first);
    T* const strip = runs.take(end - begin);
    fill(h, begin, end, strip);
    for (index_t r = leader; r < rows.count; ++r) {
      if ((together >> r & 1) != 0) runs.row[r] = strip + (last - rows.i[r]);
    }
    left &= ~together;
  }
}

// -slope * |distance| for the distances [begin, end).
template <class T>
void fill_distances(double slope, index_t begin, index_t end, T* strip) {
  constexpr index_t kExact = index_t{1} << 52;  // sums of doubles stay whole numbers
  if (begin > -kExact && end < kExact) {
    const auto first = static_cast<double>(begin);
    const auto count = static_cast<int>(end - begin);
    for (int n = 0; n < count; ++n)
      strip[n] = static_cast<T>(-slope * std::fabs(first + static_cast<double>(n)));
    return;
  }
  for (index_t at = begin; at < end; ++at)
    strip[at - begin] = static_cast<T>(-slope * static_cast<double>(at < 0 ? -at : at));
}

template <class T>
void load_rows(const Bias::Alibi& alibi, const PanelRows& rows, index_t query_start, KeyRange keys,
               RowRuns<T>& runs) {
  const auto slope = [&](index_t h) { return alibi.slopes[static_cast<std::size_t>(h)]; };
  if (alibi.form == Bias::AlibiForm::distance) {
    load_strips(rows, query_start, keys, runs,
                [&](index_t h, index_t begin, index_t end, T* strip) {
                  fill_distances(slope(h), begin, end, strip);
                });
    return;
  }
  for (index_t r = 0; r < rows.count; ++r) {  // of the key alone: rows of one head are equal
    index_t same = r;
    while (same > 0 && rows.h[same - 1] != rows.h[r]) --same;
    if (same > 0) {
      runs.row[r] = runs.row[same - 1];
      continue;
    }
    T* const run = runs.take(keys.end - keys.begin);
    for (index_t j = keys.begin; j < keys.end; ++j)
      run[j - keys.begin] = static_cast<T>(slope(rows.h[r]) * static_cast<double>(j));
    runs.row[r] = run;
  }
}

}  // namespace

template <class T>
void TilePlan::bias(const Kernels<T>& kernels, const PanelRows& rows, KeyRange keys, index_t lanes,
                    T* bias) const {
  RowRuns<T> runs;
  const index_t vectors = (rows.count + kernels.width - 1) / kernels.width;
  const index_t start = mask_.query_start();
  for (index_t begin = keys.begin; begin < keys.end; begin += RowRuns<T>::kRun) {
    const KeyRange part{begin, std::min(keys.end, begin + RowRuns<T>::kRun)};
    const index_t count = part.end - part.begin;
    T* const out = bias + (begin - keys.begin) * lanes;
    if (!has_bias()) std::fill(out, out + count * lanes, T(0));
    auto relative = relative_.begin();
    bool adds = false;
    for (const Bias::Term& term : bias_.bias().terms()) {
      runs.used = 0;
      if (const auto* dense = std::get_if<Bias::Dense>(&term)) {
        load_rows(*dense, rows, part, mask_.shape().kv_len, runs);
      } else if (const auto* alibi = std::get_if<Bias::Alibi>(&term)) {
        load_rows(*alibi, rows, start, part, runs);
      } else {
        const RelativeRuns& t5 = *relative++;
        load_strips(rows, start, part, runs, [&](index_t h, index_t from, index_t to, T* strip) {
          t5.fill(h, from, to, strip);
        });
      }
      for (index_t r = rows.count; r < vectors * kernels.width; ++r)  // any numbers will do
        runs.row[r] = runs.row[rows.count - 1];
      kernels.turn({runs.row, count, vectors, adds, out, lanes});
      adds = true;
    }
  }
}

template void TilePlan::bias(const Kernels<float>&, const PanelRows&, KeyRange, index_t,
                             float*) const;
template void TilePlan::bias(const Kernels<double>&, const PanelRows&, KeyRange, index_t,
                             double*) const;

}  // namespace glasshead
