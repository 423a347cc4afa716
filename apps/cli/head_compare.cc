// How far a run's f32 numbers are from the trace's, and whether rounding explains it.
#include <algorithm>
#include <cmath>
#include <limits>

#include "cli/head_case.h"

namespace glasshead::cli {
namespace {

constexpr double kU = std::numeric_limits<float>::epsilon() / 2;
constexpr double kSmallest = std::numeric_limits<float>::denorm_min();
constexpr double kBlock = 128, kChunk = 1024;  // keys: docs/same-bits.md
constexpr double kSecondOrder = 1.01;          // products of two errors

using Row = std::vector<double>;

const Row& at(const Trace& trace, const char* tap) { return trace.at(tap).values; }

// What goes into the softmax: the last of these that the attention has.
const Row& last_scores(const Trace& trace) {
  for (const char* tap : {"masked", "biased", "capped"})
    if (trace.find(tap)) return at(trace, tap);
  return at(trace, "scaled");
}

// The bound of tests/core/error_bound.h for one row: by how much rounding to f32 can change each
// weight, relative to itself. exp(t) - 1 is taken as 1.01·t or 2·t, which is more.
class Bound {
 public:
  Bound(const Trace& trace, const AttentionOptions& options)
      : q_(at(trace, "q")),
        k_(at(trace, "k")),
        scaled_(at(trace, "scaled")),
        scores_(last_scores(trace)),
        weights_(at(trace, "weights")),
        max_(at(trace, "row_max")[0]),
        options_(options),
        scale_(options.scale.value_or(1 / std::sqrt(static_cast<double>(q_.size())))) {
    const auto keys = static_cast<double>(weights_.size());
    const double chunks = std::ceil(keys / kChunk);
    rises_ = std::ceil(std::min(keys, kChunk) / kBlock) - 1 +
             (chunks > 1 ? std::ceil(std::log2(chunks)) : 0);
  }

  // How often the maximum may rise after a key was weighted with it.
  double rises() const { return rises_; }

  // e^(t_j + tau) - 1 of every key
  Row changes() const {
    Row found(weights_.size());
    double total = 0;
    for (std::size_t j = 0; j < found.size(); ++j) {
      if (weights_[j] == 0) continue;
      found[j] =
          kSecondOrder * (of_score(j) + kU * (max_ - scores_[j]) + (1.9 + 3.9 * rises_) * kU);
      total += weights_[j] * std::exp(found[j]);
    }
    const double tau = std::log(std::max(1.0, total));
    for (std::size_t j = 0; j < found.size(); ++j)
      if (weights_[j] != 0) found[j] = std::exp(found[j] + tau) - 1;
    return found;
  }

 private:
  double of_score(std::size_t j) const {
    const std::size_t d = q_.size();
    double size = 0;
    for (std::size_t e = 0; e < d; ++e) size += std::fabs(scale_ * q_[e] * k_[j * d + e]);
    double error = static_cast<double>(d + 3) * kU * size;
    // tanh' is at most 1, and softcap·tanh(s / softcap) at most s.
    if (options_.softcap > 0) error += (1 + 7.6) * kU * std::fabs(scaled_[j]);
    const auto terms = static_cast<double>(options_.bias.terms().size());
    if (terms > 0)  // a bias is at most as large as both scores together
      error += kU * ((terms + 1) * std::fabs(scores_[j]) + terms * std::fabs(scaled_[j]));
    return error;
  }

  const Row &q_, &k_, &scaled_, &scores_, &weights_;
  double max_;
  const AttentionOptions& options_;
  double scale_, rises_ = 0;
};

}  // namespace

HeadComparison compare(const ModelHead& head, const Trace& trace) {
  const Row &weights = at(trace, "weights"), &v = at(trace, "v"), &out = at(trace, "out");
  const Bound bound(trace, head.shown.network.blocks[0].attention.options);
  const Row changes = bound.changes();
  const double smallest = (2 + bound.rises()) * kSmallest;
  HeadComparison found;
  const auto see = [&](double difference, double allowed, double& largest) {
    found.agrees = found.agrees && difference <= allowed;
    if (!(difference <= largest)) largest = difference;  // a NaN stays
  };
  for (std::size_t j = 0; j < weights.size(); ++j)
    see(std::fabs(weights[j] - head.weights[j]),
        weights[j] == 0 ? 0 : weights[j] * (changes[j] + 21 * kU) + smallest, found.weights);
  for (std::size_t d = 0; d < out.size(); ++d) {
    double moved = 0, size = 0, values = 0;
    for (std::size_t j = 0; j < weights.size(); ++j) {
      const double x = v[j * out.size() + d];
      moved += weights[j] * changes[j] * std::fabs(x - out[d]);
      size += std::fabs(weights[j] * x);
      values += std::fabs(x);
    }
    const auto keys = static_cast<double>(weights.size());
    see(std::fabs(out[d] - head.out[d]),
        moved + kSecondOrder * kU * ((keys + 4) * size + 21 * std::fabs(out[d])) +
            smallest * (values + keys + 4),
        found.out);
  }
  return found;
}

}  // namespace glasshead::cli
