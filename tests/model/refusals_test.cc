// Configurations that must be refused, and what is said.
#include <gtest/gtest.h>

#include "model/made_files.h"

namespace glasshead::model {
namespace {

std::string llama(const std::string& more) {
  return R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 3,
    "num_attention_heads": 8, "intermediate_size": 172, "vocab_size": 512)" +
         more + "}";
}

#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(Refusals, an_unknown_family_is_told_the_known_ones) {
  const std::string said = refusal(R"({"model_type": "mamba"})");
  EXPECT_SAYS(said, "model_type: \"mamba\" is not a family that is built");
  for (const char* known : {"llama", "gpt2", "gemma3_text", "bert", "t5", "albert"})
    EXPECT_SAYS(said, known);
  EXPECT_SAYS(refusal("{}"), "model_type: says no family");
  EXPECT_SAYS(refusal(R"({"model_type": 3})"), "model_type: is 3; a text is needed");
}

TEST(Refusals, missing_fields_are_all_named_at_once) {
  const std::string said = refusal(R"({"model_type": "llama"})");
  for (const char* field : {"hidden_size", "num_hidden_layers", "num_attention_heads",
                            "intermediate_size", "vocab_size"})
    EXPECT_SAYS(said, std::string(field) + ": is missing");
}

TEST(Refusals, sizes_that_contradict_each_other_are_refused) {
  EXPECT_SAYS(refusal(llama(R"(, "num_key_value_heads": 3)")),
              "num_key_value_heads: 3 heads for keys and values, 8 for queries");
  EXPECT_SAYS(refusal(R"({"model_type": "llama", "hidden_size": 65, "num_hidden_layers": 3,
    "num_attention_heads": 8, "intermediate_size": 172, "vocab_size": 512})"),
              "head_dim: not given, and the width 65 is not a multiple of the 8 heads");
  EXPECT_SAYS(refusal(llama(R"(, "head_dim": 7)")), "7 of a head's 7 coordinates would turn");
  EXPECT_SAYS(refusal(R"({"model_type": "gpt2", "n_embd": 25, "n_layer": 1, "n_head": 6,
    "n_positions": 8, "vocab_size": 9})"),
              "n_head: 6: the width 25 must be a multiple of it");
}

TEST(Refusals, what_would_change_the_arithmetic_and_is_not_built_is_named) {
  for (const auto& [field, part] : std::vector<std::pair<std::string, std::string>>{
           {R"("quantization_config": {"bits": 4})", "quantization_config: "},
           {R"("num_local_experts": 8)", "num_local_experts: is 8: mixtures of experts"},
           {R"("hidden_act": "relu6")", "hidden_act: \"relu6\": this activation is not built"},
           {R"("rope_scaling": {"rope_type": "spiral"})", "\"spiral\": this kind of rotary"},
           {R"("rope_parameters": {"mrope_section": [1, 2]})", "rope_parameters/mrope_section"},
           {R"("use_bidirectional_attention": true)", "use_bidirectional_attention: is true"},
           {R"("attention_chunk_size": 8192)", "attention_chunk_size: is 8192"}})
    EXPECT_SAYS(refusal(llama(", " + field)), part);
}

TEST(Refusals, the_text_half_of_a_model_with_pictures_is_read_as_closely) {
  EXPECT_SAYS(refusal(R"({"model_type": "gemma3", "text_config": {"model_type": "gemma3_text",
    "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34,
    "sliding_window": 1024, "use_bidirectional_attention": true}})"),
              "use_bidirectional_attention: is true");
}

TEST(Refusals, fields_that_say_none_are_no_reason) {
  described(llama(R"(, "quantization_config": null, "num_local_experts": 0,
    "use_bidirectional_attention": false, "pruned_heads": {}, "rope_scaling": null,
    "position_embedding_type": "absolute")"));
}

TEST(Refusals, rotary_scalings_need_their_fields) {
  const auto scaled = [](const char* scaling) {
    return refusal(llama(std::string(", \"rope_scaling\": ") + scaling));
  };
  EXPECT_SAYS(scaled(R"({"type": "linear"})"), "rope_scaling: linear scaling needs its factor");
  EXPECT_SAYS(scaled(R"({"type": "linear", "factor": -1})"), "factor: must be above 0");
  EXPECT_SAYS(scaled(R"({"type": "llama3", "factor": 8, "low_freq_factor": 4,
    "high_freq_factor": 1, "original_max_position_embeddings": 8})"),
              "llama3 scaling needs");
  EXPECT_SAYS(scaled(R"({"type": "longrope", "long_factor": [1], "short_factor": [1]})"),
              "longrope needs long and short factors, 4 of each");
  EXPECT_SAYS(scaled(R"({"type": "longrope", "long_factor": [1, 1, 1, 0],
    "short_factor": [1, 1, 1, 1]})"),
              "longrope's factors must be above 0");
  EXPECT_SAYS(scaled(R"({"type": "yarn", "factor": 4, "beta_fast": -2,
    "original_max_position_embeddings": 8})"),
              "beta_fast: must be above 0");
  EXPECT_SAYS(scaled(R"({"type": 7})"), "rope_scaling/type: is 7; a text is needed");
}

TEST(Refusals, lists_by_layer_have_one_entry_for_each) {
  const std::string gemma = R"({"model_type": "gemma3_text", "hidden_size": 64,
    "num_hidden_layers": 3, "intermediate_size": 172, "vocab_size": 512, "head_dim": 16,
    "layer_types": )";
  EXPECT_SAYS(refusal(gemma + R"(["full_attention"]})"), "layer_types: a list of 1");
  EXPECT_SAYS(refusal(gemma + R"(["full_attention", "full_attention", "linear_attention"]})"),
              "layer_types: layer 2 is of a kind that is not built");
}

