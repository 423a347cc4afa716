// Rotary positions of the programs of a diagnosis. Hundreds of them turn by the same few bases, on
// the same positions: each cos and sin is made once for all.
//
//   const Turns turns;                                   // the subject's
//   const auto table = turns.of(rope, d_k);              // made before, or new
//   table->turn(x, position, rope);
#pragma once

#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "nn/rope.h"

namespace glasshead::doctor {

// cos and sin of every pair, by position: those of nn::rope_table. Kept until the diagnosis ends,
// 8 d bytes for each position that was asked for, in blocks.
class TurnTable {
 public:
  TurnTable(const nn::Rope& rope, index_t d);

  // x [d], in place, with the pairing of `rope`.
  void turn(double* x, index_t position, const nn::Rope& rope);

 private:
  static constexpr index_t kPositions = 64;  // of a block
  const std::vector<double>& block(index_t number);

  index_t d_;
  std::vector<double> frequencies_;  // [pairs]
  std::map<index_t, std::vector<double>>
      blocks_;                                 // [kPositions, 2, pairs] by position / kPositions
  const std::vector<double>* last_ = nullptr;  // positions go up by one
  index_t last_number_ = 0;
};

// One table for each base and size. One thread at a time.
class Turns {
 public:
  std::shared_ptr<TurnTable> of(const nn::Rope& rope, index_t d) const;

 private:
  mutable std::map<std::tuple<double, index_t, index_t>, std::shared_ptr<TurnTable>> tables_;
};

}  // namespace glasshead::doctor
