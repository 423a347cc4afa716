// What a KvInput holds, for the layers that compute.
#pragma once

#include <memory>
#include <vector>

#include "core/kv_source.h"
#include "glasshead/kv_cache.h"

namespace glasshead {

struct KvInput::State {
  KvSource source;
  std::vector<KeyRange> held;  // [sequences] the keys that are there; end is the length
  // Of a cache: counts its changes; what is read here was made at `made_at`. Null: no cache.
  std::shared_ptr<const std::uint64_t> changes;
  std::uint64_t made_at = 0;

  bool is_stale() const { return changes != nullptr && *changes != made_at; }
};

}  // namespace glasshead
