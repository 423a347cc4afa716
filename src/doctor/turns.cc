#include "doctor/turns.h"

#include "base/math.h"
#include "doctor/numbers.h"

namespace glasshead::doctor {

TurnTable::TurnTable(const nn::Rope& rope, index_t d)
    : d_(d), frequencies_(nn::rope_frequencies(rope, d)) {}

const std::vector<double>& TurnTable::block(index_t number) {
  if (last_ != nullptr && last_number_ == number) return *last_;
  std::vector<double>& made = blocks_[number];
  const std::size_t pairs = frequencies_.size();
  if (made.empty()) {
    made.resize(slot(kPositions) * 2 * pairs);
    for (index_t n = 0; n < kPositions; ++n) {
      const auto position = static_cast<double>(number * kPositions + n);
      double* to = made.data() + slot(n) * 2 * pairs;
      for (std::size_t i = 0; i < pairs; ++i) {
        to[i] = math::cos(position * frequencies_[i]);
        to[pairs + i] = math::sin(position * frequencies_[i]);
      }
    }
  }
  last_ = &made;  // stays where it is while others are added
  last_number_ = number;
  return made;
}

void TurnTable::turn(double* x, index_t position, const nn::Rope& rope) {
  const index_t number = (position < 0 ? position - kPositions + 1 : position) / kPositions;
  const std::size_t pairs = frequencies_.size();
  const double* at = block(number).data() + slot(position - number * kPositions) * 2 * pairs;
  nn::rotate({x, slot(d_)}, {at, pairs}, {at + pairs, pairs}, rope);
}

std::shared_ptr<TurnTable> Turns::of(const nn::Rope& rope, index_t d) const {
  std::shared_ptr<TurnTable>& table = tables_[{rope.base, rope.rotary, d}];
  if (table == nullptr) table = std::make_shared<TurnTable>(rope, d);
  return table;
}

}  // namespace glasshead::doctor
