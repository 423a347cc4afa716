// What a study keeps of one attention over some query rows, from the tiles that attend makes. While
// it runs, a few numbers for each row and block of 128 keys, in the scale that the block was
// computed in; when a row's maximum and sum are known they become its weights' numbers, and rows
// are added up in order.
#pragma once

#include <map>
#include <vector>

#include "core/tile_watch.h"
#include "glasshead/attention.h"

namespace glasshead::model {

template <class T>
index_t bytes_of(const std::vector<T>& all) {
  return static_cast<index_t>(all.capacity() * sizeof(T));
}

// A text's tokens, and where each has been before.
class Repeats {
 public:
  void add(const std::vector<index_t>& ids);
  index_t size() const { return static_cast<index_t>(occurrences_.size()); }
  // Every place of the token at `position`, ascending.
  const std::vector<index_t>& of(index_t position) const {
    return *occurrences_[static_cast<std::size_t>(position)];
  }
  bool came_before(index_t position) const { return of(position).front() < position; }
  index_t bytes() const;

 private:
  std::map<index_t, std::vector<index_t>> places_;        // of each id
  std::vector<const std::vector<index_t>*> occurrences_;  // by position
};

// Of one row of weights, or summed over rows: what HeadMetrics has the mean of.
struct HeadNumbers {
  double first = 0, previous = 0, self = 0, entropy = 0, distance = 0, induction = 0;
};

// One head's rows.
struct HeadSums {
  HeadNumbers sum;
  std::vector<HeadNumbers> rows;  // on request: each row's own, NaN where it does not count
  // [rows of cells][cells seen so far]
  std::vector<std::vector<double>> total;   // of a cell's weights
  std::vector<std::vector<float>> largest;  // a NaN is the largest
};

class HeadPass {
 public:
  struct Sizes {
    index_t heads = 0, rows = 0;
    index_t position = 0;  // of the first row in its text
    index_t keys = 0;
    index_t cell = 0;  // 0: no pictures
    bool keeps_rows = false;
    // Keys are the text's own; null: another text's, and only `first` and `entropy` are made.
    const Repeats* text = nullptr;
  };
  void start(const Sizes& sizes);
  // On any thread; of one row and block only once.
  void see(const SeenTile& tile);
  // state: max and sum [1, heads, rows]. Adds to sums [heads].
  void finish(const RowState& state, std::vector<HeadSums>& sums, const Context& context);
  index_t bytes() const;  // of the room for a run's tiles

 private:
  struct Block {
    float max = 0;  // that its exponentials are relative to
    float entropy = 0, distance = 0, induction = 0;
  };
  struct Cell {
    float sum = 0, max = 0;
  };
  struct Row {  // exponentials of single pairs, each in its block's scale
    float first = 0, previous = 0, self = 0;
  };
  struct Picture {  // a row of cells
    double* total = nullptr;
    float* largest = nullptr;
  };
  template <int R>
  void add_rows(const SeenTile& tile, index_t row);
  void add_pairs(const SeenTile& tile, index_t row);
  Picture picture_of(index_t position, HeadSums& sums) const;
  void add_cells(index_t at, double factor, const Picture& to) const;
  // Of row i of the run; its weights go into the pictures of `sums`.
  HeadNumbers finish_row(index_t h, index_t i, const RowState& state, HeadSums& sums);
  HeadNumbers counted(HeadNumbers row, index_t i) const;
  index_t cell_of(index_t key) const { return key / cell_; }
  index_t row_at(index_t h, index_t i) const { return h * sizes_.rows + i; }

  Sizes sizes_;
  index_t cell_ = 0;         // a block, where there are no pictures
  index_t blocks_ = 0;       // of 128 keys
  index_t of_block_ = 0;     // cells that a block may touch
  std::vector<Block> kept_;  // [heads, rows, blocks]
  std::vector<Cell> cells_;  // [heads, rows, blocks, of_block]
  std::vector<Row> rows_;    // [heads, rows]
};

}  // namespace glasshead::model
