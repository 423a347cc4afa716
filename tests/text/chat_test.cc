// Turns as the models' own templates write them (transformers' apply_chat_template), without BOS.
#include "glasshead/chat.h"

#include <gtest/gtest.h>

namespace glasshead {
namespace {

const std::vector<ChatTurn> kTalk = {{ChatRole::system, "Be brief."},
                                     {ChatRole::user, " Hi "},
                                     {ChatRole::assistant, "Hello"},
                                     {ChatRole::user, "Why?"}};

TEST(Chat, chatml) {
  EXPECT_EQ(chat_prompt("{{'<|im_start|>'}}", kTalk),
            "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n Hi <|im_end|>\n"
            "<|im_start|>assistant\nHello<|im_end|>\n<|im_start|>user\nWhy?<|im_end|>\n"
            "<|im_start|>assistant\n");
}

// SmolLM2-135M-Instruct's template.
TEST(Chat, smollm2_writes_a_system_turn_where_there_is_none) {
  const std::string smollm2 =
      "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ "
      "'<|im_start|>system\\nYou are a helpful AI assistant named SmolLM, trained by Hugging "
      "Face<|im_end|>\\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '\\n' + "
      "message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}{% if add_generation_prompt %}{{ "
      "'<|im_start|>assistant\\n' }}{% endif %}";
  EXPECT_EQ(chat_prompt(smollm2, {{ChatRole::user, "Hi"}}),
            "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging "
            "Face<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(chat_prompt(smollm2, kTalk).find("SmolLM"), std::string::npos);
}

TEST(Chat, llama3_trims) {
  EXPECT_EQ(chat_prompt("<|start_header_id|>", {{ChatRole::user, " Hi\n"}}),
            "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n");
}

TEST(Chat, gemma_has_no_system_turn) {
  EXPECT_EQ(chat_prompt("<start_of_turn>", kTalk),
            "<start_of_turn>user\nBe brief.\n\nHi<end_of_turn>\n<start_of_turn>model\nHello"
            "<end_of_turn>\n<start_of_turn>user\nWhy?<end_of_turn>\n<start_of_turn>model\n");
}

TEST(Chat, phi3_and_zephyr) {
  EXPECT_EQ(chat_prompt("<|assistant|><|end|>", {{ChatRole::user, "Hi"}}),
            "<|user|>\nHi<|end|>\n<|assistant|>\n");
  EXPECT_EQ(chat_prompt("<|user|><|endoftext|>", {{ChatRole::user, "Hi"}}),
            "<|user|>\nHi<|endoftext|>\n<|assistant|>\n");
}

TEST(Chat, llama2_and_mistral_ask_with_nothing) {
  EXPECT_EQ(chat_prompt("[INST] <<SYS>>", kTalk),
            "[INST] <<SYS>>\nBe brief.\n<</SYS>>\n\n Hi  [/INST]Hello</s>[INST] Why? [/INST]");
  EXPECT_EQ(chat_prompt("[INST][AVAILABLE_TOOLS]", kTalk),
            "[INST] Be brief.\n\n Hi [/INST] Hello</s>[INST] Why?[/INST]");
}

TEST(Chat, an_answer_at_the_end_is_not_asked_for_again) {
  EXPECT_EQ(chat_prompt("<|im_start|>", {{ChatRole::user, "a"}, {ChatRole::assistant, "b"}}),
            "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nb<|im_end|>\n");
}

TEST(Chat, what_is_not_known_is_refused_with_everything_that_is_wrong) {
  for (const char* text : {"", "{{ bos }}", "<|im_start|><|im_sep|>", "[INST][SYSTEM_PROMPT]"})
    EXPECT_EQ(chat_form(text), "") << text;
  try {
    chat_prompt("", {{ChatRole::user, "a"}, {ChatRole::system, "b"}});
    FAIL();
  } catch (const OptionError& error) {
    ASSERT_EQ(error.problems().size(), 2U);
    EXPECT_EQ(error.problems()[0].where, "chat_template");
    EXPECT_EQ(error.problems()[1].where, "turns[1]");
  }
  EXPECT_THROW(chat_prompt("<start_of_turn>", {{ChatRole::system, "a"}}), OptionError);
  EXPECT_THROW(chat_prompt("<|im_start|>", {}), OptionError);
}

}  // namespace
}  // namespace glasshead
