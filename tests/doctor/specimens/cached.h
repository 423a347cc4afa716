// Decoding: N new queries behind M - N cached keys, wrong in the cache or in the mask over it.
#pragma once

#include <algorithm>

#include "matrix.h"

namespace specimens {

// Query i of the call sees the keys up to its own, and `more`.
inline Result decode(const Call& c, int more = 0) {
  Result r(c);
  rows(c, [&](int b, int h, int i) {
    const int g = h * c.G / c.H, seen = std::min(c.M, c.M - c.N + i + 1 + more);
    Floats s;
    for (int j = 0; j < seen; ++j)
      s.push_back(dot(c.query(b, h, i), c.key(b, g, j), c.D) / std::sqrt(float(c.D)));
    softmax(s);
    s.resize(std::size_t(c.M));
    add_values(c, s, b, g, r.row(c, b, h, i));
  });
  return r;
}

// range(past_len + i) leaves the query's own key out.
inline Result decode_range_too_short(const Call& c) { return decode(c, -1); }

// np.tri(N, M, k=past_len + 1).
inline Result decode_tri_one_too_wide(const Call& c) { return decode(c, 1); }

// slot = past_len - 1: the new rows go over the last cached one, in k and in v.
inline Call written_early(Call c, bool grows) {
  for (int b = 0; b < c.B; ++b)
    for (int g = 0; g < c.G; ++g) {
      float* k = &c.k[std::size_t((b * c.G + g) * c.M * c.D)];
      float* v = &c.v[std::size_t((b * c.G + g) * c.M * c.E)];
      const int past = c.M - c.N;
      std::copy(k + past * c.D, k + c.M * c.D, k + (past - 1) * c.D);
      std::copy(v + past * c.E, v + c.M * c.E, v + (past - 1) * c.E);
      if (grows) continue;  // by torch.cat before, so that the last slot has its own row
      std::fill(k + (c.M - 1) * c.D, k + c.M * c.D, 0.0F);
      std::fill(v + (c.M - 1) * c.E, v + c.M * c.E, 0.0F);
    }
  return c;
}
inline Result slots_from_past_minus_one(const Call& c) { return decode(written_early(c, false)); }
inline Result slots_shifted_in_place(const Call& c) { return decode(written_early(c, true)); }

// The cache holds turned keys, and the whole of it is turned once more with the new ones.
inline Result cache_turned_again(const Call& c) {
  Call turning = c;
  const int past = c.M - c.N;
  for (int b = 0; b < c.B; ++b) {
    for (int h = 0; h < c.H; ++h)
      for (int i = 0; i < c.N; ++i) {
        const Floats q = turned(c.query(b, h, i), c.D, past + i);
        std::copy(q.begin(), q.end(), &turning.q[c.at(b, h, i) * std::size_t(c.D)]);
      }
    for (int g = 0; g < c.G; ++g)
      for (int j = 0; j < c.M; ++j) {
        Floats k = turned(c.key(b, g, j), c.D, j);
        if (j < past) k = turned(k.data(), c.D, j);
        std::copy(k.begin(), k.end(), &turning.k[std::size_t(((b * c.G + g) * c.M + j) * c.D)]);
      }
  }
  return decode(turning);
}

}  // namespace specimens
