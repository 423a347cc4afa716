// One subcommand of `glasshead`: a row of the table in commands.cc, from which the program, its
// help, the shell completion and the man page are made.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace glasshead::cli {

struct Command {
  const char* name;     // "attend"
  const char* summary;  // one line, an imperative: "Compute ..."
  // Command lines, each after a comment line: "# what it does\ncommand\n". --help and the man page
  // show all, the help of the program the first.
  const char* examples;
  // Declares the options and sets the callback; the callback leaves its exit code in `exit_code`
  // (0 fine, 1 the answer is no, 2 bad usage or input). It throws glasshead::Error for bad input:
  // main prints every problem to stderr and exits 2.
  void (*add)(CLI::App& command, int& exit_code);
};

// One of `words`, checked. The help names them by the option's type, so the check adds no text.
inline CLI::Validator one_of(const std::vector<std::string>& words) {
  CLI::Validator check = CLI::IsMember(words);
  check.description("");
  return check;
}

extern const Command kTrace;       // trace.cc
extern const Command kAttend;      // attend.cc
extern const Command kWorksheet;   // worksheet.cc
extern const Command kInspect;     // inspect.cc
extern const Command kBench;       // bench.cc
extern const Command kCompletion;  // completion.cc
extern const Command kMan;         // man.cc

// Writes to the file, or to stdout when the path is empty or "-". Files are written beside and
// renamed.
void write_result(const std::string& path, const std::string& bytes);
std::string read_file(const std::string& path);  // throws IoError

}  // namespace glasshead::cli
