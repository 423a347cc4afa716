// The program: parse, run the command, turn what goes wrong into text on stderr and an exit code
// (0 fine, 1 the answer is no, 2 bad usage or input, 3 an internal error).
#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "cli/commands.h"
#include "glasshead/error.h"

namespace {

using namespace glasshead::cli;

constexpr int kBadUsage = 2;
constexpr int kInternal = 3;

void say(const std::string& text) { std::fputs((text + "\n").c_str(), stderr); }

// The library's messages name its functions and options; whoever types a command knows the command
// and its flags.
std::string in_name_of(const std::string& command, const glasshead::Error& error) {
  std::string text;
  for (const glasshead::Problem& problem : error.problems())
    text += (text.empty() ? "" : "\n") + command + ": " + problem.where + ": " + problem.what;
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"EmptyRow::zero", "--empty-row zero"},
      {"nullopt is 1/sqrt(d_k)", "without --scale it is 1/sqrt(d_k)"}};
  for (const auto& [option, flag] : kWords)
    for (std::size_t at = text.find(option); at != std::string::npos; at = text.find(option, at))
      text.replace(at, option.size(), flag);
  return text;
}

// What some commands, and other programs, call what is called otherwise where this is said.
struct OtherName {
  std::string_view given, here;  // flags; `here` may have a value behind a space
};
constexpr OtherName kOtherNames[] = {{"--text", "--prompt"}, {"--json", "--format json"}};

std::string did_you_mean(const std::string& text, const std::vector<std::string>& names) {
  std::string best = nearest(text, names);
  for (const OtherName& other : kOtherNames) {
    const std::string_view flag = other.here.substr(0, other.here.find(' '));
    if (other.given == text && std::find(names.begin(), names.end(), flag) != names.end())
      best = other.here;
  }
  return best.empty() ? "" : "; did you mean " + best + "?";
}

int unknown_command(const std::string& name) {
  std::vector<std::string> names;
  std::string all;
  for (const Command* command : commands()) {
    names.emplace_back(command->name);
    all += (all.empty() ? "" : ", ") + names.back();
  }
  say("glasshead: " + name + ": no such command" + did_you_mean(name, names) + "\nThere are " +
      all + "; glasshead --help shows examples.");
  return kBadUsage;
}

// The command that was being parsed; the program itself if none was.
const CLI::App& parsed(const CLI::App& app) {
  const std::vector<CLI::App*> used = app.get_subcommands();
  return used.empty() ? app : *used.front();
}

int bad_usage(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = parsed(app);
  const std::string who = &command == &app ? "glasshead" : command.get_name();
  const std::vector<std::string> unknown = app.remaining(/*recurse=*/true);
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError)) {
    std::vector<std::string> names;
    for (const CLI::Option* option : command.get_options())
      for (const std::string& name : flag_names(*option)) names.push_back(name);
    for (const std::string& text : unknown) {
      const std::string flag = text.substr(0, text.find('='));
      say(who + ": " + flag + ": " +
          (flag.starts_with("-") ? "no such option" + did_you_mean(flag, names)
                                 : "not expected here"));
    }
  } else {
    say(who + ": " + error.what());
  }
  say("glasshead " + (&command == &app ? "" : who + " ") + "--help shows what it takes.");
  return kBadUsage;
}

int run(int argc, char** argv) {
  if (argc > 1 && argv[1][0] != '-' && find_command(argv[1]) == nullptr)
    return unknown_command(argv[1]);
  int exit_code = 0;
  CLI::App app("", "glasshead");
  build_program(app, exit_code);
  if (argc < 2) {
    std::fputs(app.help().c_str(), stderr);
    return kBadUsage;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    return bad_usage(app, error);
  } catch (const glasshead::Error& error) {
    say(in_name_of(parsed(app).get_name(), error));
    return kBadUsage;
  }
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::bad_alloc&) {
    say("glasshead: this needs more memory than there is");
    return kBadUsage;
  } catch (const std::length_error&) {
    say("glasshead: this needs more memory than there can be");
    return kBadUsage;
  } catch (const std::exception& error) {
    say(std::string("glasshead: internal error: ") + error.what() +
        "\nThis is a fault in Glasshead. Please report it with the command line and the input "
        "files.");
    return kInternal;
  }
}
