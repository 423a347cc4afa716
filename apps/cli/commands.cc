#include "cli/commands.h"

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>

namespace glasshead::cli {
namespace {

constexpr std::array<const Command*, 14> kCommands{
    &kTrace, &kAttend, &kDoctor, &kAudit,   &kWorksheet, &kRun,        &kHeads,
    &kReads, &kWords,  &kView,   &kInspect, &kBench,     &kCompletion, &kMan};

constexpr std::size_t kPageWidth = 100;
constexpr std::size_t kColumn = 28;  // where descriptions begin

// Breaks lines between words so that descriptions stay in their column.
class Formatter : public CLI::Formatter {
 public:
  Formatter() { column_width(kColumn); }
  std::string make_option_desc(const CLI::Option* option) const override {
    return wrapped(CLI::Formatter::make_option_desc(option));
  }
  // What the option takes, and no more: "--decimals P". That modes exclude each other is said once.
  std::string make_option_opts(const CLI::Option* option) const override {
    if (may_omit_value(*option)) return "[=" + option->get_type_name() + "]";
    return takes_value(*option) ? " " + option->get_type_name() : "";
  }
  // One empty line between groups.
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    std::string text = CLI::Formatter::make_help(app, std::move(name), mode);
    for (std::size_t at = text.find("\n\n\n"); at != std::string::npos;
         at = text.find("\n\n\n", at))
      text.erase(at, 1);
    return text;
  }

 private:
  static std::string wrapped(const std::string& text) {
    std::string result;
    std::size_t used = 0, begin = 0;
    while (begin < text.size()) {
      const std::size_t end = std::min(text.find(' ', begin), text.size());
      if (used > 0 && used + 1 + end - begin > kPageWidth - kColumn) {
        result += '\n';
        used = 0;
      } else if (used > 0) {
        result += ' ';
        ++used;
      }
      result += text.substr(begin, end - begin);
      used += end - begin;
      begin = end + 1;
    }
    return result;
  }
};

std::string examples_text(const Command& command) {
  std::string text;
  std::string_view left = command.examples;
  while (!left.empty()) {
    const std::size_t end = std::min(left.find('\n'), left.size());
    text += "  " + std::string(left.substr(0, end)) + "\n";
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  return text;
}

// Of a list "# what it does\ncommand\n..." the first pair.
std::string first_example(const std::string& examples) {
  return examples.substr(0, examples.find('\n', examples.find('\n') + 1) + 1);
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row[b.size()];
}

bool is_word(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](char c) { return (c >= 'a' && c <= 'z') || c == '-'; });
}

}  // namespace

std::span<const Command* const> commands() { return kCommands; }

const Command* find_command(std::string_view name) {
  for (const Command* command : commands())
    if (name == command->name) return command;
  return nullptr;
}

void build_program(CLI::App& app, int& exit_code) {
  app.description(
      "Attention you can see through: exact attention in which every number can be inspected.");
  app.formatter(std::make_shared<Formatter>());
  app.get_formatter()->label("Subcommand", "Command");
  app.get_formatter()->label("SUBCOMMAND", "COMMAND");
  app.set_help_flag("-h,--help", "Show this help");
  app.set_version_flag("--version", "glasshead " GLASSHEAD_VERSION)
      ->description("Show the version");
  app.require_subcommand(0, 1);
  std::string examples;
  for (const Command* command : commands()) {
    CLI::App* sub = app.add_subcommand(command->name, command->summary);
    sub->group("Commands");
    sub->set_help_flag("-h,--help", "Show this help");
    sub->footer("Examples:\n" + examples_text(*command));
    command->add(*sub, exit_code);
    examples += first_example(examples_text(*command));
  }
  app.footer(
      "Examples:\n" + examples +
      "\nExit codes: 0 fine, 1 the answer is \"no\", 2 bad usage or input, 3 an internal error.\n"
      "\"glasshead COMMAND --help\" says what a command takes, with more examples.");
}

std::string nearest(std::string_view text, const std::vector<std::string>& names) {
  std::string best;
  // A third of the letters wrong is a slip; more is another word.
  std::size_t least = text.size() / 3 + 1;
  for (const std::string& name : names) {
    const std::size_t distance = edit_distance(text, name);
    if (distance > least || (distance == least && !best.empty())) continue;
    least = distance;
    best = name;
  }
  return best;
}

std::vector<std::string> choices(const CLI::Option& option) {
  std::vector<std::string> words;
  const std::string type = option.get_type_name();
  std::string_view left = type;
  while (!left.empty()) {
    const std::size_t end = std::min(left.find('|'), left.size());
    if (is_word(left.substr(0, end))) words.emplace_back(left.substr(0, end));
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  return words;
}

bool takes_file(const CLI::Option& option) {
  return option.get_type_name().find("FILE") != std::string::npos;
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

bool may_omit_value(const CLI::Option& option) {
  return takes_value(option) && option.get_items_expected_min() == 0;
}

std::vector<std::string> flag_names(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  return names;
}

}  // namespace glasshead::cli
