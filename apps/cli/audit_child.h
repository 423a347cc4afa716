// Somebody's program, asked for one attention after another: through files, and one way or the
// other it may crash or hang without harm.
#pragma once

#include <csignal>
#include <string>
#include <sys/types.h>
#include <vector>

#include "cli/temporary_folder.h"
#include "glasshead/audit.h"

namespace glasshead::cli {

struct ChildOptions {
  std::vector<std::string> command;
  bool serves = false;  // one process for all: a line per input on its stdin, one per answer on its
                        // stdout
  double seconds = 20;  // for one answer; a process that has just started gets kStartSeconds more
};

// An end of a pipe, closed with its owner.
class PipeEnd {
 public:
  PipeEnd() = default;
  ~PipeEnd() { close(); }
  PipeEnd(const PipeEnd&) = delete;
  PipeEnd& operator=(const PipeEnd&) = delete;

  int number() const { return number_; }
  void take(int number);  // closes the one before
  void close();

 private:
  int number_ = -1;  // none
};

// SIGPIPE is ignored meanwhile; afterwards it does what it did before.
class QuietPipes {
 public:
  QuietPipes();
  ~QuietPipes();
  QuietPipes(const QuietPipes&) = delete;
  QuietPipes& operator=(const QuietPipes&) = delete;

 private:
  struct sigaction before_ = {};
};

class AuditChild {
 public:
  explicit AuditChild(ChildOptions options);  // throws IoError: no folder for files
  ~AuditChild();                              // ends what still runs; removes the files
  AuditChild(const AuditChild&) = delete;
  AuditChild& operator=(const AuditChild&) = delete;

  // Throws IoError where the command can't be started at all.
  AuditAnswer ask(const AuditCall& call);

 private:
  enum class Heard { ok, refused, not_offered, ended, nothing };

  void start(const std::vector<std::string>& arguments);
  bool has_ended(double seconds);  // waits so long for the process
  void kill_all();                 // the process and what it has started
  AuditAnswer ask_new();
  AuditAnswer ask_running();
  Heard hear(double seconds, std::string& said);
  AuditAnswer ended() const;  // how, in words
  AuditAnswer hung() const;
  AuditAnswer answer_file() const;
  std::string last_words() const;  // the last line of its stderr

  ChildOptions options_;
  TemporaryFolder folder_;
  std::string in_, out_, errors_;
  QuietPipes quiet_;   // a process that has ended is told by its answer that is missing
  pid_t process_ = 0;  // 0: none runs
  int status_ = 0;     // of the one that ended last
  PipeEnd to_, from_;
  std::string heard_;      // of its stdout, not used yet
  bool is_fresh_ = false;  // it has not answered yet
  bool has_answered_ = false;
};

}  // namespace glasshead::cli
