#include "glasshead/mask.h"

#include <utility>

namespace glasshead {
namespace {

Mask of(Mask::Part part) {
  Mask mask;
  mask.parts().push_back(std::move(part));
  return mask;
}

}  // namespace

Mask Mask::causal() { return of(Causal{}); }

Mask Mask::window(std::optional<index_t> left, std::optional<index_t> right) {
  return of(Window{left, right});
}

Mask Mask::key_lengths(std::vector<index_t> lengths) { return of(KeyLengths{std::move(lengths)}); }

Mask Mask::segments(index_t batch, std::vector<index_t> query_ids, std::vector<index_t> key_ids) {
  return of(Segments{batch, std::move(query_ids), std::move(key_ids)});
}

Mask Mask::prefix(std::vector<index_t> lengths) { return of(Prefix{std::move(lengths)}); }

Mask Mask::allowed(Broadcast booleans) { return of(Explicit{std::move(booleans)}); }

Mask Mask::where(PairRule rule, std::uint64_t version) {
  return of(Where{std::move(rule), version});
}

Mask operator&(Mask a, const Mask& b) {
  a.parts_.insert(a.parts_.end(), b.parts_.begin(), b.parts_.end());
  return a;
}

}  // namespace glasshead
