#include "doctor/numbers.h"

namespace glasshead::doctor {

Place found_at(const Misread& misread, const Place& wanted, const Place& extents) {
  const auto [h, l, d] = wanted;
  const auto [heads, length, size] = extents;
  index_t flat = 0;
  switch (misread.read) {
    case Order::hld:
      flat = (h * length + l) * size + d;
      break;
    case Order::lhd:
      flat = (l * heads + h) * size + d;
      break;
    case Order::hdl:
      flat = (h * size + d) * length + l;
      break;
    case Order::ldh:
      flat = (l * size + d) * heads + h;
      break;
  }
  switch (misread.stored) {
    case Order::hld:
      return {flat / size / length, flat / size % length, flat % size};
    case Order::lhd:
      return {flat / size % heads, flat / size / heads, flat % size};
    case Order::ldh:
      return {flat % heads, flat / heads / size, flat / heads % size};
    case Order::hdl:
      break;
  }
  return {flat / length / size, flat % length, flat / length % size};
}

Numbers::Numbers(const ConstTensor<4>& tensor)
    : tensor_(tensor), heads_(slot(tensor.shape[0] * tensor.shape[1])) {}

const double* Numbers::head(index_t b, index_t h) const {
  std::unique_ptr<double[]>& numbers = heads_[slot(b * tensor_.shape[1] + h)];
  if (numbers) return numbers.get();
  numbers = std::make_unique<double[]>(slot(tensor_.shape[2] * tensor_.shape[3]));
  double* to = numbers.get();
  for (index_t l = 0; l < tensor_.shape[2]; ++l)
    for (index_t d = 0; d < tensor_.shape[3]; ++d) *to++ = tensor_.load(b, h, l, d);
  return numbers.get();
}

// The last axis stays the last unless the order is hdl: then whole rows change places.
const double* Numbers::row(index_t b, const Place& at, const Misread& misread, double* to) const {
  if (misread.is_right()) return row(b, at.h, at.l);
  const Place extents{tensor_.shape[1], tensor_.shape[2], tensor_.shape[3]};
  if (misread.read == Order::ldh) {
    for (index_t d = 0; d < extents.d; ++d) {
      const index_t column = d * extents.h + at.h;  // of all heads' columns side by side
      to[d] = row(b, column / extents.d, at.l)[column % extents.d];
    }
    return to;
  }
  if (misread.read != Order::hdl && misread.stored != Order::hdl) {
    const Place from = found_at(misread, {at.h, at.l, 0}, extents);
    return row(b, from.h, from.l);
  }
  const double* whole = head(b, at.h);
  if (misread.read == Order::hdl) {
    for (index_t d = 0; d < extents.d; ++d) to[d] = whole[d * extents.l + at.l];
    return to;
  }
  index_t l = at.l * extents.d % extents.l, e = at.l * extents.d / extents.l;
  for (index_t d = 0; d < extents.d; ++d) {
    to[d] = whole[l * extents.d + e];
    if (++l < extents.l) continue;
    l = 0;
    ++e;
  }
  return to;
}

}  // namespace glasshead::doctor
