#include "base/random.h"

#include <cmath>

#include "base/math.h"

namespace glasshead {
namespace {

std::array<std::uint32_t, 2> halves(std::uint64_t x) {
  return {static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(x >> 32)};
}

// 53 bits as a number in [0, 1).
double unit(std::uint32_t low, std::uint32_t high) {
  const std::uint64_t bits = (static_cast<std::uint64_t>(high) << 32) | low;
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

}  // namespace

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 2> key,
                                    std::array<std::uint32_t, 4> counter) {
  // The paper's multipliers, and its key increments: the fractions of the golden ratio and sqrt(3).
  constexpr std::uint64_t kMultiplier0 = 0xD2511F53;
  constexpr std::uint64_t kMultiplier1 = 0xCD9E8D57;
  constexpr std::uint32_t kIncrement0 = 0x9E3779B9;
  constexpr std::uint32_t kIncrement1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const auto [low0, high0] = halves(kMultiplier0 * counter[0]);
    const auto [low1, high1] = halves(kMultiplier1 * counter[2]);
    counter = {high1 ^ counter[1] ^ key[0], low1, high0 ^ counter[3] ^ key[1], low0};
    key[0] += kIncrement0;
    key[1] += kIncrement1;
  }
  return counter;
}

std::array<std::uint32_t, 4> philox(std::uint64_t seed, std::uint64_t n, std::uint64_t stream) {
  const auto [n_low, n_high] = halves(n);
  const auto [stream_low, stream_high] = halves(stream);
  return philox(halves(seed), {n_low, n_high, stream_low, stream_high});
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
  const auto key =
      philox(seed, static_cast<std::uint64_t>(pair.h), static_cast<std::uint64_t>(pair.b));
  const auto [i_low, i_high] = halves(static_cast<std::uint64_t>(pair.i));
  const auto [j_low, j_high] = halves(static_cast<std::uint64_t>(pair.j));
  const auto words = philox({key[0], key[1]}, {j_low, j_high, i_low, i_high});
  return unit(words[0], words[1]) < p;
}

}  // namespace glasshead
