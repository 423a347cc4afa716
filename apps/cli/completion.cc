// glasshead completion: shell scripts made by walking the program's own options.
#include <memory>

#include "cli/commands.h"
#include "glasshead/error.h"

namespace glasshead::cli {
namespace {

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

// Each character of `special` behind `mark`.
std::string escaped(const std::string& text, std::string_view special, const std::string& mark) {
  std::string result;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos) result += mark;
    result += c;
  }
  return result;
}

std::vector<const CLI::App*> subcommands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

const CLI::Option* positional(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options())
    if (option->get_positional()) return option;
  return nullptr;
}

// The words that a command's positional argument can be; empty: it has none, or takes a file alone.
std::vector<std::string> positional_words(const CLI::App& command) {
  const CLI::Option* option = positional(command);
  return option == nullptr ? std::vector<std::string>{} : choices(*option);
}

// Words or a file: files are offered where no word fits.
bool takes_either(const CLI::Option& option) {
  return option.get_positional() && !choices(option).empty() && takes_file(option);
}

std::string bash_command(const CLI::App& command) {
  std::vector<std::string> flags, files, plain;
  std::string cases;
  for (const CLI::Option* option : command.get_options()) {
    const std::vector<std::string> names = flag_names(*option);
    flags.insert(flags.end(), names.begin(), names.end());
    if (names.empty() || !takes_value(*option)) continue;
    const std::vector<std::string> words = choices(*option);
    if (!words.empty())
      cases += "        " + joined(names, "|") + ") _glasshead_words \"" + joined(words, " ") +
               "\"; return ;;\n";
    else if (takes_file(*option))
      files.insert(files.end(), names.begin(), names.end());
    else
      plain.insert(plain.end(), names.begin(), names.end());
  }
  if (!files.empty()) cases += "        " + joined(files, "|") + ") _glasshead_files; return ;;\n";
  if (!plain.empty()) cases += "        " + joined(plain, "|") + ") return ;;\n";
  const std::vector<std::string> words = positional_words(command);
  return "    " + command.get_name() + ")\n      case $previous in\n" + cases +
         "        *) ;;\n      esac\n      if [[ $current == -* ]]; then\n        _glasshead_words "
         "\"" +
         joined(flags, " ") + "\"\n      else\n        " +
         (words.empty() ? "_glasshead_files" : "_glasshead_words \"" + joined(words, " ") + "\"") +
         (!words.empty() && takes_either(*positional(command))
              ? "\n        [[ ${#COMPREPLY[@]} -gt 0 ]] || _glasshead_files"
              : "") +
         "\n      fi ;;\n";
}

std::string bash_script(const CLI::App& app) {
  std::vector<std::string> names;
  std::string cases;
  for (const CLI::App* command : subcommands(app)) {
    names.push_back(command->get_name());
    cases += bash_command(*command);
  }
  return "# glasshead completion bash: source this file, or keep it in\n"
         "# ~/.local/share/bash-completion/completions/glasshead\n"
         "_glasshead_words() { mapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$current\"); }\n"
         "_glasshead_files() {\n"
         "  compopt -o filenames 2>/dev/null\n"
         "  mapfile -t COMPREPLY < <(compgen -f -- \"$current\")\n"
         "}\n"
         "_glasshead() {\n"
         "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}\n"
         "  # readline splits --causal=end at the sign\n"
         "  if [[ $current == = ]]; then\n"
         "    current=\n"
         "  elif [[ $previous == = ]]; then\n"
         "    previous=${COMP_WORDS[COMP_CWORD - 2]}\n"
         "  fi\n"
         "  COMPREPLY=()\n"
         "  if ((COMP_CWORD == 1)); then\n"
         "    _glasshead_words \"" +
         joined(names, " ") +
         " --help --version\"\n"
         "    return\n"
         "  fi\n"
         "  case ${COMP_WORDS[1]} in\n" +
         cases +
         "  esac\n"
         "}\n"
         "complete -F _glasshead glasshead\n";
}

