// Attention row by row with all scores at hand, wrong in one place each.
#pragma once

#include <limits>

#include "arrays.h"

namespace specimens {

constexpr float kHidden = -std::numeric_limits<float>::infinity();

// is_causal as tril(ones(N, M)): top left, where the cache made it bottom right.
inline Result causal_top_left(const Call& c) {
  Result r(c);
  rows(c, [&](int b, int h, int i) {
    Floats s;
    for (int j = 0; j < c.M; ++j)
      s.push_back(j > i ? kHidden
                        : dot(c.query(b, h, i), c.key(b, h * c.G / c.H, j), c.D) /
                              std::sqrt(float(c.D)));
    softmax(s);
    add_values(c, s, b, h * c.G / c.H, r.row(c, b, h, i));
  });
  return r;
}

inline Result no_scale(const Call& c) {
  Result r(c);
  rows(c, [&](int b, int h, int i) {
    Floats s;
    for (int j = 0; j < c.M; ++j)
      s.push_back(dot(c.query(b, h, i), c.key(b, h * c.G / c.H, j), c.D));
    softmax(s);
    add_values(c, s, b, h * c.G / c.H, r.row(c, b, h, i));
  });
  return r;
}

// q and k are both divided by sqrt(d).
inline Result scaled_twice(const Call& c) {
  Result r(c);
  const float f = 1 / std::sqrt(float(c.D));
  rows(c, [&](int b, int h, int i) {
    Floats s, q(c.query(b, h, i), c.query(b, h, i) + c.D);
    for (float& x : q) x *= f;
    for (int j = 0; j < c.M; ++j) {
      Floats k(c.key(b, h * c.G / c.H, j), c.key(b, h * c.G / c.H, j) + c.D);
      for (float& x : k) x *= f;
      s.push_back(dot(q.data(), k.data(), c.D));
    }
    softmax(s);
    add_values(c, s, b, h * c.G / c.H, r.row(c, b, h, i));
  });
  return r;
}

// k.repeat(1, H/G, 1, 1) for repeat_interleave.
inline Result repeated_whole(const Call& c) {
  Call wide = c;
  wide.G = c.H;
  wide.k.clear();
  wide.v.clear();
  for (int b = 0; b < c.B; ++b)
    for (int n = 0; n < c.H / c.G; ++n) {
      wide.k.insert(wide.k.end(), c.key(b, 0, 0), c.key(b, 0, 0) + c.G * c.M * c.D);
      wide.v.insert(wide.v.end(), c.value(b, 0, 0), c.value(b, 0, 0) + c.G * c.M * c.E);
    }
  Result r(c);
  rows(wide, [&](int b, int h, int i) {
    Floats s;
    for (int j = 0; j < c.M; ++j)
      s.push_back(dot(wide.query(b, h, i), wide.key(b, h, j), c.D) * (1 / std::sqrt(float(c.D))));
    softmax(s);
    add_values(wide, s, b, h, r.row(c, b, h, i));
  });
  return r;
}

// softmax(scores) * mask.
inline Result masked_after(const Call& c) {
  Result r(c);
  rows(c, [&](int b, int h, int i) {
    Floats s;
    for (int j = 0; j < c.M; ++j)
      s.push_back(dot(c.query(b, h, i), c.key(b, h * c.G / c.H, j), c.D) / std::sqrt(float(c.D)));
    softmax(s);
    for (int j = i + 1; j < c.M; ++j) s[std::size_t(j)] = 0;
    add_values(c, s, b, h * c.G / c.H, r.row(c, b, h, i));
  });
  return r;
}

// (1 - mask) * -10000 is added; a batch entry without keys sees all of its padding.
inline Result minus_ten_thousand(const Call& c) {
  Result r(c);
  rows(c, [&](int b, int h, int i) {
    Floats s;
    for (int j = 0; j < c.M; ++j) {
      const float mask = j < c.lengths[std::size_t(b)] ? 1 : 0;
      s.push_back(dot(c.query(b, h, i), c.key(b, h * c.G / c.H, j), c.D) / std::sqrt(float(c.D)) +
                  (1 - mask) * -10000);
    }
    softmax(s);
    add_values(c, s, b, h * c.G / c.H, r.row(c, b, h, i));
  });
  return r;
}

// masked_fill with -inf: a batch entry without keys is 0/0.
inline Result nan_without_keys(const Call& c) {
  Result r(c);
  rows(c, [&](int b, int h, int i) {
    Floats s;
    for (int j = 0; j < c.M; ++j)
      s.push_back(j < c.lengths[std::size_t(b)]
                      ? dot(c.query(b, h, i), c.key(b, h * c.G / c.H, j), c.D) /
                            std::sqrt(float(c.D))
                      : kHidden);
    softmax(s);
    add_values(c, s, b, h * c.G / c.H, r.row(c, b, h, i));
  });
  return r;
}

// The padding is taken to be on the left.
inline Result padded_left(const Call& c) {
  Result r(c);
  rows(c, [&](int b, int h, int i) {
    Floats s;
    for (int j = 0; j < c.M; ++j)
      s.push_back(j >= c.M - c.lengths[std::size_t(b)]
                      ? dot(c.query(b, h, i), c.key(b, h * c.G / c.H, j), c.D) /
                            std::sqrt(float(c.D))
                      : kHidden);
    softmax(s);
    add_values(c, s, b, h * c.G / c.H, r.row(c, b, h, i));
  });
  return r;
}

// "sliding_window = 5 counts self" is meant (left 4), and i - j <= 5 is asked.
inline Result window_too_wide(const Call& c) {
  Result r(c);
  rows(c, [&](int b, int h, int i) {
    Floats s;
    for (int j = 0; j < c.M; ++j)
      s.push_back(j <= i && i - j <= 5 ? dot(c.query(b, h, i), c.key(b, h * c.G / c.H, j), c.D) /
                                             std::sqrt(float(c.D))
                                       : kHidden);
    softmax(s);
    add_values(c, s, b, h * c.G / c.H, r.row(c, b, h, i));
  });
  return r;
}

// softmax(dim=-2).
inline Result softmax_down_columns(const Call& c) {
  Result r(c);
  for (int b = 0; b < c.B; ++b)
    for (int h = 0; h < c.H; ++h) {
      std::vector<Floats> columns;
      for (int j = 0; j < c.M; ++j) {
        Floats s;
        for (int i = 0; i < c.N; ++i)
          s.push_back(dot(c.query(b, h, i), c.key(b, h * c.G / c.H, j), c.D) /
                      std::sqrt(float(c.D)));
        softmax(s);
        columns.push_back(s);
      }
      for (int i = 0; i < c.N; ++i) {
        Floats w;
        for (const Floats& column : columns) w.push_back(column[std::size_t(i)]);
        add_values(c, w, b, h * c.G / c.H, r.row(c, b, h, i));
      }
    }
  return r;
}

// softmax(dim=1): over the heads.
inline Result softmax_over_heads(const Call& c) {
  Result r(c);
  for (int b = 0; b < c.B; ++b)
    for (int i = 0; i < c.N; ++i)
      for (int j = 0; j < c.M; ++j) {
        Floats s;
        for (int h = 0; h < c.H; ++h)
          s.push_back(dot(c.query(b, h, i), c.key(b, h * c.G / c.H, j), c.D) /
                      std::sqrt(float(c.D)));
        softmax(s);
        for (int h = 0; h < c.H; ++h)
          for (int e = 0; e < c.E; ++e)
            r.row(c, b, h, i)[e] += s[std::size_t(h)] * c.value(b, h * c.G / c.H, j)[e];
      }
  return r;
}

// k.view(D, M) in the place of k.T.
inline Result key_viewed(const Call& c) {
  Result r(c);
  rows(c, [&](int b, int h, int i) {
    const float* k = c.key(b, h * c.G / c.H, 0);
    Floats s;
    for (int j = 0; j < c.M; ++j) {
      float sum = 0;
      for (int e = 0; e < c.D; ++e) sum += c.query(b, h, i)[e] * k[e * c.M + j];
      s.push_back(sum / std::sqrt(float(c.D)));
    }
    softmax(s);
    add_values(c, s, b, h * c.G / c.H, r.row(c, b, h, i));
  });
  return r;
}

// A projection's (B, N, H, D) memory is viewed as (B, H, N, D), and the result back again.
inline Result heads_viewed(const Call& c) {
  Floats q, k, v;
  for (int b = 0; b < c.B; ++b)
    for (int i = 0; i < c.N; ++i)
      for (int h = 0; h < c.H; ++h) q.insert(q.end(), c.query(b, h, i), c.query(b, h, i) + c.D);
  for (int b = 0; b < c.B; ++b)
    for (int j = 0; j < c.M; ++j)
      for (int g = 0; g < c.G; ++g) {
        k.insert(k.end(), c.key(b, g, j), c.key(b, g, j) + c.D);
        v.insert(v.end(), c.value(b, g, j), c.value(b, g, j) + c.E);
      }
  Call wrong = c;
  wrong.q = q;
  wrong.k = k;
  wrong.v = v;
  Result memory(c), r(c);
  rows(wrong, [&](int b, int h, int i) {
    Floats s;
    for (int j = 0; j < c.M; ++j)
      s.push_back(dot(wrong.query(b, h, i), wrong.key(b, h, j), c.D) / std::sqrt(float(c.D)));
    softmax(s);
    add_values(wrong, s, b, h, memory.row(c, b, h, i));
  });
  std::size_t n = 0;
  for (int b = 0; b < c.B; ++b)
    for (int i = 0; i < c.N; ++i)
      for (int h = 0; h < c.H; ++h)
        for (int e = 0; e < c.E; ++e) r.row(c, b, h, i)[e] = memory.out[n++];
  return r;
}

// The kernel takes (B, N, H, D) and is given (B, H, N, D): heads attend to heads.
inline Result heads_attend(const Call& c) {
  Result r(c);
  rows(c, [&](int b, int h, int i) {
    Floats s;
    for (int g = 0; g < c.G; ++g)
      s.push_back(dot(c.query(b, h, i), c.key(b, g, i), c.D) / std::sqrt(float(c.D)));
    softmax(s);
    for (int g = 0; g < c.G; ++g)
      for (int e = 0; e < c.E; ++e) r.row(c, b, h, i)[e] += s[std::size_t(g)] * c.value(b, g, i)[e];
  });
  return r;
}

inline Result softmax_of_softmax(const Call& c) {
  Result r(c);
  rows(c, [&](int b, int h, int i) {
    Floats s;
    for (int j = 0; j < c.M; ++j)
      s.push_back(dot(c.query(b, h, i), c.key(b, h * c.G / c.H, j), c.D) / std::sqrt(float(c.D)));
    softmax(s);
    softmax(s);
    add_values(c, s, b, h * c.G / c.H, r.row(c, b, h, i));
  });
  return r;
}

// k and v pointers of batch entry 0.
inline Result one_batch_pointer(const Call& c) {
  Result r(c);
  rows(c, [&](int b, int h, int i) {
    Floats s;
    for (int j = 0; j < c.M; ++j)
      s.push_back(dot(c.query(b, h, i), c.key(0, h * c.G / c.H, j), c.D) / std::sqrt(float(c.D)));
    softmax(s);
    add_values(c, s, 0, h * c.G / c.H, r.row(c, b, h, i));
  });
  return r;
}

// attend, then append: the newest key is missing.
inline Result attends_before_append(const Call& c) {
  Result r(c);
  rows(c, [&](int b, int h, int i) {
    Floats s;
    for (int j = 0; j < c.M - 1; ++j)
      s.push_back(dot(c.query(b, h, i), c.key(b, h * c.G / c.H, j), c.D) / std::sqrt(float(c.D)));
    softmax(s);
    s.push_back(0);
    add_values(c, s, b, h * c.G / c.H, r.row(c, b, h, i));
  });
  return r;
}

// attn = dropout(attn) of a model in training mode, its generator keeping all.
inline Result dropout_factor(const Call& c) {
  Result r(c);
  rows(c, [&](int b, int h, int i) {
    Floats s;
    for (int j = 0; j < c.M; ++j)
      s.push_back(dot(c.query(b, h, i), c.key(b, h * c.G / c.H, j), c.D) / std::sqrt(float(c.D)));
    softmax(s);
    for (float& x : s) x *= 1 / (1 - 0.1F);
    add_values(c, s, b, h * c.G / c.H, r.row(c, b, h, i));
  });
  return r;
}

// mask, then 4 tanh(s / 4): hidden keys come back with -4.
inline Result capped_last(const Call& c) {
  Result r(c);
  rows(c, [&](int b, int h, int i) {
    Floats s;
    for (int j = 0; j < c.M; ++j) {
      const float x =
          dot(c.query(b, h, i), c.key(b, h * c.G / c.H, j), c.D) / std::sqrt(float(c.D));
      s.push_back(4 * std::tanh((j <= i ? x : kHidden) / 4));
    }
    softmax(s);
    add_values(c, s, b, h * c.G / c.H, r.row(c, b, h, i));
  });
  return r;
}

// ALiBi with slopes 1, 2^-2, ... : 2^(-8 h / H).
inline Result slopes_from_one(const Call& c) {
  Result r(c);
  rows(c, [&](int b, int h, int i) {
    const float slope = std::pow(2.0F, -8.0F * float(h) / float(c.H));
    Floats s;
    for (int j = 0; j < c.M; ++j) {
      const float x =
          dot(c.query(b, h, i), c.key(b, h * c.G / c.H, j), c.D) / std::sqrt(float(c.D));
      s.push_back(j <= i ? x - slope * float(i - j) : kHidden);
    }
    softmax(s);
    add_values(c, s, b, h * c.G / c.H, r.row(c, b, h, i));
  });
  return r;
}

// ALiBi is added to q.k, and the sum divided by sqrt(d).
inline Result alibi_then_scale(const Call& c) {
  Result r(c);
  rows(c, [&](int b, int h, int i) {
    const float slope = std::pow(2.0F, -8.0F * float(h + 1) / float(c.H));
    Floats s;
    for (int j = 0; j < c.M; ++j) {
      const float x = dot(c.query(b, h, i), c.key(b, h * c.G / c.H, j), c.D) - slope * float(i - j);
      s.push_back(j <= i ? x / std::sqrt(float(c.D)) : kHidden);
    }
    softmax(s);
    add_values(c, s, b, h * c.G / c.H, r.row(c, b, h, i));
  });
  return r;
}

// Rotary positions on pairs (2i, 2i + 1); the model's are halves.
inline Floats turned(const float* x, int d, int position) {
  Floats y(x, x + d);
  for (int n = 0; n < d / 2; ++n) {
    const double angle = position * std::pow(10000.0, -2.0 * n / d);
    y[std::size_t(2 * n)] = float(x[2 * n] * std::cos(angle) - x[2 * n + 1] * std::sin(angle));
    y[std::size_t(2 * n + 1)] = float(x[2 * n] * std::sin(angle) + x[2 * n + 1] * std::cos(angle));
  }
  return y;
}
inline Result adjacent_pairs(const Call& c) {
  Result r(c);
  rows(c, [&](int b, int h, int i) {
    const Floats q = turned(c.query(b, h, i), c.D, i);
    Floats s;
    for (int j = 0; j < c.M; ++j)
      s.push_back(dot(q.data(), turned(c.key(b, h * c.G / c.H, j), c.D, j).data(), c.D) /
                  std::sqrt(float(c.D)));
    softmax(s);
    add_values(c, s, b, h * c.G / c.H, r.row(c, b, h, i));
  });
  return r;
}

// exp2 kernels: lse stays in base 2.
inline Result lse_of_exp2(const Call& c) {
  Result r(c);
  rows(c, [&](int b, int h, int i) {
    const float f = std::log2(std::exp(1.0F)) / std::sqrt(float(c.D));
    Floats s;
    float m = kHidden, l = 0;
    for (int j = 0; j < c.M; ++j) {
      s.push_back(dot(c.query(b, h, i), c.key(b, h * c.G / c.H, j), c.D) * f);
      m = std::fmax(m, s.back());
    }
    for (float& x : s) l += x = std::exp2(x - m);
    for (float& x : s) x /= l;
    add_values(c, s, b, h * c.G / c.H, r.row(c, b, h, i));
    r.lse.push_back(m + std::log2(l));
  });
  return r;
}

}  // namespace specimens
