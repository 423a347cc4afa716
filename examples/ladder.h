// The ladder of docs/kernels.md: attention four times, each rung faster than the one below it and
// giving the same answer. One head: q [n, d], k [keys, d], v [keys, d], out [n, d], row-major.
#pragma once

#include "glasshead/attention.h"

namespace ladder {

using glasshead::Context;
using glasshead::index_t;

struct Head {
  const float* q;  // [n, d]
  const float* k;  // [keys, d]
  const float* v;  // [keys, d]
  float* out;      // [n, d]
  index_t n, keys, d;
};

void naive(const Head& head);                             // three loops and a matrix of scores
void tiled(const Head& head);                             // one tile of scores at a time
void lanes(const Head& head, const Context& one_thread);  // one query per vector lane
void threaded(const Head& head, const Context& all_threads);
void decode(const Head& head, const Context& one_thread);  // n = 1: lanes are keys

}  // namespace ladder
