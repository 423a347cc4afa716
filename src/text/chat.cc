#include "glasshead/chat.h"

#include <utility>

#include "base/fail.h"

namespace glasshead {
namespace {

// One way to write turns. `open` and `close` stand around a role's name and `end` after its text.
struct Form {
  const char* name;
  const char* open;
  const char* close;
  const char* end;
  const char* assistant;  // the assistant's name
  bool trims;             // texts lose the white space around them
  bool has_system;        // a turn of its own; else its text goes before the first user's
};

constexpr Form kMarked[] = {
    {"chatml", "<|im_start|>", "\n", "<|im_end|>\n", "assistant", false, true},
    {"llama3", "<|start_header_id|>", "<|end_header_id|>\n\n", "<|eot_id|>", "assistant", true,
     true},
    {"gemma", "<start_of_turn>", "\n", "<end_of_turn>\n", "model", true, false},
    {"phi3", "<|", "|>\n", "<|end|>\n", "assistant", false, true},
    {"zephyr", "<|", "|>\n", "<|endoftext|>\n", "assistant", false, true},
};

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::string trimmed(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\n\r\v\f";
  const std::size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(kSpaces) - begin + 1));
}

// The system text that a template writes where a conversation has none: between the marks, inside
// one of its strings (where a new line is spelled \n), without a quote or brace, which would be
// code.
std::string own_system_text(std::string_view chat_template) {
  for (const std::string_view open : {"<|im_start|>system\\n", "<|im_start|>system\n"}) {
    for (std::size_t at = chat_template.find(open); at != std::string_view::npos;
         at = chat_template.find(open, at + 1)) {
      const std::size_t begin = at + open.size();
      const std::size_t end = chat_template.find("<|im_end|>", begin);
      if (end == std::string_view::npos) break;
      const std::string_view text = chat_template.substr(begin, end - begin);
      if (!text.empty() && text.find_first_of("'\"{}\\") == std::string_view::npos)
        return std::string(text);
    }
  }
  return {};
}

void check_turns(std::string_view form, bool has_system, const std::vector<ChatTurn>& turns,
                 std::vector<Problem>& problems) {
  if (turns.empty()) problems.push_back({"turns", "there is none; at least one is needed"});
  for (std::size_t n = 0; n < turns.size(); ++n) {
    if (turns[n].role != ChatRole::system) continue;
    const std::string where = "turns[" + std::to_string(n) + "]";
    if (n > 0) problems.push_back({where, "is the system's; that must be the first turn"});
    if (n == 0 && !has_system && (turns.size() < 2 || turns[1].role != ChatRole::user))
      problems.push_back(
          {where, "is the system's; in the form " + std::string(form) +
                      " its text stands in the user's turn that follows, and none does"});
  }
}

std::string marked_prompt(const Form& form, const std::string& own_system,
                          const std::vector<ChatTurn>& turns) {
  const auto opened = [&](const char* role) { return std::string(form.open) + role + form.close; };
  std::string prompt;
  if (!own_system.empty() && turns.front().role != ChatRole::system)
    prompt += opened("system") + own_system + form.end;
  std::string before;  // the next user's text
  for (const ChatTurn& turn : turns) {
    const std::string text = form.trims ? trimmed(turn.text) : turn.text;
    if (turn.role == ChatRole::system && !form.has_system) {
      before = text + "\n\n";
      continue;
    }
    const char* role = turn.role == ChatRole::system ? "system"
                       : turn.role == ChatRole::user ? "user"
                                                     : form.assistant;
    prompt += opened(role) + std::exchange(before, {}) + text + form.end;
  }
  if (turns.back().role != ChatRole::assistant) prompt += opened(form.assistant);
  return prompt;
}

// [INST] forms: the user's turn is between marks and the answer follows.
std::string llama2_prompt(bool trims, const std::vector<ChatTurn>& turns) {
  std::string prompt, system;
  for (const ChatTurn& turn : turns) {
    const std::string text = trims ? trimmed(turn.text) : turn.text;
    if (turn.role == ChatRole::system)
      system = "<<SYS>>\n" + text + "\n<</SYS>>\n\n";
    else if (turn.role == ChatRole::user)
      prompt += "[INST] " + std::exchange(system, {}) + text + " [/INST]";
    else
      prompt += text + "</s>";
  }
  return prompt;
}

std::string mistral_prompt(const std::vector<ChatTurn>& turns) {
  std::string prompt, system;
  for (const ChatTurn& turn : turns) {
    if (turn.role == ChatRole::system)
      system = turn.text + "\n\n";
    else if (turn.role == ChatRole::user)
      prompt += "[INST] " + std::exchange(system, {}) + turn.text + "[/INST]";
    else
      prompt += " " + trimmed(turn.text) + "</s>";
  }
  return prompt;
}

}  // namespace

std::string chat_form(std::string_view chat_template) {
  if (has(chat_template, "<|im_start|>")) {
    // Phi-4 and SmolVLM put the marks in other places.
    const bool is_other =
        has(chat_template, "<|im_sep|>") || has(chat_template, "<end_of_utterance>");
    return is_other ? "" : "chatml";
  }
  if (has(chat_template, "[INST]")) {
    if (has(chat_template, "<<SYS>>")) return "llama2";
    // Other Mistral forms have other spaces around the marks.
    const bool is_v3 = has(chat_template, "[AVAILABLE_TOOLS]") &&
                       !has(chat_template, "[SYSTEM_PROMPT]") && !has(chat_template, " [INST]") &&
                       !has(chat_template, "\"[INST]\"");
    return is_v3 ? "mistral" : "";
  }
  if (has(chat_template, "<|assistant|>") && has(chat_template, "<|end|>")) return "phi3";
  // With these, Falcon's and ChatGLM's.
  if (has(chat_template, "<|user|>") && has(chat_template, "<|endoftext|>") &&
      !has(chat_template, "</s>") && !has(chat_template, "[gMASK]"))
    return "zephyr";
  if (has(chat_template, "<|start_header_id|>")) return "llama3";
  if (has(chat_template, "<start_of_turn>")) return "gemma";
  return {};
}

std::string chat_prompt(std::string_view chat_template, const std::vector<ChatTurn>& turns) {
  const std::string name = chat_form(chat_template);
  std::vector<Problem> problems;
  if (name.empty())
    problems.push_back(
        {"chat_template",
         std::string(chat_template.empty() ? "the model's files have none"
                                           : "is none that is known (chatml, llama3, gemma, phi3, "
                                             "zephyr, llama2, mistral)") +
             "; give the prompt as plain text, with the model's own marks in it"});
  const Form* form = nullptr;
  for (const Form& candidate : kMarked)
    if (candidate.name == name) form = &candidate;
  check_turns(name, form == nullptr ? name.empty() : form->has_system, turns, problems);
  if (!problems.empty()) fail(ErrorKind::option, "chat_prompt", std::move(problems));
  if (name == "llama2") return llama2_prompt(has(chat_template, "content.strip()"), turns);
  if (name == "mistral") return mistral_prompt(turns);
  return marked_prompt(*form, name == "chatml" ? own_system_text(chat_template) : "", turns);
}

}  // namespace glasshead
