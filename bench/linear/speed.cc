// How fast linear layers are, as shares of what the machine can do, measured in the same run:
//
//   cmake --preset bench && ninja -C build/bench linear_speed
//   build/bench/bin/linear_speed [--threads N] [--isa NAME] [TYPE...]
//
// Many rows: multiply-adds, of those that the kernel set can do. One row: bytes of packed weights a
// second, of the rate at which the same bytes are read and summed; the layers together are larger
// than the last cache. Medians of interleaved rounds, best in brackets.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/stream_memory.h"
#include "core/context_impl.h"
#include "nn/linear.h"

namespace glasshead {
namespace {

constexpr int kRounds = 10;
constexpr index_t kOneRowBytes = index_t{96} << 20;  // three times the last cache of a small server

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Type {
  const char* name;
  Stored stored;
  index_t elements, bytes;
};
constexpr Type kTypes[] = {{"f32", Stored::f32, 1, 4},       {"bf16", Stored::bf16, 1, 2},
                           {"f16", Stored::f16, 1, 2},       {"q8_0", Stored::q8_0, 32, 34},
                           {"q4_0", Stored::q4_0, 32, 18},   {"q4_1", Stored::q4_1, 32, 20},
                           {"q5_0", Stored::q5_0, 32, 22},   {"q5_1", Stored::q5_1, 32, 24},
                           {"q4_k", Stored::q4_k, 256, 144}, {"q5_k", Stored::q5_k, 256, 176},
                           {"q6_k", Stored::q6_k, 256, 210}};

// Quants that differ, and factors that are finite in f16: bytes below 60.
std::vector<std::byte> some_bytes(index_t count) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(count));
  std::uint32_t state = 1;
  for (std::byte& byte : bytes) {
    state = state * 1664525U + 1013904223U;
    byte = static_cast<std::byte>((state >> 24) % 60);
  }
  return bytes;
}

nn::Linear some_layer(const Type& type, index_t out, index_t in) {
  std::vector<std::byte> bytes = some_bytes(out * in / type.elements * type.bytes);
  // No weight is subnormal: there are processors that take 60 times as long with those.
  if (type.elements == 1) {
    for (std::size_t last = static_cast<std::size_t>(type.bytes) - 1; last < bytes.size();
         last += static_cast<std::size_t>(type.bytes))
      bytes[last] = std::byte{0x38} | (bytes[last] & std::byte{3});
  }
  return nn::Linear({.type = type.stored, .out = out, .in = in, .data = bytes.data()}, {});
}

struct Times {
  std::vector<double> all;
  double median() {
    std::sort(all.begin(), all.end());
    return all[all.size() / 2];
  }
  double best() { return *std::min_element(all.begin(), all.end()); }
};

// Multiply-adds a second of all threads together.
double peak(const Context& context) {
  constexpr index_t kSteps = 400000;
  std::vector<float> sums(static_cast<std::size_t>(context.threads()) * 16);
  std::atomic<index_t> done{0};
  const double start = seconds();
  context.impl().pool.run(context.threads(), [&](index_t item, int) {
    done += context.impl().kernels.f32.multiply_adds(kSteps,
                                                     &sums[static_cast<std::size_t>(item) * 16]);
  });
  return static_cast<double>(done) / (seconds() - start);
}

void many_rows(const Type& type, index_t rows, index_t out, index_t in, const Context& context) {
  const nn::Linear layer = some_layer(type, out, in);
  std::vector<float> x(static_cast<std::size_t>(rows * in), 0.5F);
  std::vector<float> y(static_cast<std::size_t>(rows * out));
  Times share, time;
  for (int round = 0; round < kRounds + 2; ++round) {
    const double most = peak(context);
    const double start = seconds();
    layer.apply({x.data(), {rows, in}}, {y.data(), {rows, out}}, context);
    const double took = seconds() - start;
    if (round < 2) continue;
    share.all.push_back(most * took / static_cast<double>(rows * out * in));
    time.all.push_back(took);
  }
  std::printf("%-5s %4lld rows  %5lld -> %-5lld  %8.1f GF/s  %5.1f %% of peak (%.1f)\n", type.name,
              static_cast<long long>(rows), static_cast<long long>(in), static_cast<long long>(out),
              2e-9 * static_cast<double>(rows * out * in) / time.median(), 100 / share.median(),
              100 / share.best());
}

std::uint64_t sum_of(const std::uint64_t* words, std::size_t count) {
  std::uint64_t sums[8] = {};
  for (std::size_t n = 0; n + 8 <= count; n += 8)
    for (std::size_t i = 0; i < 8; ++i) sums[i] += words[n + i];
  std::uint64_t sum = 0;
  for (const std::uint64_t part : sums) sum += part;
  return sum;
}

void one_row(const Type& type, index_t out, index_t in, const Context& context) {
  std::vector<nn::Linear> layers;
  index_t bytes = 0;
  while (bytes < kOneRowBytes) {
    layers.push_back(some_layer(type, out, in));
    bytes += layers.back().bytes();
  }
  const StreamMemory stream(static_cast<std::size_t>(bytes));
  std::memset(stream.data(), 1, static_cast<std::size_t>(bytes));
  std::vector<float> x(static_cast<std::size_t>(in), 0.5F), y(static_cast<std::size_t>(out));
  Times share, time;
  std::atomic<std::uint64_t> sum{0};
  for (int round = 0; round < kRounds + 2; ++round) {
    const double start = seconds();
    constexpr index_t kPiece = 1 << 20;
    context.impl().pool.run(bytes / kPiece, [&](index_t item, int) {
      sum +=
          sum_of(static_cast<const std::uint64_t*>(stream.data()) + item * kPiece / 8, kPiece / 8);
    });
    const double read = seconds();
    for (const nn::Linear& layer : layers)
      layer.apply({x.data(), {1, in}}, {y.data(), {1, out}}, context);
    const double took = seconds() - read;
    if (round < 2) continue;
    share.all.push_back(took / (read - start));
    time.all.push_back(took);
  }
  std::printf("%-5s    1 row   %5lld -> %-5lld  %8.1f GB/s  %5.1f %% of reading (%.1f)%s\n",
              type.name, static_cast<long long>(in), static_cast<long long>(out),
              1e-9 * static_cast<double>(bytes) / time.median(), 100 / share.median(),
              100 / share.best(), sum == 0 ? "!" : "");
}

int measure(int argc, char** argv) {
  ContextOptions options;
  options.threads = 1;
  std::vector<std::string_view> wanted;
  for (int n = 1; n < argc; ++n) {
    const std::string_view word = argv[n];
    if (word == "--threads" && n + 1 < argc)
      options.threads = std::atoi(argv[++n]);
    else if (word == "--isa" && n + 1 < argc)
      options.isa = argv[++n];
    else
      wanted.push_back(word);
  }
  const Context context(options);
  std::printf("%s, threads %d\n", context.isa(), context.threads());
  for (const Type& type : kTypes) {
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), type.name) == wanted.end())
      continue;
    for (const index_t rows : {4, 16, 512}) many_rows(type, rows, 1536, 768, context);
    many_rows(type, 512, 768, 1536, context);
    one_row(type, 1536, 768, context);
    one_row(type, 768, 1536, context);
  }
  return 0;
}

}  // namespace
}  // namespace glasshead

int main(int argc, char** argv) { return glasshead::measure(argc, argv); }
