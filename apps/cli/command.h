// One subcommand of `glasshead`: a row of the table in commands.cc, from which the program, its
// help, the shell completion and the man page are made.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "glasshead/error.h"

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
extern const Command kDoctor;      // doctor.cc
extern const Command kAudit;       // audit.cc
extern const Command kWorksheet;   // worksheet.cc
extern const Command kRun;         // run.cc
extern const Command kHeads;       // heads.cc
extern const Command kReads;       // reads.cc
extern const Command kWords;       // words.cc
extern const Command kView;        // view.cc
extern const Command kInspect;     // inspect.cc
extern const Command kBench;       // bench.cc
extern const Command kCompletion;  // completion.cc
extern const Command kMan;         // man.cc

// Writes to the file, or to stdout when the path is empty or "-". Files are written beside and
// renamed.
void write_result(const std::string& path, const std::string& bytes);

// A problem of `flag` where write_result could not write to the path as things stand: so that a
// command says so before it works, not after.
void need_writable(const std::string& flag, const std::string& path,
                   std::vector<Problem>& problems);

// Runs `write`; where it can't, says so for `command` and the flag that names the file.
template <class Write>
void write_for(const char* command, const std::string& flag, Write write) {
  try {
    write();
  } catch (const IoError& error) {
    std::vector<Problem> problems = error.problems();
    for (Problem& problem : problems) {
      problem.what = problem.where + ": " + problem.what;
      problem.where = flag;
    }
    throw IoError(command, std::move(problems));
  }
}
std::string read_file(const std::string& path);  // throws IoError

}  // namespace glasshead::cli