TEST(Refusals, encoders_have_positions_their_padding_leaves_room_for) {
  EXPECT_SAYS(refusal(R"({"model_type": "roberta", "hidden_size": 24, "num_hidden_layers": 1,
    "num_attention_heads": 6, "intermediate_size": 37, "vocab_size": 67,
    "max_position_embeddings": 2})"),
              "pad_token_id: 1: positions start after it");
  EXPECT_SAYS(refusal(R"({"model_type": "bert", "hidden_size": 24, "num_hidden_layers": 1,
    "num_attention_heads": 6, "intermediate_size": 37, "vocab_size": 67,
    "max_position_embeddings": 20, "position_embedding_type": "relative_key",
    "is_decoder": true})"),
              "position_embedding_type");
  EXPECT_SAYS(refusal(R"({"model_type": "albert", "hidden_size": 24, "num_hidden_layers": 2,
    "num_attention_heads": 6, "intermediate_size": 37, "vocab_size": 67,
    "max_position_embeddings": 20, "inner_group_num": 2, "num_hidden_groups": 5})"),
              "inner_group_num: 2");
}

TEST(Refusals, t5_has_buckets_that_can_be_divided) {
  EXPECT_SAYS(refusal(R"({"model_type": "t5", "d_model": 25, "d_kv": 5, "d_ff": 37,
    "num_layers": 2, "num_heads": 4, "vocab_size": 67, "relative_attention_num_buckets": 30})"),
              "30 buckets up to distance 128");
  EXPECT_SAYS(refusal(R"({"model_type": "t5", "d_model": 25, "d_kv": 5, "d_ff": 37,
    "num_layers": 2, "num_heads": 4, "vocab_size": 67, "feed_forward_proj": "gated-tanh"})"),
              "feed_forward_proj: ");
}

// Nothing that is written there may crash, hang, or allocate by what it says.
TEST(HostileConfigs, absurd_values_are_refused_in_every_place) {
  const std::vector<std::string> values{"0",   "-1",   "1e300",  "9223372036854775807",
                                        "1.5", "true", "\"x\"",  "[]",
                                        "[1]", "{}",   "1e-300", "99999999999999999999"};
  const std::vector<std::string> fields{"hidden_size",
                                        "num_hidden_layers",
                                        "num_attention_heads",
                                        "num_key_value_heads",
                                        "intermediate_size",
                                        "vocab_size",
                                        "head_dim",
                                        "rms_norm_eps",
                                        "rope_theta",
                                        "max_position_embeddings",
                                        "sliding_window",
                                        "layer_types",
                                        "rope_scaling",
                                        "rope_parameters",
                                        "tie_word_embeddings",
                                        "hidden_act",
                                        "partial_rotary_factor",
                                        "original_max_position_embeddings",
                                        "query_pre_attn_scalar",
                                        "attn_logit_softcapping",
                                        "max_window_layers",
                                        "no_rope_layers",
                                        "eos_token_id",
                                        "pad_token_id",
                                        "n_embd",
                                        "n_layer",
                                        "n_head",
                                        "n_positions",
                                        "n_inner",
                                        "d_model",
                                        "d_kv",
                                        "d_ff",
                                        "num_layers",
                                        "num_heads",
                                        "relative_attention_num_buckets",
                                        "relative_attention_max_distance",
                                        "embedding_size",
                                        "num_hidden_groups",
                                        "type_vocab_size",
                                        "layer_norm_eps",
                                        "sliding_window_pattern"};
  const std::vector<std::string> types{"llama", "mistral", "smollm3", "gpt2",        "qwen2",
                                       "qwen3", "gemma",   "gemma2",  "gemma3_text", "phi3",
                                       "bert",  "roberta", "albert",  "t5"};
  const std::string sizes = R"("hidden_size": 64, "num_hidden_layers": 3,
    "num_attention_heads": 8, "intermediate_size": 172, "vocab_size": 512, "n_embd": 64,
    "n_layer": 3, "n_head": 8, "n_positions": 32, "max_position_embeddings": 64, "d_model": 64,
    "d_kv": 8, "d_ff": 172, "num_layers": 3, "num_heads": 8)";
  int refused = 0;
  for (const std::string& type : types)
    for (const std::string& field : fields)
      for (const std::string& value : values) {
        std::string config = "{\"model_type\": \"" + type + "\", " + sizes + "}";
        const std::size_t at = config.find("\"" + field + "\": ");
        if (at == std::string::npos) {
          config.insert(config.size() - 1, ", \"" + field + "\": " + value);
        } else {
          const std::size_t begin = at + field.size() + 4;
          config.replace(begin, config.find_first_of(",}", begin) - begin, value);
        }
        MadeFiles made(config);
        const formats::Checkpoint files = made.open();
        Description model;
        std::vector<Problem> problems;
        const bool is_fine = describe(files, {.has_tensors = false}, model, problems);
        EXPECT_EQ(is_fine, problems.empty()) << config;
        refused += is_fine ? 0 : 1;
      }
  EXPECT_GT(refused, 1000);
}

TEST(HostileConfigs, no_more_layers_than_tensors) {
  MadeFiles made(R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 4000,
    "num_attention_heads": 8, "intermediate_size": 172, "vocab_size": 512})");
  made.add("model.embed_tokens.weight", {1});
  const formats::Checkpoint files = made.open();
  Description model;
  std::vector<Problem> problems;
  EXPECT_FALSE(describe(files, {}, model, problems));
  EXPECT_SAYS(text_of(problems), "num_hidden_layers: 4000 layers, but the files have only 1");
}

}  // namespace
}  // namespace glasshead::model
