// The first attention of a worked example, for diagnosis of numbers that somebody gives for it. Of
// this layer programs and bindings use this header, fit_claims.h, the table of mistakes and the
// worksheets (tests/layering): a wire::Case is no public type, so neither is what is made of it.
//
//   std::optional<CaseSubject> c = case_subject(parse_case(...), problems);
//   diagnose(c->attention(), claims, {.query_labels = c->query_labels});
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "glasshead/diagnose.h"
#include "wire/case.h"

namespace glasshead::doctor {

struct CaseSubject {
  Tensor<double, 4> q, k, v, unprojected;  // unprojected: without data where v is given
  AttentionOptions options;
  std::vector<std::string> query_labels;

  AttentionCase attention() const;
};

// nullopt, and why: there is no attention in it, or it has no softmax.
std::optional<CaseSubject> case_subject(const wire::Case& c, std::vector<Problem>& problems);

}  // namespace glasshead::doctor
