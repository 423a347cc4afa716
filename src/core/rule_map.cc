#include "core/rule_map.h"

#include <algorithm>
#include <utility>

#ifndef __wasm__  // one thread, and a library without mutexes
#include <mutex>
#endif

namespace glasshead {
namespace {

#ifdef __wasm__
struct Mutex {};
struct Lock {
  explicit Lock(Mutex&) {}
};
#else
using Mutex = std::mutex;
using Lock = std::lock_guard<std::mutex>;
#endif

// Enough for the calls of one model that differ in size: self-attention of two stacks, and across.
constexpr std::size_t kMapsKept = 4;

// Everything that an answer depends on.
struct MapKey {
  std::uint64_t version;
  index_t batch, heads, q_len, kv_len, query_start, first_entry;
  bool operator==(const MapKey&) const = default;
};

}  // namespace

struct PairRule::State {
  struct Kept {
    MapKey key;
    std::shared_ptr<const RuleMap> map;
  };
  PairPredicate predicate;
  PairRuleOptions options;
  Mutex mutex;
  std::vector<Kept> maps;  // the latest used last
};

PairRule::PairRule(PairPredicate predicate, PairRuleOptions options)
    : state_(std::make_shared<State>()) {
  state_->predicate = std::move(predicate);
  state_->options = options;
}

const PairPredicate& PairRule::predicate() const { return state_->predicate; }
const PairRuleOptions& PairRule::options() const { return state_->options; }

RuleMap::RuleMap(const PairRule& rule, const PairShape& shape, index_t query_start)
    : row_blocks_((shape.q_len + kRows - 1) / kRows),
      key_blocks_((shape.kv_len + kKeys - 1) / kKeys) {
  const index_t batches = rule.options().per_batch ? shape.batch : 1;
  const index_t heads = rule.options().per_head ? shape.heads : 1;
  head_step_ = rule.options().per_head ? 1 : 0;
  batch_step_ = batches > 1 ? heads : 0;
  const index_t first_entry = rule.options().per_batch ? shape.first_entry : 0;
  const PairPredicate& may_attend = rule.predicate();
  for (index_t plane = 0; plane < batches * heads; ++plane) {
    for (index_t first = 0; first < shape.q_len; first += kRows) {
      for (index_t begin = 0; begin < shape.kv_len; begin += kKeys) {
        const index_t rows = std::min(kRows, shape.q_len - first);
        const index_t keys = std::min(kKeys, shape.kv_len - begin);
        std::uint64_t words[kWords] = {};
        index_t count = 0;
        for (index_t r = 0; r < rows; ++r) {
          for (index_t n = 0; n < keys; ++n) {
            if (!may_attend(first_entry + plane / heads, plane % heads, query_start + first + r,
                            begin + n))
              continue;
            words[2 * r + n / 64] |= std::uint64_t{1} << (n % 64);
            ++count;
          }
        }
        if (count == 0 || count == rows * keys) {
          entries_.push_back(count == 0 ? kNone : kAll);
          continue;
        }
        entries_.push_back(kSome + static_cast<std::uint32_t>(bits_.size() / kWords));
        bits_.insert(bits_.end(), words, words + kWords);
      }
    }
  }
}

std::shared_ptr<const RuleMap> map_of(const PairRule& rule, std::uint64_t version,
                                      const PairShape& shape, index_t query_start) {
  const MapKey key{version,
                   rule.options().per_batch ? shape.batch : 1,
                   rule.options().per_head ? shape.heads : 1,
                   shape.q_len,
                   shape.kv_len,
                   query_start,
                   rule.options().per_batch ? shape.first_entry : 0};
  PairRule::State& state = rule.state();
  // Held while the pairs are asked: whoever wants the same map waits for it.
  const Lock lock(state.mutex);
  auto& maps = state.maps;
  const auto found = std::find_if(
      maps.begin(), maps.end(), [&](const PairRule::State::Kept& kept) { return kept.key == key; });
  if (found != maps.end()) {
    std::rotate(found, found + 1, maps.end());
    return maps.back().map;
  }
  auto map = std::make_shared<const RuleMap>(rule, shape, query_start);
  if (maps.size() == kMapsKept) maps.erase(maps.begin());
  maps.push_back({key, map});
  return map;
}

}  // namespace glasshead
