// Why scores are divided by √d_k: what random queries and keys give, by head size.
//
//   std::vector<Problem> problems;
//   auto options = parse_sweep("d_k=1..512", problems);
//   for (const SweepPoint& point : run_sweep(*options)) ...
//
// q and 16 keys of independent standard normal coordinates, from a seed, so the same bytes every
// time; each number is the mean over the draws.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "glasshead/error.h"
#include "wire/document.h"
#include "wire/json_writer.h"

namespace glasshead::wire {

struct SweepOptions {
  std::vector<index_t> d_k;  // 1, 2, 4, ... from the first to the last
  index_t keys = 16;
  index_t draws = 1000;  // the means' own error is then below 0.01 for all but std at large d_k
  std::uint64_t seed = 1;
};

struct SweepSide {
  double spread = 0;    // standard deviation of the scores of a draw, about 0
  double largest = 0;   // largest weight
  double entropy = 0;   // of the weights, in nats; ln 16 = 2.77 when all are equal
  double jacobian = 0;  // Frobenius norm of diag(w) - w·wᵀ
};

struct SweepPoint {
  index_t d_k = 0;
  SweepSide unscaled, scaled;
};

// "d_k=1..512", or one number: "d_k=64". At most 4,096.
std::optional<SweepOptions> parse_sweep(std::string_view text, std::vector<Problem>& problems);
std::vector<SweepPoint> run_sweep(const SweepOptions& options);

Document sweep_document(const SweepOptions& options, const std::vector<SweepPoint>& points,
                        int decimals);
void write_sweep_json(const SweepOptions& options, const std::vector<SweepPoint>& points,
                      const JsonWriter::Sink& sink);
// Four plots over d_k: spread, largest weight, entropy, Jacobian; unscaled and scaled.
std::string sweep_svg(const SweepOptions& options, const std::vector<SweepPoint>& points);

}  // namespace glasshead::wire
