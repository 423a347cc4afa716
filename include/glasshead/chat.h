// A conversation as the text that a chat model was trained on.
//
//   chat_prompt(words.chat_template(), {{ChatRole::user, "Why is the sky blue?"}})
//   // "<|im_start|>user\nWhy is the sky blue?<|im_end|>\n<|im_start|>assistant\n"
//
// A model's template is a program in Jinja. It is not run: it is recognised as one of a few forms
// by the marks it writes, as llama.cpp does (src/llama-chat.cpp). An unknown one is refused; the
// prompt can then be given as plain text. No form writes BOS: encoding the text adds it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "glasshead/error.h"

namespace glasshead {

enum class ChatRole { system, user, assistant };

struct ChatTurn {
  ChatRole role = ChatRole::user;
  std::string text;
};

// "chatml", "llama3", "gemma", "phi3", "zephyr", "llama2", "mistral"; empty: none of these.
std::string chat_form(std::string_view chat_template);

// The turns, and where the last is not the assistant's what asks for its answer. A system turn
// comes first, and where none does, chatml has the one that the template writes itself (SmolLM2's
// does). Throws OptionError: the template is empty or unknown, there is no turn, a system turn is
// not the first, or one has no user's turn to stand in (gemma, llama2, mistral).
std::string chat_prompt(std::string_view chat_template, const std::vector<ChatTurn>& turns);

}  // namespace glasshead
