// Random numbers that are functions of a seed and a position: no state, so any order, any thread
// and any machine gives the same ones.
//
//   double z = standard_normal(7, n);                 // the n-th of seed 7
//   bool is_gone = dropped(seed, {b, h, i, j}, 0.1);
//
// Philox4x32-10: J. Salmon, M. Moraes, R. Dror, D. Shaw, Parallel random numbers: as easy as
// 1, 2, 3, SC 2011.
#pragma once

#include <array>
#include <cstdint>

#include "glasshead/tensor.h"

namespace glasshead {

// Philox4x32 with ten rounds: 128 random bits of a 64-bit key and a 128-bit counter, least
// significant words first.
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 2> key,
                                    std::array<std::uint32_t, 4> counter);

// The same with the seed as key and the counter {n, stream}.
std::array<std::uint32_t, 4> philox(std::uint64_t seed, std::uint64_t n, std::uint64_t stream = 0);

// The n-th number of a seed's stream, uniform in [0, 1): a multiple of 2^-53.
double uniform(std::uint64_t seed, std::uint64_t n, std::uint64_t stream = 0);

// The n-th number of a seed's stream, normal with mean 0 and variance 1 (Box and Muller, 1958, with
// base/math.h). Numbers 2m and 2m+1 are made from one pair of uniforms. |z| < 8.6.
double standard_normal(std::uint64_t seed, std::uint64_t n, std::uint64_t stream = 0);

// A (query, key) pair of a batch and head.
struct PairIndex {
  index_t b = 0, h = 0, i = 0, j = 0;
};

// True with probability p (0: never, 1: always); depends on these numbers alone.
bool dropped(std::uint64_t seed, const PairIndex& pair, double p);

// flags[n] = dropped(seed, {b, h, i, j + n}, p) for n < count, some at once: in a quarter of the
// time.
void dropped_run(std::uint64_t seed, const PairIndex& first, index_t count, double p,
                 std::uint8_t* flags);

}  // namespace glasshead
