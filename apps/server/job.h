// One computation in a process of its own: it can take so much time and memory and no more, what
// goes wrong in it ends it alone, and it ends with whoever waits for it.
//
//   Stop stop;
//   JobResult result = run_job("trace", body, {.seconds = 60}, {stop.wait_fd(), client_socket});
//
// The process is this program, started again under the name kJobName; its main hands over to
// job_main before it does anything else.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace glasshead::server {

inline constexpr const char* kJobName = "glasshead-job";

struct JobLimits {
  double seconds = 60;                           // for the whole of it, by the clock
  std::size_t memory = std::size_t{4096} << 20;  // bytes of address space
};

// Something that one thread says to all that wait with poll: readable from then on.
class Stop {
 public:
  Stop();  // throws IoError: no file descriptor is left
  ~Stop();
  Stop(const Stop&) = delete;
  Stop& operator=(const Stop&) = delete;

  void say() noexcept;
  bool is_said() const noexcept;
  int wait_fd() const { return read_; }

 private:
  int read_ = -1, write_ = -1;
};

enum class JobEnd {
  answered,
  refused,  // the bytes are the problems
  out_of_memory,
  out_of_time,
  stopped,  // the server ends
  client_left,
  failed  // it ended in no way that it should; the bytes say how
};

struct JobResult {
  JobEnd end = JobEnd::failed;
  std::string bytes;
};

// Who ends it early: `stop` readable, or the client's socket closed. -1: nobody.
struct JobWatch {
  int stop = -1, client = -1;
};

JobResult run_job(const std::string& call, std::string_view body, const JobLimits& limits,
                  const JobWatch& watch);

// The other side: reads the body from stdin, writes the answer to stdout, returns the exit code.
bool is_job(int argc, char** argv);
int job_main(int argc, char** argv) noexcept;

}  // namespace glasshead::server
