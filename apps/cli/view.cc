// glasshead view: the workbench in the browser. Checks what it is given, and becomes the server
// (apps/server), a program of its own.
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <unistd.h>

#include "cli/command.h"
#include "cli/page_files.h"
#include "cli/trace_files.h"
#include "wire/lesson.h"

namespace glasshead::cli {
namespace {

struct ViewArgs {
  std::vector<std::string> cases;
  std::string web;
  int port = 0, seconds = 60, memory = 4096, body = 64;  // MiB
  bool is_silent = false;
};

// The files of the cases, all sound, no two of one name.
std::vector<std::string> check_cases(const std::vector<std::string>& given) {
  std::vector<std::string> files, names;
  std::vector<Problem> problems;
  for (const std::string& name : given) {
    const CaseText text = load_case_text(name, "view");
    const std::string shown = wire::address_name(text.name);
    for (const std::string& other : names)
      if (other == shown) problems.push_back({name, "another file is called " + shown + ", too"});
    names.push_back(shown);
    files.push_back(text.path);
  }
  if (!problems.empty()) throw OptionError("view", std::move(problems));
  return files;
}

int run(const ViewArgs& args) {
  std::vector<std::string> words{"glasshead-view",
                                 page_folder("view", args.web),
                                 std::to_string(args.port),
                                 std::to_string(args.seconds),
                                 std::to_string(args.memory),
                                 std::to_string(args.body),
                                 args.is_silent ? "no" : "open"};
  for (const std::string& file : check_cases(args.cases)) words.push_back(file);
  const std::string program = helper_program(words[0]);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execv(program.c_str(), argv.data());
  throw IoError("view", {{program, std::string(std::strerror(errno)) +
                                       "; it is built with the option GLASSHEAD_SERVER, as by make "
                                       "build"}});
}

void add(CLI::App& command, int& exit_code) {
  auto args = std::make_shared<ViewArgs>();
  command
      .add_option("CASE", args->cases,
                  "Cases by name or file; the page opens with the first, and no other file can be "
                  "reached through the server")
      ->type_name("CASE|FILE");
  command.add_flag("--no-open", args->is_silent, "Print the address only; open no browser");
  command.add_option("--port", args->port, "Listen at this port (default: any that is free)")
      ->type_name("N")
      ->check(CLI::Range(0, 65535).description(""));
  command
      .add_option("--web", args->web,
                  "The folder of the built page (default: the installed one, or build/web)")
      ->type_name("DIR");
  const auto limit = [&](const char* flag, int& value, int most, const char* description) {
    command.add_option(flag, value, description)
        ->type_name("N")
        ->check(CLI::Range(1, most).description(""))
        ->group("Limits of what a page may ask for");
  };
  constexpr int kDay = 24 * 60 * 60, kMostMiB = 1 << 20;
  limit("--time-limit", args->seconds, kDay,
        "Seconds that a request may take to come, and a computation to end (default 60)");
  limit("--memory-limit", args->memory, kMostMiB, "MiB of one computation (default 4096)");
  limit("--max-body", args->body, kMostMiB, "MiB of one request (default 64)");
  command.callback([args, &exit_code] { exit_code = run(*args); });
}

}  // namespace

const Command kView{"view",
                    "Open the workbench: see the numbers of a case, change them, share them",
                    "# a worked example in the browser\n"
                    "glasshead view three-tokens\n"
                    "# your own case, at a port of your choice\n"
                    "glasshead view mine.json --port 8000\n"
                    "# the address alone, for a script or another machine's browser\n"
                    "glasshead view --no-open\n",
                    add};

}  // namespace glasshead::cli
