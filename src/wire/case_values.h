// Numbers of a case beyond its taps, and whether its claims and printed digits hold.
//
//   for (const ClaimResult& result : check_claims(c)) if (!result.holds) show(result.found);
//
// Beside the taps of the trace there are these, each one number per query row (with leading axes as
// the weights have them) unless said otherwise:
//   exp_unshifted      exp(Z) with the row's maximum left in, one number per pair
//   row_sum_unshifted  its row sums
//   weights_sum        sum of the row's weights
//   largest_weight     the row's largest weight
//   distance           length of out minus the value of the key with the largest weight
//   jacobian_norm      Frobenius norm of diag(w) - w·wᵀ, the derivative of softmax
//   lead               the row's largest scaled score minus its second largest
//   mask_additive      0 where a pair may attend, -inf where not, one number per pair
//   sqrt_d_k           one number
//   scores_std, scaled_std   standard deviation over all pairs, one number
// With a prefix they belong to that attention: "block.1.weights_sum".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "wire/case.h"

namespace glasshead::wire {

std::vector<std::string_view> derived_values();

// A tap of the trace, or one of the above; nullopt when there is no such thing.
std::optional<TraceTensor> value_of(const Case& c, const Trace& trace, const std::string& tap);

// The numbers of a tensor that an index names: an entry, a row, all. nullopt when out of range.
std::optional<std::vector<double>> numbers_at(const TraceTensor& tensor,
                                              const std::vector<index_t>& index);

// Whether x, times factor, equals the printed decimal to half a unit of its last place.
bool equals_printed(double x, std::string_view text, double factor = 1);

struct ClaimResult {
  bool holds = false;
  std::string found;  // what was found, when it doesn't hold
};
ClaimResult check_claim(const Case& c, const Claim& claim);
std::vector<ClaimResult> check_claims(const Case& c);

// Labels of the query rows that have no allowed key, in order, each once.
std::vector<std::string> rows_without_keys(const Case& c);

}  // namespace glasshead::wire
