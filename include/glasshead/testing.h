// For tests with GoogleTest: an attention that is wrong fails with its diagnosis. There is no
// tolerance to choose: each number may differ by what rounding can do to it on these very inputs.
//
//   #include <glasshead/testing.h>
//   EXPECT_TRUE(glasshead::is_attention(out, {q, k, v, options}));
//   EXPECT_THAT(out, glasshead::is_attention_of({q, k, v, options}));   // with <gmock/gmock.h>
//
// In place of `out` (a tensor, a view, anything that converts to ConstTensor<4>) also Claims, with
// weights, lse, gradients. Needs GoogleTest, which nothing else of the library does.
#pragma once

#include <ostream>
#include <type_traits>
#include <utility>

#include <gtest/gtest.h>

#include "glasshead/diagnose.h"

namespace glasshead {

// Whether the claims are the attention's numbers; if not, its message is the diagnosis. Throws what
// diagnose throws.
inline ::testing::AssertionResult is_attention(const Claims& claims, const AttentionCase& attention,
                                               const DiagnoseOptions& options = {}) {
  const Diagnosis diagnosis = diagnose(attention, claims, options);
  return (diagnosis.is_right() ? ::testing::AssertionSuccess() : ::testing::AssertionFailure())
         << "\n"
         << diagnosis_text(diagnosis);
}
inline ::testing::AssertionResult is_attention(const ConstTensor<4>& out,
                                               const AttentionCase& attention,
                                               const DiagnoseOptions& options = {}) {
  Claims claims;
  claims.out = out;
  return is_attention(claims, attention, options);
}

// The matcher's implementation; use is_attention_of.
class AttentionMatcher {
 public:
  AttentionMatcher(AttentionCase attention, DiagnoseOptions options)
      : attention_(std::move(attention)), options_(std::move(options)) {}

  template <class Given>  // Claims, or a tensor
  bool MatchAndExplain(const Given& given, ::testing::MatchResultListener* listener) const {
    static_assert(std::is_same_v<Given, Claims> || std::is_convertible_v<Given, ConstTensor<4>> ||
                      std::is_convertible_v<const Given&, ConstTensor<4>>,
                  "an attention's out is a tensor of rank 4");
    const ::testing::AssertionResult result = is_attention(given, attention_, options_);
    *listener << result.message();
    return result;
  }
  void DescribeTo(std::ostream* os) const { *os << "is attention of the given q, k, v, options"; }
  void DescribeNegationTo(std::ostream* os) const {
    *os << "is not attention of the given q, k, v, options";
  }

 private:
  AttentionCase attention_;  // views: the tensors must outlive the matcher
  DiagnoseOptions options_;
};

inline ::testing::PolymorphicMatcher<AttentionMatcher> is_attention_of(
    AttentionCase attention, DiagnoseOptions options = {}) {
  return ::testing::MakePolymorphicMatcher(
      AttentionMatcher(std::move(attention), std::move(options)));
}

}  // namespace glasshead
