// Rotary positions (Su et al. 2021, "RoFormer", section 3.2): pairs of coordinates of q and k turn
// by an angle that grows with the position, so that q·k depends on the distance alone.
//
//   Rope rope{.pairing = RopePairing::halves, .base = 10000};
//   RopeTable table = rope_table(rope, d, position);      // cos and sin of every pair
//   rotate(x, table.cos, table.sin, rope);                // x [d], in place
//
// Everything is f64: a caller with narrower numbers widens them, calls, and rounds once.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "glasshead/error.h"
#include "glasshead/tensor.h"

namespace glasshead::nn {

enum class RopePairing { halves, adjacent };  // turns (i, i + span/2), or (2i, 2i + 1)

// YaRN (Peng, Quesnelle, Fan, Shippole 2023, sections 3.2 to 3.4): slow pairs are slowed down by
// `factor`, fast pairs are left, and those between are mixed; cos and sin are multiplied by a
// factor of their own (yarn_amplitude).
struct Yarn {
  double factor = 1;           // longest context / original_length, > 0
  double original_length = 0;  // tokens the model was first trained on, > 0
  double beta_fast = 32;       // pairs that turn more often than this over original_length: left
  double beta_slow = 1;        // pairs that turn less often than this: slowed down
  double mscale = 0;           // of the amplitude; 0: not given
  double mscale_all_dim = 0;   // of its divisor; 0: not given
  bool is_truncated = true;    // the borders of the mixed pairs are whole numbers
};

// Pair i turns by position · base^(-2i/span), for i < rotary/2. With span = rotary this is ordinary
// partial rotary: the leading `rotary` coordinates are a small vector of their own. With span = d
// it is the proportional form: pairs and exponents are laid out over the whole vector, and the
// first rotary/2 pairs turn. Models of both kinds exist; at position 0 they can't be told apart.
struct Rope {
  RopePairing pairing = RopePairing::halves;
  double base = 10000;  // > 0
  index_t rotary = 0;   // how many coordinates turn, even, at most span; 0: all of span
  index_t span = 0;     // what pairs and exponent are laid out over, even; 0: rotary, or all of d
  std::optional<Yarn> yarn = std::nullopt;  // longer contexts than the model was trained on
};

// The same with zeros replaced by what they stand for in vectors of size d.
Rope resolved(Rope rope, index_t d);

// What is wrong with turning vectors of size d, each at `where`.
std::vector<Problem> check(const Rope& rope, index_t d, const std::string& where);

// Angle per position of each pair: [rotary/2] = base^(-2i/span), YaRN included.
std::vector<double> rope_frequencies(const Rope& rope, index_t d);

// What YaRN multiplies cos and sin by: m(factor, mscale) / m(factor, mscale_all_dim) if both are
// given, else m(factor, 1), with m(f, c) = 0.1·c·ln f + 1 for f > 1 and 1 otherwise.
double yarn_amplitude(const Yarn& yarn);

struct RopeTable {
  std::vector<double> cos, sin;  // [rotary/2]
};
RopeTable rope_table(const Rope& rope, index_t d, double position);

// Turns x [d] in place: (a, b) -> (a·cos - b·sin, a·sin + b·cos) for each pair, cos and sin
// [pairs], pairs <= span/2. Only pairing, rotary and span of `rope` count, so that tables from
// elsewhere (ONNX RotaryEmbedding's caches) can be used as they are. The rest of x is left alone.
void rotate(std::span<double> x, std::span<const double> cos, std::span<const double> sin,
            const Rope& rope);

}  // namespace glasshead::nn
