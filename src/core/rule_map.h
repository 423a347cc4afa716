// The answers of a mask by rule (PairRule) for one call's sizes: blocks of 32 query rows and 128
// keys in which no pair may attend, or all, or some, which then have a bit per pair.
//
//   std::shared_ptr<const RuleMap> map = map_of(rule, version, shape, query_start);
//   if (map->allowed(b, h, i, j)) ...
//   std::uint64_t two[2];
//   map->row(b, h, i, block, two);            // the row's bits at keys 128 block .. 128 block +
//   127
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "glasshead/mask.h"

namespace glasshead {

// The sizes of one call that masks and biases see.
struct PairShape {
  index_t batch = 0, heads = 0, q_len = 0, kv_len = 0;
  index_t first_entry = 0;  // what a rule is told of batch entry 0
};

class RuleMap {
 public:
  static constexpr index_t kRows = 32;
  static constexpr index_t kKeys = 128;

  // Asks every pair once. A map of one batch entry answers for it whatever its number.
  RuleMap(const PairRule& rule, const PairShape& shape, index_t query_start);

  // Bit j % 64 of words[j % 128 / 64] says whether the row may attend to key j, for the existing
  // keys of the block.
  void row(index_t b, index_t h, index_t i, index_t key_block, std::uint64_t* words) const {
    const std::uint32_t entry = entries_[index(b, h, i / kRows, key_block)];
    if (entry < kSome) {
      words[0] = words[1] = entry == kAll ? ~std::uint64_t{0} : 0;
      return;
    }
    const std::size_t at =
        static_cast<std::size_t>(entry - kSome) * kWords + 2 * static_cast<std::size_t>(i % kRows);
    words[0] = bits_[at];
    words[1] = bits_[at + 1];
  }

  bool allowed(index_t b, index_t h, index_t i, index_t j) const {
    std::uint64_t words[2];
    row(b, h, i, j / kKeys, words);
    return (words[j % kKeys / 64] >> (j % 64) & 1) != 0;
  }

 private:
  static constexpr std::uint32_t kNone = 0, kAll = 1, kSome = 2;  // from here on, where bits_ are
  static constexpr std::size_t kWords = kRows * kKeys / 64;

  std::size_t index(index_t b, index_t h, index_t row_block, index_t key_block) const {
    const index_t plane = b * batch_step_ + h * head_step_;
    return static_cast<std::size_t>((plane * row_blocks_ + row_block) * key_blocks_ + key_block);
  }

  index_t batch_step_ = 0, head_step_ = 0;  // in planes of [q_len, kv_len]; 0: shared by all
  index_t row_blocks_ = 0, key_blocks_ = 0;
  std::vector<std::uint32_t> entries_;  // [planes, row_blocks, key_blocks]
  std::vector<std::uint64_t> bits_;     // [blocks with some, kRows, 2]
};

// The rule's map of these sizes and this version: the one it has, or a new one, which it then has.
std::shared_ptr<const RuleMap> map_of(const PairRule& rule, std::uint64_t version,
                                      const PairShape& shape, index_t query_start);

}  // namespace glasshead
