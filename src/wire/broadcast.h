// A mask or bias that lies dense in memory, as `attend` takes it.
#pragma once

#include <memory>
#include <span>
#include <utility>

#include "glasshead/mask.h"

namespace glasshead::wire {

// Of rank 0 to 4, to be broadcast to [batch, heads, q_len, kv_len]; without an owner the caller
// keeps the data alive.
inline Broadcast dense_broadcast(const void* data, DType dtype, std::span<const index_t> shape,
                                 std::shared_ptr<const void> owner = nullptr) {
  Broadcast result;
  result.data = data;
  result.dtype = dtype;
  result.rank = static_cast<int>(shape.size());
  index_t stride = 1;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    result.shape[axis] = shape[axis];
    result.strides[axis] = stride;
    stride *= shape[axis];
  }
  result.owner = std::move(owner);
  return result;
}

}  // namespace glasshead::wire
