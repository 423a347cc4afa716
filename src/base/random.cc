#include "base/random.h"

#include <algorithm>
#include <cmath>

#include "base/math.h"

namespace glasshead {
namespace {

// The paper's multipliers, and its key increments: the fractions of the golden ratio and sqrt(3).
constexpr std::uint64_t kMultiplier0 = 0xD2511F53;
constexpr std::uint64_t kMultiplier1 = 0xCD9E8D57;
constexpr std::uint32_t kIncrement0 = 0x9E3779B9;
constexpr std::uint32_t kIncrement1 = 0xBB67AE85;
constexpr int kRounds = 10;

std::array<std::uint32_t, 2> halves(std::uint64_t x) {
  return {static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(x >> 32)};
}

std::array<std::uint32_t, 4> counter_of(std::uint64_t high, std::uint64_t low) {
  const auto [low0, low1] = halves(low);
  const auto [high0, high1] = halves(high);
  return {low0, low1, high0, high1};
}

// 53 bits as a number in [0, 1).
double unit(std::uint32_t low, std::uint32_t high) {
  const std::uint64_t bits = (static_cast<std::uint64_t>(high) << 32) | low;
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

std::array<std::uint32_t, 2> key_of(std::uint64_t seed, const PairIndex& pair) {
  const auto key =
      philox(seed, static_cast<std::uint64_t>(pair.h), static_cast<std::uint64_t>(pair.b));
  return {key[0], key[1]};
}

}  // namespace

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 2> key,
                                    std::array<std::uint32_t, 4> counter) {
  for (int round = 0; round < kRounds; ++round) {
    const auto [low0, high0] = halves(kMultiplier0 * counter[0]);
    const auto [low1, high1] = halves(kMultiplier1 * counter[2]);
    counter = {high1 ^ counter[1] ^ key[0], low1, high0 ^ counter[3] ^ key[1], low0};
    key[0] += kIncrement0;
    key[1] += kIncrement1;
  }
  return counter;
}

std::array<std::uint32_t, 4> philox(std::uint64_t seed, std::uint64_t n, std::uint64_t stream) {
  return philox(halves(seed), counter_of(stream, n));
}

double uniform(std::uint64_t seed, std::uint64_t n, std::uint64_t stream) {
  const auto words = philox(seed, n / 2, stream);
  return n % 2 == 0 ? unit(words[0], words[1]) : unit(words[2], words[3]);
}

double standard_normal(std::uint64_t seed, std::uint64_t n, std::uint64_t stream) {
  const auto words = philox(seed, n / 2, stream);
  const double radius = std::sqrt(-2 * math::log(1 - unit(words[0], words[1])));  // log of (0, 1]
  constexpr double kTwoPi = 6.283185307179586;
  const double angle = kTwoPi * unit(words[2], words[3]);
  return radius * (n % 2 == 0 ? math::cos(angle) : math::sin(angle));
}

// Four 64-bit numbers do not fit a counter: batch and head make a key of their own.
bool dropped(std::uint64_t seed, const PairIndex& pair, double p) {
  const auto words = philox(key_of(seed, pair), counter_of(static_cast<std::uint64_t>(pair.i),
                                                           static_cast<std::uint64_t>(pair.j)));
  return unit(words[0], words[1]) < p;
}

void dropped_run(std::uint64_t seed, const PairIndex& first, index_t count, double p,
                 std::uint8_t* flags) {
  constexpr int kAtOnce = 32;
  const auto key = key_of(seed, first);
  // m 2^-53 < p for a whole number m: m < limit.
  const auto limit = static_cast<std::uint64_t>(std::ceil(p * 0x1p53));
  for (index_t n = 0; n < count; n += kAtOnce) {
    std::array<std::uint32_t, kAtOnce> word[4];
    for (int lane = 0; lane < kAtOnce; ++lane) {
      const auto at = static_cast<std::size_t>(lane);
      const auto counter = counter_of(static_cast<std::uint64_t>(first.i),
                                      static_cast<std::uint64_t>(first.j + n + lane));
      for (std::size_t w = 0; w < 4; ++w) word[w][at] = counter[w];
    }
    std::array<std::uint32_t, 2> round_key = key;
    for (int round = 0; round < kRounds; ++round) {
      for (std::size_t at = 0; at < kAtOnce; ++at) {
        const std::uint64_t product0 = kMultiplier0 * word[0][at];
        const std::uint64_t product1 = kMultiplier1 * word[2][at];
        word[0][at] = static_cast<std::uint32_t>(product1 >> 32) ^ word[1][at] ^ round_key[0];
        word[1][at] = static_cast<std::uint32_t>(product1);
        word[2][at] = static_cast<std::uint32_t>(product0 >> 32) ^ word[3][at] ^ round_key[1];
        word[3][at] = static_cast<std::uint32_t>(product0);
      }
      round_key = {round_key[0] + kIncrement0, round_key[1] + kIncrement1};
    }
    const index_t here = std::min<index_t>(kAtOnce, count - n);
    for (index_t lane = 0; lane < here; ++lane) {
      const auto at = static_cast<std::size_t>(lane);
      const std::uint64_t bits = static_cast<std::uint64_t>(word[1][at]) << 32 | word[0][at];
      flags[n + lane] = (bits >> 11) < limit ? 1 : 0;
    }
  }
}

}  // namespace glasshead
