#include "port/trail.h"

#include <algorithm>
#include <cmath>

namespace glasshead::port {
namespace {

using model::Point;

// Whether the rows that enter a part (leave it) are what this place holds.
bool holds_rows(const Piece& piece, Point point, bool is_leaving) {
  switch (piece.part) {
    case Part::embedding:
      return is_leaving && point == Point::embedding;
    case Part::layer:
      return point == (is_leaving ? Point::layer_out : Point::layer_in);
    case Part::end:
      return is_leaving && point == Point::final_norm;
  }
  return false;
}

bool can_be_placed(Point point) {
  switch (point) {
    case Point::self_weights:
    case Point::cross_weights:
    case Point::self_lse:
    case Point::cross_lse:
    case Point::cross_k:
    case Point::cross_v:
    case Point::final_norm:
    case Point::logits:
    case Point::embedding:
    case Point::layer_in:
    case Point::layer_out:
      return false;
    default:
      return true;
  }
}

bool contains(const std::vector<std::string>& all, const std::string& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

}  // namespace

void Walker::take(Entry& entry, std::size_t piece, bool is_leaving, bool& is_theirs) const {
  for (const Dumped& one : dump_.all()) {
    if (one.piece != piece ||
        !holds_rows(runner_.pieces()[piece], one.place.place.point, is_leaving))
      continue;
    const PortPlace place = dump_.compare(one, entry.rows, entry.parts);
    if (!place.is_right) continue;
    if (const std::optional<FileTensor> theirs = Dump::numbers(one, place.layout)) {
      entry.rows = *theirs;
      is_theirs = true;
    }
  }
}

PieceRun Walker::run(std::size_t piece, const Entry& entry, const FileTensor& memory,
                     const std::vector<Applied>& edits, const std::vector<Known>& known) const {
  const Piece& at = runner_.pieces()[piece];
  std::vector<std::string> wanted;
  for (const Dumped& one : dump_.all())
    if (one.piece == piece) wanted.push_back(one.place.name);
  Runner::Call call{.piece = at};
  call.wanted = &wanted;
  if (at.part != Part::embedding) call.rows = &entry.rows;
  if (!at.is_encoder && memory.size() > 0) call.memory = &memory;
  for (const Applied& one : edits)
    if (one.first <= piece && piece <= one.last) call.edits.push_back(&one.edit);
  for (const Known& right : known) {
    const Dumped& one = dump_.all()[right.dumped];
    if (one.piece != piece || !can_be_placed(one.place.place.point)) continue;
    const std::string name = runner_.inner_name(at, one.place.name);
    if (const std::optional<FileTensor> theirs = Dump::numbers(one, right.layout)) {
      call.changes.push_back(Patch{name, *theirs});
      call.known.push_back(name);
    }
  }
  return runner_.run(call);
}

PortPlace Walker::judged(const Dumped& one, const PieceRun& made, index_t parts) const {
  const std::string inner = runner_.inner_name(runner_.pieces()[one.piece], one.place.name);
  if (!made.numbers.has(inner)) {
    PortPlace place;
    place.name = one.place.name;
    place.theirs = one.theirs;
    place.error = HUGE_VAL;
    place.is_right = false;
    return place;
  }
  PortPlace place = dump_.compare(one, made.numbers.at(inner), parts);
  for (const auto& [name, tensor] : made.before) {
    if (name != inner) continue;
    const PortPlace before = dump_.compare(one, tensor, parts);
    if (before.error < place.error) place = before;
  }
  if (contains(made.not_compared, inner)) place.is_right = true;
  return place;
}

Trail Walker::walk(const std::vector<Applied>& edits) const {
  Trail trail;
  trail.first_wrong = dump_.all().size();
  Entry entry;
  for (std::size_t piece = 0; piece < runner_.pieces().size(); ++piece) {
    const Piece& at = runner_.pieces()[piece];
    ++entry.parts;
    bool is_theirs = false;
    if (at.part == Part::layer) take(entry, piece, false, is_theirs);
    if (is_theirs) entry.parts = 1;
    trail.entries.push_back(entry);
    const PieceRun made = run(piece, entry, trail.memory, edits, {});
    for (const Dumped& one : dump_.all()) {
      if (one.piece != piece) continue;
      PortPlace place = judged(one, made, entry.parts);
      if (!place.is_right) trail.first_wrong = std::min(trail.first_wrong, trail.places.size());
      trail.places.push_back(std::move(place));
    }
    entry.rows = made.rows;
    is_theirs = false;
    take(entry, piece, true, is_theirs);
    if (is_theirs) entry.parts = 0;
    if (at.is_encoder && at.part == Part::end) {
      trail.memory = entry.rows;
      entry = {{}, 0};
    }
  }
  return trail;
}

std::vector<PortPlace> Walker::again(const Trail& trail, const Stretch& stretch,
                                     const std::vector<Applied>& edits) const {
  std::vector<PortPlace> places;
  std::vector<Known> known;
  for (std::size_t n = 0; n < stretch.end; ++n)
    if (trail.places[n].is_right) known.push_back({n, trail.places[n].layout});
  Entry entry = trail.entries[stretch.first];
  FileTensor memory = trail.memory;
  for (std::size_t piece = stretch.first; piece <= stretch.last; ++piece) {
    const Piece& at = runner_.pieces()[piece];
    const PieceRun made = run(piece, entry, memory, edits, known);
    for (std::size_t n = 0; n <= stretch.end; ++n) {
      const Dumped& one = dump_.all()[n];
      if (one.piece != piece) continue;
      places.push_back(judged(one, made, entry.parts));
    }
    entry = {made.rows, entry.parts + 1};
    if (at.is_encoder && at.part == Part::end) memory = made.rows;
  }
  return places;
}

FileTensor Walker::numbers_at(const Trail& trail, std::size_t dumped,
                              const std::vector<Applied>& edits) const {
  const Dumped& one = dump_.all()[dumped];
  const PieceRun made = run(one.piece, trail.entries[one.piece], trail.memory, edits, {});
  return made.numbers.at(runner_.inner_name(runner_.pieces()[one.piece], one.place.name));
}

}  // namespace glasshead::port
