// Attention in tiles of keys with a running maximum, as kernels do it, wrong in one place each.
#pragma once

#include <algorithm>
#include <limits>

#include "arrays.h"

namespace specimens {

struct State {
  float m = -std::numeric_limits<float>::infinity(), l = 0;
  Floats acc;
};

inline Floats tile_scores(const Call& c, int b, int h, int i, int j0, int j1) {
  Floats s;
  for (int j = j0; j < j1; ++j)
    s.push_back(dot(c.query(b, h, i), c.key(b, h * c.G / c.H, j), c.D) / std::sqrt(float(c.D)));
  return s;
}

inline void finish(const Call& c, const State& state, float* to) {
  for (int e = 0; e < c.E; ++e) to[e] = state.acc[std::size_t(e)] / state.l;
}

// acc is not multiplied by exp(m_old - m_new).
inline Result acc_kept(const Call& c, int tile) {
  Result r(c);
  rows(c, [&](int b, int h, int i) {
    State t{-INFINITY, 0, Floats(std::size_t(c.E))};
    for (int j0 = 0; j0 < c.M; j0 += tile) {
      const int j1 = std::min(c.M, j0 + tile);
      const Floats s = tile_scores(c, b, h, i, j0, j1);
      const float m = std::max(t.m, *std::max_element(s.begin(), s.end()));
      t.l *= std::exp(t.m - m);
      for (int j = j0; j < j1; ++j) {
        const float p = std::exp(s[std::size_t(j - j0)] - m);
        t.l += p;
        for (int e = 0; e < c.E; ++e) t.acc[std::size_t(e)] += p * c.value(b, h * c.G / c.H, j)[e];
      }
      t.m = m;
    }
    finish(c, t, r.row(c, b, h, i));
  });
  return r;
}

// l is not multiplied by exp(m_old - m_new).
inline Result sum_kept(const Call& c, int tile) {
  Result r(c);
  rows(c, [&](int b, int h, int i) {
    State t{-INFINITY, 0, Floats(std::size_t(c.E))};
    for (int j0 = 0; j0 < c.M; j0 += tile) {
      const int j1 = std::min(c.M, j0 + tile);
      const Floats s = tile_scores(c, b, h, i, j0, j1);
      const float m = std::max(t.m, *std::max_element(s.begin(), s.end()));
      for (float& x : t.acc) x *= std::exp(t.m - m);
      for (int j = j0; j < j1; ++j) {
        const float p = std::exp(s[std::size_t(j - j0)] - m);
        t.l += p;
        for (int e = 0; e < c.E; ++e) t.acc[std::size_t(e)] += p * c.value(b, h * c.G / c.H, j)[e];
      }
      t.m = m;
    }
    finish(c, t, r.row(c, b, h, i));
  });
  return r;
}

// M / tile tiles: the rest is never read.
inline Result rest_dropped(const Call& c, int tile) {
  Result r(c);
  rows(c, [&](int b, int h, int i) {
    State t{-INFINITY, 0, Floats(std::size_t(c.E))};
    for (int n = 0; n < c.M / tile; ++n) {
      const Floats s = tile_scores(c, b, h, i, n * tile, (n + 1) * tile);
      const float m = std::max(t.m, *std::max_element(s.begin(), s.end()));
      const float alpha = std::exp(t.m - m);
      t.l *= alpha;
      for (float& x : t.acc) x *= alpha;
      for (int j = 0; j < tile; ++j) {
        const float p = std::exp(s[std::size_t(j)] - m);
        t.l += p;
        for (int e = 0; e < c.E; ++e)
          t.acc[std::size_t(e)] += p * c.value(b, h * c.G / c.H, n * tile + j)[e];
      }
      t.m = m;
    }
    finish(c, t, r.row(c, b, h, i));
  });
  return r;
}

// The last tile's missing keys and values are zeros that take part.
inline Result rest_of_zeros(const Call& c, int tile) {
  Result r(c);
  rows(c, [&](int b, int h, int i) {
    State t{-INFINITY, 0, Floats(std::size_t(c.E))};
    for (int j0 = 0; j0 < c.M; j0 += tile) {
      Floats s = tile_scores(c, b, h, i, j0, std::min(c.M, j0 + tile));
      s.resize(std::size_t(tile), 0.0F);
      const float m = std::max(t.m, *std::max_element(s.begin(), s.end()));
      const float alpha = std::exp(t.m - m);
      t.l *= alpha;
      for (float& x : t.acc) x *= alpha;
      for (int j = 0; j < tile; ++j) {
        const float p = std::exp(s[std::size_t(j)] - m);
        t.l += p;
        for (int e = 0; e < c.E && j0 + j < c.M; ++e)
          t.acc[std::size_t(e)] += p * c.value(b, h * c.G / c.H, j0 + j)[e];
      }
      t.m = m;
    }
    finish(c, t, r.row(c, b, h, i));
  });
  return r;
}

// Split keys: the parts' results are averaged.
inline Result parts_averaged(const Call& c, int tile) {
  Result r(c);
  rows(c, [&](int b, int h, int i) {
    const int parts = (c.M + tile - 1) / tile;
    for (int n = 0; n < parts; ++n) {
      const int j0 = n * tile, j1 = std::min(c.M, j0 + tile);
      Floats s = tile_scores(c, b, h, i, j0, j1);
      softmax(s);
      for (int j = j0; j < j1; ++j)
        for (int e = 0; e < c.E; ++e)
          r.row(c, b, h, i)[e] +=
              s[std::size_t(j - j0)] * c.value(b, h * c.G / c.H, j)[e] / float(parts);
    }
  });
  return r;
}

// Causal: tiles after the query are skipped, and the tile on the diagonal is taken whole.
inline Result diagonal_tile_whole(const Call& c, int tile) {
  Result r(c);
  rows(c, [&](int b, int h, int i) {
    Floats s;
    for (int j0 = 0; j0 < c.M; j0 += tile) {
      if (j0 > i) break;
      const Floats part = tile_scores(c, b, h, i, j0, std::min(c.M, j0 + tile));
      s.insert(s.end(), part.begin(), part.end());
    }
    softmax(s);
    s.resize(std::size_t(c.M), 0.0F);
    add_values(c, s, b, h * c.G / c.H, r.row(c, b, h, i));
  });
  return r;
}

}  // namespace specimens
