// Stored matrices brought into the order that kernels/linear_kernels.h wants, and read back.
//
//   const index_t groups = groups_of(matrix.out);   // of 32 outputs
//   pack(matrix, 0, groups, data);                  // data [groups, group_bytes(form, in)]
//   unpack_row(form, data, matrix.in, o, out);      // row o as f32
#pragma once

#include <cstddef>
#include <span>

#include "kernels/linear_kernels.h"
#include "nn/linear.h"

namespace glasshead::nn {

WeightForm form_of(Stored type);                   // is_number(type); f64 becomes f32
index_t form_elements(WeightForm form);            // of a block along `in`
index_t group_bytes(WeightForm form, index_t in);  // of 32 outputs
index_t groups_of(index_t out);                    // out / 32, rounded up

// Groups [first, first + count) of the matrix, to `data`, aligned to 64; outputs beyond the
// matrix's are zeros. matrix.in is a multiple of form_elements. Whether all factors are finite, so
// that the kernels' scale·q + offset is the formula's: an infinite one would otherwise make NaN of
// what is inf.
bool pack(const StoredMatrix& matrix, index_t first, index_t count, std::byte* data);

// Elements [first, first + out.size()) of row `o`, by the formula of base/stored.h.
void unpack_row(WeightForm form, const std::byte* data, index_t in, index_t o, index_t first,
                std::span<float> out);

}  // namespace glasshead::nn
