// glasshead man: the manual page, made from the options and examples of the program itself.
#include <string>

#include <fmt/format.h>

#include "cli/commands.h"

namespace glasshead::cli {
namespace {

// The code point of the UTF-8 character at `at`, which must be whole; moves `at` to its last byte.
unsigned code_point(const std::string& text, std::size_t& at) {
  const auto byte = [&](std::size_t n) { return static_cast<unsigned char>(text[n]); };
  const unsigned first = byte(at);
  const int more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1;
  unsigned code = first & (0x3Fu >> more);
  for (int n = 0; n < more; ++n) code = code << 6 | (byte(++at) & 0x3Fu);
  return code;
}

// Text for roff: nothing in it is a request or an escape, and everything is ASCII, since groff
// reads another encoding only when told.
std::string plain(const std::string& text) {
  std::string result;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (static_cast<unsigned char>(c) >= 0x80)
      result += fmt::format("\\[u{:04X}]", code_point(text, at));
    else if (c == '\\')
      result += "\\e";
    else if (c == '-')
      result += "\\-";
    else if (c == '\'')
      result += "\\(aq";
    else
      result += c;
  }
  return result.starts_with('.') ? "\\&" + result : result;
}

std::string option_text(const CLI::Option& option) {
  std::string names;
  for (const std::string& name : flag_names(option))
    names += (names.empty() ? "" : ", ") + ("\\fB" + plain(name) + "\\fR");
  const std::string type = "\\fI" + plain(option.get_type_name()) + "\\fR";
  if (option.get_positional())
    names = type;
  else if (may_omit_value(option))
    names += "[=" + type + "]";
  else if (takes_value(option))
    names += " " + type;
  return ".TP\n" + names + "\n" + plain(option.get_description()) + "\n";
}

std::string examples_text(const std::string& examples) {
  std::string text = ".PP\n\\fBExamples\\fR\n.PP\n.nf\n.RS\n";
  for (std::size_t begin = 0; begin < examples.size();) {
    const std::size_t end = std::min(examples.find('\n', begin), examples.size());
    text += plain(examples.substr(begin, end - begin)) + "\n";
    begin = end + 1;
  }
  return text + ".RE\n.fi\n";
}

std::string command_text(const CLI::App& command) {
  std::string text =
      ".SS " + plain(command.get_name()) + "\n" + plain(command.get_description()) + ".\n";
  for (const std::string& group : command.get_groups()) {
    const std::vector<const CLI::Option*> options =
        command.get_options([&](const CLI::Option* option) {
          return option->get_group() == group && option->nonpositional();
        });
    if (options.empty()) continue;
    text += ".PP\n\\fI" + plain(group) + "\\fR\n";
    for (const CLI::Option* option : options) text += option_text(*option);
  }
  for (const CLI::Option* option : command.get_options())
    if (option->get_positional()) text += option_text(*option);
  return text + examples_text(find_command(command.get_name())->examples);
}

std::string page(const CLI::App& program) {
  std::string text =
      ".TH GLASSHEAD 1 \"\" \"glasshead " GLASSHEAD_VERSION
      "\" \"User Commands\"\n"
      ".SH NAME\nglasshead \\- attention you can see through\n"
      ".SH SYNOPSIS\n\\fBglasshead\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n"
      ".SH DESCRIPTION\n" +
      plain(program.get_description()) +
      "\n"
      "Results go to standard output, notes to standard error. A file of numbers is a NumPy\n"
      "\\fI.npy\\fR or a \\fI.safetensors\\fR file; \\fIFILE.safetensors:NAME\\fR is one tensor of "
      "many.\n"
      ".SH COMMANDS\n";
  for (const CLI::App* command : program.get_subcommands([](const CLI::App*) { return true; }))
    text += command_text(*command);
  return text +
         ".SH EXIT STATUS\n"
         ".TP\n0\nfine\n.TP\n1\nthe answer is \"no\"\n.TP\n2\nbad usage or input; every problem is "
         "named\n"
         ".TP\n3\nan internal error: please report it\n";
}

void add(CLI::App& command, int&) {
  command.callback([&command] { write_result("", page(*command.get_parent())); });
}

}  // namespace

const Command kMan{"man", "Print the manual page",
                   "# read the manual page\n"
                   "glasshead man | man -l -\n",
                   add};

}  // namespace glasshead::cli
