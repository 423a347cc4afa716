// What each mistake does to the steps of one attention, when it can, and what structure of the
// input hides it. Named after the ids of the table in mistakes.cc.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "doctor/mistakes.h"

namespace glasshead::doctor::edits {

// fits
Verdict always(const Site& site, std::string_view parameter);
Verdict has_scale(const Site& site, std::string_view parameter);
Verdict has_softmax(const Site& site, std::string_view parameter);
Verdict has_mask(const Site& site, std::string_view parameter);
Verdict has_causal_mask(const Site& site, std::string_view parameter);
Verdict has_square_mask(const Site& site,
                        std::string_view parameter);              // a mask, and q_len = kv_len
Verdict is_square(const Site& site, std::string_view parameter);  // q_len = kv_len
Verdict multiplies_untransposed(const Site& site, std::string_view parameter);
Verdict projects_values(const Site& site, std::string_view parameter);
Verdict keys_fit_values(const Site& site, std::string_view parameter);

// hides
std::string nothing(const Site& site, double parameter);
std::string same_scale_as_missing(const Site& site, double parameter);
std::string same_scale_as_dk(const Site& site, double parameter);
std::string same_scale_as_inverse(const Site& site, double parameter);
std::string same_scale_as_other(const Site& site, double parameter);
std::string needs_overflow(const Site& site, double parameter);
std::string finite_but_far(const Site& site, double parameter);

// edits
void scores_transposed(StepList& list, const Site& site, double parameter);
void scores_untransposed(StepList& list, const Site& site, double parameter);
void scale_missing(StepList& list, const Site& site, double parameter);
void scale_dk(StepList& list, const Site& site, double parameter);
void scale_inverse(StepList& list, const Site& site, double parameter);
void scale_other(StepList& list, const Site& site, double parameter);
void softmax_missing(StepList& list, const Site& site, double parameter);
void softmax_whole(StepList& list, const Site& site, double parameter);
void softmax_columns(StepList& list, const Site& site, double parameter);
void softmax_unshifted(StepList& list, const Site& site, double parameter);
void mask_ignored(StepList& list, const Site& site, double parameter);
void mask_after(StepList& list, const Site& site, double parameter);
void mask_multiply(StepList& list, const Site& site, double parameter);
void mask_inverted(StepList& list, const Site& site, double parameter);
void mask_transposed(StepList& list, const Site& site, double parameter);
void mask_strict(StepList& list, const Site& site, double parameter);
void mask_as_number(StepList& list, const Site& site, double parameter);
void mask_finite(StepList& list, const Site& site, double parameter);
void weights_transposed(StepList& list, const Site& site, double parameter);
void values_unprojected(StepList& list, const Site& site, double parameter);
void keys_as_values(StepList& list, const Site& site, double parameter);

// The parameter's number on this site: "0.5", or a scale by name: "1/sqrt(d_model)", "1/sqrt(n)",
// "1/n", "ln2" (2ˢ for eˢ: the right scale times ln 2). nullopt: neither.
std::optional<double> parameter_value(std::string_view text, const Site& site);

}  // namespace glasshead::doctor::edits
