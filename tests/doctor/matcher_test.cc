// glasshead/testing.h as somebody's tests use it: right attention passes, wrong attention fails
// with its diagnosis.
#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest-spi.h>

#include "base/random.h"
#include "glasshead/testing.h"
#if __has_include(<gmock/gmock.h>)
#include <gmock/gmock.h>
#endif

namespace glasshead {
namespace {

// Somebody's attention in f32: two heads, causal from the top left.
struct Theirs {
  static constexpr index_t kRows = 6, kSize = 4;
  Tensor<float, 4> q, k, v, out;
  AttentionOptions options;

  explicit Theirs(double scale) : q(drawn(1)), k(drawn(2)), v(drawn(3)), out(q.shape()) {
    options.mask = Mask::causal();
    for (index_t h = 0; h < 2; ++h)
      for (index_t i = 0; i < kRows; ++i) row(h, i, scale);
  }

  AttentionCase attention() const { return {q, k, v, options, std::nullopt, {}}; }

 private:
  static Tensor<float, 4> drawn(std::uint64_t seed) {
    Tensor<float, 4> tensor({1, 2, kRows, kSize});
    for (index_t n = 0; n < tensor.size(); ++n)
      tensor.data()[n] = static_cast<float>(standard_normal(seed, static_cast<std::uint64_t>(n)));
    return tensor;
  }

  void row(index_t h, index_t i, double scale) {
    std::vector<double> weights;
    double total = 0;
    for (index_t j = 0; j <= i; ++j) {
      double dot = 0;
      for (index_t e = 0; e < kSize; ++e)
        dot += static_cast<double>(q(0, h, i, e)) * static_cast<double>(k(0, h, j, e));
      weights.push_back(std::exp(dot * scale));
      total += weights.back();
    }
    for (index_t d = 0; d < kSize; ++d) {
      double sum = 0;
      for (index_t j = 0; j <= i; ++j)
        sum += weights[static_cast<std::size_t>(j)] / total * static_cast<double>(v(0, h, j, d));
      out(0, h, i, d) = static_cast<float>(sum);
    }
  }
};

const double kScale = 0.5;  // 1 / sqrt(4)

// What a matcher says of a value.
template <class T>
std::string said(const ::testing::Matcher<const T&>& matcher, const T& value, bool is_match) {
  class Listener : public ::testing::MatchResultListener {
   public:
    Listener() : ::testing::MatchResultListener(&text) {}
    std::stringstream text;
  } listener;
  EXPECT_EQ(matcher.MatchAndExplain(value, &listener), is_match);
  return listener.text.str();
}

TEST(GoogleTestMatcher, right_attention_passes) {
  const Theirs right(kScale);
  EXPECT_TRUE(is_attention(right.out, right.attention()));
  said<Tensor<float, 4>>(is_attention_of(right.attention()), right.out, true);
  said<View<const float, 4>>(is_attention_of(right.attention()), right.out.view(), true);
}

TEST(GoogleTestMatcher, wrong_attention_fails_with_its_diagnosis) {
  const Theirs wrong(1);
  EXPECT_NONFATAL_FAILURE(EXPECT_TRUE(is_attention(wrong.out, wrong.attention())), "scale-missing");
  const std::string text =
      said<Tensor<float, 4>>(is_attention_of(wrong.attention()), wrong.out, false);
  EXPECT_NE(text.find("scale-missing"), std::string::npos) << text;
  EXPECT_NE(text.find("look for"), std::string::npos) << text;
}

TEST(GoogleTestMatcher, claims_may_be_more_than_out) {
  const Theirs wrong(1), right(kScale);
  Claims claims;
  claims.out = right.out;
  EXPECT_TRUE(is_attention(claims, right.attention()));
  Tensor<float, 3> lse({1, 2, Theirs::kRows});  // zeros: of no row
  claims.lse = lse;
  const std::string text = said<Claims>(is_attention_of(right.attention()), claims, false);
  EXPECT_NE(text.find("lse ["), std::string::npos) << text;
}

TEST(GoogleTestMatcher, decimals_are_those_of_the_claim) {
  Theirs theirs(kScale);
  for (index_t n = 0; n < theirs.out.size(); ++n)
    theirs.out.data()[n] = std::round(theirs.out.data()[n] * 100) / 100;
  DiagnoseOptions options;
  EXPECT_FALSE(is_attention(theirs.out, theirs.attention(), options));
  options.decimals = 2;
  EXPECT_TRUE(is_attention(theirs.out, theirs.attention(), options));
}

#ifdef EXPECT_THAT
TEST(GoogleTestMatcher, goes_with_expect_that) {
  const Theirs right(kScale), wrong(1);
  EXPECT_THAT(right.out, is_attention_of(right.attention()));
  EXPECT_THAT(wrong.out, ::testing::Not(is_attention_of(wrong.attention())));
  EXPECT_NONFATAL_FAILURE(EXPECT_THAT(wrong.out, is_attention_of(wrong.attention())),
                          "scale-missing");
}
#endif

}  // namespace
}  // namespace glasshead
