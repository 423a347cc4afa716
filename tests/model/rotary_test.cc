// Rotary scalings against the published formulas, evaluated in Python with the math module.
#include <gtest/gtest.h>

#include "model/made_files.h"

namespace glasshead::model {
namespace {

Rotary rotary_of(const std::string& fields, index_t context = 0) {
  const Description model = described(R"({"model_type": "llama", "hidden_size": 64,
    "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 8, "vocab_size": 8,
    "max_position_embeddings": 8192, )" + fields +
                                          "}",
                                      context);
  return model.decoder->rotaries.at(0);
}

void expect_close(const std::vector<double>& made, const std::vector<double>& right) {
  ASSERT_EQ(made.size(), right.size());
  // A few roundings of pow and of the mixing.
  for (std::size_t i = 0; i < made.size(); ++i) EXPECT_NEAR(made[i], right[i], 1e-14 * right[i]);
}

TEST(Rotary, llama3_leaves_fast_pairs_slows_slow_ones_and_mixes_between) {
  const std::vector<double> right{1.0,
                                  0.19392274474868576,
                                  0.0273441373147213,
                                  0.0009115830921521387,
                                  0.00017677669529663688,
                                  3.428102195952591e-05,
                                  6.647869871181235e-06,
                                  1.2891731721515574e-06};
  const Rotary made = rotary_of(R"("rope_theta": 500000, "rope_scaling": {"rope_type": "llama3",
    "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 512})");
  expect_close(made.frequencies, right);
  EXPECT_EQ(made.amplitude, 1);
  EXPECT_EQ(made.scaling, "llama3");
}

TEST(Rotary, yarn_has_an_amplitude) {
  const std::vector<double> right{1.0,     0.31622776601683794,  0.1,     0.02569350598886808,
                                  0.00625, 0.001383496476323666, 0.00025, 7.905694150420948e-05};
  const std::string yarn = R"("rope_scaling": {"type": "yarn", "factor": 4.0,
    "original_max_position_embeddings": 2048)";
  const Rotary made = rotary_of(yarn + "}");
  expect_close(made.frequencies, right);
  EXPECT_NEAR(made.amplitude, 1.138629436111989, 1e-15);
  EXPECT_EQ(rotary_of(yarn + R"(, "attention_factor": 1.5})").amplitude, 1.5);
}

TEST(Rotary, linear_divides_and_dynamic_leaves_but_limits) {
  EXPECT_EQ(rotary_of(R"("rope_scaling": {"type": "linear", "factor": 4})").frequencies[0], 0.25);
  const std::string dynamic = R"("rope_scaling": {"type": "dynamic", "factor": 2})";
  EXPECT_EQ(rotary_of(dynamic).frequencies[0], 1);
  const Description model = described(R"({"model_type": "llama", "hidden_size": 64,
    "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 8, "vocab_size": 8,
    "max_position_embeddings": 100, )" +
                                      dynamic + "}");
  EXPECT_EQ(model.position_limit, 100);
}

std::string phi3(const std::string& spelling) {
  return R"({"model_type": "phi3", "hidden_size": 48, "num_hidden_layers": 1,
    "num_attention_heads": 6, "intermediate_size": 35, "vocab_size": 67,
    "max_position_embeddings": 131072, "original_max_position_embeddings": 4096,
    "rope_scaling": {"type": ")" +
         spelling + R"(", "long_factor": [1.5, 2.25, 3.5, 5.0],
    "short_factor": [1.0, 1.25, 1.125, 1.5]}})";
}

TEST(Rotary, longrope_is_chosen_once_by_the_length_asked_for) {
  for (const char* spelling : {"longrope", "su", "yarn"}) {
    const Description brief = described(phi3(spelling));
    EXPECT_EQ(brief.position_limit, 4096);
    expect_close(brief.decoder->rotaries[0].frequencies, {1.0, 0.08, 0.01 / 1.125, 0.001 / 1.5});
    EXPECT_NEAR(brief.decoder->rotaries[0].amplitude, 1.1902380714238083, 1e-15);
    EXPECT_EQ(described(phi3(spelling), 4096).position_limit, 4096);
    const Description at_length = described(phi3(spelling), 4097);
    EXPECT_EQ(at_length.position_limit, 0);
    expect_close(at_length.decoder->rotaries[0].frequencies,
                 {0.6666666666666666, 0.044444444444444446, 0.002857142857142857, 0.0002});
    EXPECT_NEAR(at_length.decoder->rotaries[0].amplitude, 1.1902380714238083, 1e-15);
  }
}

TEST(Rotary, both_spellings_say_the_same_and_must_agree) {
  const std::string flat = R"("rope_parameters": {"rope_type": "linear", "factor": 4,
    "rope_theta": 500})";
  EXPECT_EQ(rotary_of(flat).frequencies,
            rotary_of(R"("rope_theta": 500, "rope_scaling": {"type": "linear", "factor": 4})")
                .frequencies);
  EXPECT_EQ(rotary_of(flat + R"(, "rope_theta": 500, "rope_scaling": {"rope_type": "linear",
    "factor": 4})")
                .frequencies,
            rotary_of(flat).frequencies);
  const std::string sizes = R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 1,
    "num_attention_heads": 4, "intermediate_size": 8, "vocab_size": 8, )";
  EXPECT_NE(refusal(sizes + flat + R"(, "rope_theta": 10000})").find("says something else"),
            std::string::npos);
  EXPECT_NE(refusal(sizes + flat + R"(, "rope_theta": 500, "rope_scaling": {"type": "linear",
    "factor": 2}})")
                .find("says something else"),
            std::string::npos);
}

}  // namespace
}  // namespace glasshead::model
