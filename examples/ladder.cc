// Climbs the ladder of docs/kernels.md: every rung computes the same attention, is compared with
// the lowest one, and timed.
//
//   example_ladder                          a small size, for the check
//   example_ladder --measure ladder.json    the size of docs/kernels.md, with times
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "glasshead/attention.h"
#include "glasshead/cpu.h"

namespace ladder {

using glasshead::Context;
using glasshead::index_t;

// One head, row-major.
struct Head {
  const float* q;  // [n, d]
  const float* k;  // [keys, d]
  const float* v;  // [keys, d]
  float* out;      // [n, d]
  index_t n, keys, d;
};

// Rung 1. Every score, then every weight, then every sum: as the formula is written.
void naive(const Head& head) {
  const auto& [q, k, v, out, n, keys, d] = head;
  const float scale = 1 / std::sqrt(static_cast<float>(d));
  std::vector<float> scores(static_cast<std::size_t>(n * keys));  // [n, keys]
  for (index_t i = 0; i < n; ++i) {
    float* row = scores.data() + i * keys;
    float max = -std::numeric_limits<float>::infinity();
    for (index_t j = 0; j < keys; ++j) {
      float s = 0;
      for (index_t e = 0; e < d; ++e) s += q[i * d + e] * k[j * d + e];
      row[j] = s * scale;
      max = std::max(max, row[j]);
    }
    float sum = 0;
    for (index_t j = 0; j < keys; ++j) sum += row[j] = std::exp(row[j] - max);
    for (index_t e = 0; e < d; ++e) out[i * d + e] = 0;
    for (index_t j = 0; j < keys; ++j)
      for (index_t e = 0; e < d; ++e) out[i * d + e] += row[j] / sum * v[j * d + e];
  }
}

// Rung 2. A tile of scores at a time, and no more memory than that. A row's largest score so far
// may grow from tile to tile: what was summed under the old one is then scaled down.
void tiled(const Head& head) {
  const auto& [q, k, v, out, n, keys, d] = head;
  constexpr index_t kRows = 16, kKeys = 128;
  const float scale = 1 / std::sqrt(static_cast<float>(d));
  std::vector<float> scores(kKeys);
  for (index_t i0 = 0; i0 < n; i0 += kRows) {
    const index_t rows = std::min(kRows, n - i0);
    std::vector<float> max(kRows, -std::numeric_limits<float>::infinity()), sum(kRows, 0);
    std::fill_n(out + i0 * d, rows * d, 0.0F);
    for (index_t j0 = 0; j0 < keys; j0 += kKeys) {  // these keys stay in the cache for 16 rows
      const index_t count = std::min(kKeys, keys - j0);
      for (index_t r = 0; r < rows; ++r) {
        const float* query = q + (i0 + r) * d;
        float* a = out + (i0 + r) * d;
        float& old_max = max[static_cast<std::size_t>(r)];
        float& total = sum[static_cast<std::size_t>(r)];
        float new_max = old_max;
        for (index_t j = 0; j < count; ++j) {
          float s = 0;
          for (index_t e = 0; e < d; ++e) s += query[e] * k[(j0 + j) * d + e];
          scores[static_cast<std::size_t>(j)] = s * scale;
          new_max = std::max(new_max, s * scale);
        }
        const float alpha = std::exp(old_max - new_max);  // 0 for the first tile: exp(-inf)
        total *= alpha;
        for (index_t e = 0; e < d; ++e) a[e] *= alpha;
        for (index_t j = 0; j < count; ++j) {
          const float p = std::exp(scores[static_cast<std::size_t>(j)] - new_max);
          total += p;
          for (index_t e = 0; e < d; ++e) a[e] += p * v[(j0 + j) * d + e];
        }
        old_max = new_max;
      }
    }
    for (index_t r = 0; r < rows; ++r)
      for (index_t e = 0; e < d; ++e) out[(i0 + r) * d + e] /= sum[static_cast<std::size_t>(r)];
  }
}

namespace {

using glasshead::ConstTensor;
using glasshead::DType;
using glasshead::MutableTensor;
using glasshead::row_major;

ConstTensor<4> rows_of(const float* data, index_t rows, index_t d) {
  return {data, DType::f32, {1, 1, rows, d}, row_major<4>({1, 1, rows, d})};
}

void attend_with(const Head& head, const Context& context) {
  const std::array<index_t, 4> shape{1, 1, head.n, head.d};
  glasshead::AttentionOptions options;
  options.query_start = 0;
  glasshead::attend(rows_of(head.q, head.n, head.d), rows_of(head.k, head.keys, head.d),
                    rows_of(head.v, head.keys, head.d),
                    {head.out, DType::f32, shape, row_major<4>(shape)}, options, {}, context);
}

}  // namespace

// Rung 3. The same tiles with a query in each lane of a vector (src/kernels/panel.inl.h).
void lanes(const Head& head, const Context& one_thread) { attend_with(head, one_thread); }

// Rung 4. The panels of rung 3 in a queue that every core takes from (src/core/fused_cut.cc).
void threaded(const Head& head, const Context& all_threads) { attend_with(head, all_threads); }

// Rung 5. One query fills no vector: its keys do (src/kernels/rows.inl.h).
void decode(const Head& head, const Context& one_thread) { attend_with(head, one_thread); }

namespace {

struct Rung {
  const char* name;
  std::function<void(const Head&)> run;
  bool is_decode;
};

// The best of some runs: the machine's other work only ever adds to it.
double seconds_of(const Rung& rung, const Head& head) {
  double best = 1e9;
  for (int n = 0; n < 10; ++n) {
    const auto begin = std::chrono::steady_clock::now();
    rung.run(head);
    best = std::min(
        best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return best;
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double largest = 0;
  for (std::size_t n = 0; n < a.size(); ++n)
    largest = std::max(largest, std::fabs(static_cast<double>(a[n]) - static_cast<double>(b[n])));
  return largest;
}

std::vector<float> numbers(index_t count, unsigned seed) {
  std::vector<float> x;
  for (index_t n = 0; n < count; ++n) {  // some numbers between -1 and 1
    seed = seed * 1664525U + 1013904223U;
    x.push_back(static_cast<float>(seed >> 8) / 8388608.0F - 1);
  }
  return x;
}

int climb(index_t n, index_t d, const char* file) {
  const Context one({.isa = {}, .threads = 1, .parallel_for = {}});
  const Context all({.isa = {}, .threads = glasshead::cpu().cores, .parallel_for = {}});
  const Rung rungs[] = {
      {"naive", naive, false},
      {"tiled", tiled, false},
      {"lanes", [&](const Head& head) { lanes(head, one); }, false},
      {"threaded", [&](const Head& head) { threaded(head, all); }, false},
      {"decode-naive", naive, true},
      {"decode", [&](const Head& head) { decode(head, one); }, true},
  };
  const std::vector<float> q = numbers(n * d, 1), k = numbers(n * d, 2), v = numbers(n * d, 3);
  std::string json =
      "{\"schema\": \"glasshead.ladder/1\", \"cpu\": \"" + glasshead::cpu().model +
      "\", \"isa\": \"" + one.isa() + "\", \"threads\": " + std::to_string(all.threads()) +
      ", \"n\": " + std::to_string(n) + ", \"d\": " + std::to_string(d) + ",\n \"rungs\": [";
  bool is_right = true;
  for (const Rung& rung : rungs) {
    const index_t rows = rung.is_decode ? 1 : n;
    std::vector<float> expected(static_cast<std::size_t>(rows * d)), got = expected;
    naive({q.data(), k.data(), v.data(), expected.data(), rows, n, d});
    const Head head{q.data(), k.data(), v.data(), got.data(), rows, n, d};
    rung.run(head);
    const double difference = largest_difference(expected, got);
    // Values are at most 1 and a row's weights add to 1: sums of n terms in f32, in another order.
    const bool agrees = difference <= static_cast<double>(n) * 0x1p-24;
    is_right = is_right && agrees;
    const double seconds = file == nullptr ? 0 : seconds_of(rung, head);
    const double flops = 4.0 * static_cast<double>(rows * n * d);
    std::printf("%-13s differs by at most %.1e%s", rung.name, difference, agrees ? "" : "  WRONG");
    if (file != nullptr)
      std::printf("  %9.3f ms  %7.2f GF/s", 1e3 * seconds, flops / seconds / 1e9);
    std::printf("\n");
    char line[160];
    std::snprintf(line, sizeof line, "%s\n  {\"name\": \"%s\", \"seconds\": %.6g, \"flops\": %.0f}",
                  &rung == rungs ? "" : ",", rung.name, seconds, flops);
    json += line;
  }
  if (file == nullptr) return is_right ? 0 : 1;
  std::FILE* out = std::fopen(file, "w");
  if (out == nullptr) return 2;
  std::fputs((json + "\n]}\n").c_str(), out);
  std::fclose(out);
  return is_right ? 0 : 1;
}

}  // namespace
}  // namespace ladder

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--measure") == 0) return ladder::climb(1024, 64, argv[2]);
  return ladder::climb(200, 40, nullptr);
}
