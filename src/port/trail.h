// A whole run, part by part, with mistakes made in some of them, beside somebody's numbers.
#pragma once

#include <vector>

#include "port/dump.h"
#include "port/runner.h"

namespace glasshead::port {

// An edit, and the parts [first, last] in which it is made.
struct Applied {
  Edit edit;
  std::size_t first = 0, last = 0;
};

// What goes into a part.
struct Entry {
  FileTensor rows;
  index_t parts = 0;  // run since the last rows that were theirs
};

struct Trail {
  std::vector<PortPlace> places;  // of every dumped place, in order
  // The first wrong one, or their number.
  std::size_t first_wrong = 0;
  std::vector<Entry> entries;  // [pieces] what went into each
  FileTensor memory;           // the encoder's rows, as the decoder read them
};

class Walker {
 public:
  Walker(const Runner& runner, const Dump& dump) : runner_(runner), dump_(dump) {}

  // Parts are given their rows wherever these are right.
  Trail walk(const std::vector<Applied>& edits) const;

  // Parts [first, last] alone, from what went into `first` on a trail. What is known there is put
  // in place: their numbers at the right places before `end` (an index into the dump).
  struct Stretch {
    std::size_t first = 0, last = 0, end = 0;
  };
  // The dumped places of these parts up to `end`, which is the last.
  std::vector<PortPlace> again(const Trail& trail, const Stretch& stretch,
                               const std::vector<Applied>& edits) const;
  // Ours at one dumped place, as on the trail.
  FileTensor numbers_at(const Trail& trail, std::size_t dumped,
                        const std::vector<Applied>& edits) const;

 private:
  // A place that is right, and how theirs lies.
  struct Known {
    std::size_t dumped = 0;
    std::string layout;
  };
  // What a run gave at a dumped place, which an edit may have taken away: then it is wrong.
  PortPlace judged(const Dumped& one, const PieceRun& made, index_t parts) const;
  // The rows, theirs if they are dumped at one of these places and right.
  void take(Entry& entry, std::size_t piece, bool is_leaving, bool& is_theirs) const;
  PieceRun run(std::size_t piece, const Entry& entry, const FileTensor& memory,
               const std::vector<Applied>& edits, const std::vector<Known>& known) const;

  const Runner& runner_;
  const Dump& dump_;
};

}  // namespace glasshead::port
