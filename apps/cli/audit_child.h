// Somebody's program, asked for one attention after another: through files, and one way or the
// other it may crash or hang without harm.
#pragma once

#include <string>
#include <sys/types.h>
#include <vector>

#include "glasshead/audit.h"

namespace glasshead::cli {

struct ChildOptions {
  std::vector<std::string> command;
  bool serves = false;  // one process for all: a line per input on its stdin, one per answer on its
                        // stdout
  double seconds = 20;  // for one answer; a process that has just started gets kStartSeconds more
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
  std::string folder_, in_, out_, errors_;
  pid_t process_ = 0;  // 0: none runs
  int status_ = 0;     // of the one that ended last
  int to_ = -1, from_ = -1;
  std::string heard_;      // of its stdout, not used yet
  bool is_fresh_ = false;  // it has not answered yet
  bool has_answered_ = false;
};

}  // namespace glasshead::cli
