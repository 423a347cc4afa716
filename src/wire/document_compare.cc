#include "wire/document_compare.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "wire/document_build.h"

namespace glasshead::wire {
namespace {

constexpr double kSameWithin = 1e-12;

using TableName = std::pair<std::string, index_t>;  // tap, head

bool is_counted(const std::string& tap) {
  const std::string leaf = leaf_of(tap);
  for (const char* name : {"scores", "scaled", "capped", "biased", "weights", "out"})
    if (leaf == name) return true;
  return false;
}

bool has_moved(const Cell& after, const Cell& before) {
  if (after.is_hidden || before.is_hidden) return after.is_hidden != before.is_hidden;
  return !is_unmoved(after.exact, before.exact);
}

void mark(Cell& after, const Cell& before) {
  after.before = marked(before);
  const double to = after.is_hidden ? 0 : after.exact, from = before.is_hidden ? 0 : before.exact;
  after.direction = to > from ? 1 : -1;
}

}  // namespace

bool is_unmoved(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return true;
  return std::fabs(a - b) <= kSameWithin * std::max({1.0, std::fabs(a), std::fabs(b)});
}

void mark_moved(Table& after, const Table& before, Moved& moved) {
  if (after.shape != before.shape || after.rows.size() != before.rows.size()) return;
  const bool counts = is_counted(after.tap);
  for (std::size_t n = 0; n < after.rows.size(); ++n)
    for (std::size_t j = 0; j < after.rows[n].size() && j < before.rows[n].size(); ++j) {
      if (counts) ++moved.of;
      if (!has_moved(after.rows[n][j], before.rows[n][j])) continue;
      mark(after.rows[n][j], before.rows[n][j]);
      if (counts) ++moved.moved;
    }
}

Moved mark_moved(Document& after, const Document& before) {
  std::map<TableName, const Table*> old;
  for (const Section& section : before.sections)
    for (const Table& table : section.tables) old.emplace(TableName{table.tap, table.head}, &table);
  Moved moved;
  for (Section& section : after.sections)
    for (Table& table : section.tables) {
      const auto found = old.find({table.tap, table.head});
      if (found != old.end()) mark_moved(table, *found->second, moved);
    }
  return moved;
}

}  // namespace glasshead::wire