std::string zsh_option(const CLI::Option& option) {
  const auto safe = [](const std::string& text) {
    return escaped(escaped(text, "[]:\\", "\\"), "'", "'\\'");
  };
  const std::vector<std::string> words = choices(option);
  const std::string action = takes_either(option) ? "{compadd " + joined(words, " ") + "; _files}"
                             : !words.empty()     ? "(" + joined(words, " ") + ")"
                             : takes_file(option) ? "_files"
                                                  : " ";
  const std::string value = ":" + safe(option.get_type_name()) + ":" + action;
  if (option.get_positional()) return " \\\n        '1" + value + "'";
  std::string text;
  for (const std::string& name : flag_names(option)) {
    text += " \\\n        '" + name +
            (may_omit_value(option)                  ? "=-"
             : takes_value(option) && name[1] == '-' ? "="
                                                     : "") +
            "[" + safe(option.get_description()) + "]" + (may_omit_value(option) ? ":" : "") +
            (takes_value(option) ? value : "") + "'";
  }
  return text;
}

std::string zsh_script(const CLI::App& app) {
  std::string names, cases;
  for (const CLI::App* command : subcommands(app)) {
    names += "    '" + command->get_name() + ":" +
             escaped(escaped(command->get_description(), ":", "\\"), "'", "'\\'") + "'\n";
    cases += "    " + command->get_name() + ")\n      _arguments -s";
    for (const CLI::Option* option : command->get_options()) cases += zsh_option(*option);
    cases += " ;;\n";
  }
  return "#compdef glasshead\n"
         "# glasshead completion zsh: keep this as _glasshead in a folder of $fpath\n"
         "_glasshead() {\n"
         "  local -a names\n"
         "  names=(\n" +
         names +
         "  )\n"
         "  if ((CURRENT == 2)); then\n"
         "    _describe command names\n"
         "    return\n"
         "  fi\n"
         "  shift words\n"
         "  ((CURRENT--))\n"
         "  case $words[1] in\n" +
         cases +
         "  esac\n"
         "}\n"
         "_glasshead \"$@\"\n";
}

std::string fish_option(const std::string& command, const CLI::Option& option) {
  const auto quote = [](const std::string& text) { return "'" + escaped(text, "'\\", "\\") + "'"; };
  const std::vector<std::string> words = choices(option);
  std::string line = "complete -c glasshead -n '__fish_seen_subcommand_from " + command + "'";
  if (option.get_positional())
    return words.empty() ? line + " -F\n"
                         : line + (takes_either(option) ? " -F -a " : " -f -a ") +
                               quote(joined(words, " ")) + "\n";
  for (const std::string& name : option.get_lnames()) line += " -l " + name;
  for (const std::string& name : option.get_snames()) line += " -s " + name;
  if (!words.empty())
    line +=
        std::string(may_omit_value(option) ? " -f" : " -x") + " -a " + quote(joined(words, " "));
  else if (takes_file(option))
    line += " -r -F";
  else
    line += takes_value(option) ? " -x" : " -f";
  return line + " -d " + quote(option.get_description()) + "\n";
}

std::string fish_script(const CLI::App& app) {
  std::string text =
      "# glasshead completion fish: keep this as ~/.config/fish/completions/glasshead.fish\n"
      "complete -c glasshead -n __fish_use_subcommand -f\n";
  for (const CLI::App* command : subcommands(app))
    text += "complete -c glasshead -n __fish_use_subcommand -a " + command->get_name() + " -d '" +
            escaped(command->get_description(), "'\\", "\\") + "'\n";
  for (const CLI::App* command : subcommands(app))
    for (const CLI::Option* option : command->get_options())
      text += fish_option(command->get_name(), *option);
  return text;
}

void add(CLI::App& command, int&) {
  auto shell = std::make_shared<std::string>();
  command.add_option("shell", *shell, "The shell: bash, zsh or fish")
      ->required()
      ->type_name("bash|zsh|fish");
  command.callback([shell, &command] {
    const CLI::App& program = *command.get_parent();
    if (*shell == "bash")
      write_result("", bash_script(program));
    else if (*shell == "zsh")
      write_result("", zsh_script(program));
    else if (*shell == "fish")
      write_result("", fish_script(program));
    else
      throw OptionError("completion", {{*shell, "no such shell; bash, zsh or fish is needed"}});
  });
}

}  // namespace

const Command kCompletion{
    "completion", "Print a script with which a shell completes commands and options",
    "# let bash complete commands and options, from the next start on\n"
    "glasshead completion bash > ~/.local/share/bash-completion/completions/glasshead\n"
    "# in this shell only\n"
    "source <(glasshead completion bash)\n",
    add};

}  // namespace glasshead::cli
