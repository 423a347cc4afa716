// What a specimen gets and gives: flat f32 arrays, as a program would have them. Specimens are
// wrong attention written the way it is written wrongly; they share no code with the library.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace specimens {

using Floats = std::vector<float>;

struct Call {
  int B = 1, H = 1, G = 1;   // batch, query heads, key/value heads
  int N = 1, M = 1;          // queries, keys
  int D = 1, E = 1;          // sizes of a query and of a value
  Floats q, k, v;            // [B, H, N, D], [B, G, M, D], [B, G, M, E]
  std::vector<int> lengths;  // [B] keys that count; empty: all

  const float* query(int b, int h, int i) const {
    return &q[std::size_t(((b * H + h) * N + i) * D)];
  }
  const float* key(int b, int g, int j) const { return &k[std::size_t(((b * G + g) * M + j) * D)]; }
  const float* value(int b, int g, int j) const {
    return &v[std::size_t(((b * G + g) * M + j) * E)];
  }
  std::size_t at(int b, int h, int i) const { return std::size_t((b * H + h) * N + i); }
};

struct Result {
  Floats out;  // [B, H, N, E]
  Floats lse;  // [B, H, N], or empty
  explicit Result(const Call& c) : out(std::size_t(c.B * c.H * c.N * c.E)) {}
  float* row(const Call& c, int b, int h, int i) { return &out[c.at(b, h, i) * std::size_t(c.E)]; }
};

inline float dot(const float* a, const float* b, int n) {
  float sum = 0;
  for (int e = 0; e < n; ++e) sum += a[e] * b[e];
  return sum;
}

inline void softmax(Floats& s) {
  float m = s[0], l = 0;
  for (float x : s) m = x > m ? x : m;
  for (float& x : s) l += x = std::exp(x - m);
  for (float& x : s) x /= l;
}

inline void add_values(const Call& c, const Floats& w, int b, int g, float* to) {
  for (int j = 0; j < c.M; ++j)
    for (int e = 0; e < c.E; ++e) to[e] += w[std::size_t(j)] * c.value(b, g, j)[e];
}

// For every row: f(b, h, i).
template <class F>
void rows(const Call& c, const F& f) {
  for (int b = 0; b < c.B; ++b)
    for (int h = 0; h < c.H; ++h)
      for (int i = 0; i < c.N; ++i) f(b, h, i);
}

}  // namespace specimens
