#include "server/job.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "glasshead/error.h"

namespace glasshead::server {
namespace {

using Clock = std::chrono::steady_clock;

// A file descriptor that is closed with its owner, and that no program started meanwhile inherits.
class Fd {
 public:
  explicit Fd(int fd = -1) : fd_(fd) {}
  ~Fd() { close(); }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void reset(int fd) {
    close();
    fd_ = fd;
  }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
};

JobResult failed(const std::string& what) {
  return {JobEnd::failed, what + ": " + std::strerror(errno)};
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return ::lseek(fd, 0, SEEK_SET) == 0;
}

bool read_all(int fd, std::string& bytes) {
  struct stat status{};
  if (::fstat(fd, &status) != 0) return false;
  bytes.resize(static_cast<std::size_t>(status.st_size));
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n =
        ::pread(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<std::size_t>(n);
  }
  return true;
}

// A process group of its own, so that Ctrl-C in the terminal is the server's to pass on; no blocked
// signals; stdin, stdout, and as descriptor 3 what the parent sees closing when it has ended.
pid_t start(const std::vector<std::string>& arguments, int in, int out, int ended) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments)
    argv.push_back(const_cast<char*>(argument.c_str()));  // posix_spawn's, which changes nothing
  argv.push_back(nullptr);

  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawnattr_init(&attributes);
  constexpr int kEnded = 3;
  ::posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, ended, kEnded);
  sigset_t none, usual;
  ::sigemptyset(&none);
  ::sigemptyset(&usual);
  for (const int signal : {SIGINT, SIGTERM, SIGPIPE}) ::sigaddset(&usual, signal);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &usual);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(
      &attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  pid_t process = 0;
  errno = ::posix_spawn(&process, "/proc/self/exe", &files, &attributes, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  ::posix_spawnattr_destroy(&attributes);
  return process;
}

// How the waiting ended: by itself, or who ended it.
JobEnd wait_for_end(int ended, const JobWatch& watch, double seconds) {
  const auto limit =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  const Clock::time_point deadline = Clock::now() + limit;
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return JobEnd::out_of_time;
    // poll passes over negative descriptors.
    std::array<pollfd, 3> waits{pollfd{ended, POLLIN, 0}, pollfd{watch.stop, POLLIN, 0},
                                pollfd{watch.client, POLLRDHUP, 0}};
    constexpr long kSlice = 60'000;  // milliseconds
    const int ready =
        ::poll(waits.data(), waits.size(), static_cast<int>(std::min(left + 1, kSlice)));
    if (ready <= 0) continue;
    if (waits[0].revents != 0) return JobEnd::answered;
    if (waits[1].revents != 0) return JobEnd::stopped;
    if (waits[2].revents != 0) return JobEnd::client_left;
  }
}

constexpr int kAnswered = 0, kRefused = 1, kOutOfMemory = 4;

JobResult result_of(int status, int out) {
  const bool is_answer =
      WIFEXITED(status) && (WEXITSTATUS(status) == kAnswered || WEXITSTATUS(status) == kRefused);
  if (is_answer) {
    JobResult result;
    result.end = WEXITSTATUS(status) == kAnswered ? JobEnd::answered : JobEnd::refused;
    if (!read_all(out, result.bytes)) return failed("its answer can't be read");
    return result;
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == kOutOfMemory) return {JobEnd::out_of_memory, {}};
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ) return {JobEnd::out_of_memory, {}};
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU) return {JobEnd::out_of_time, {}};
  return {JobEnd::failed, WIFSIGNALED(status)
                              ? fmt::format("it was ended by signal {}", WTERMSIG(status))
                              : fmt::format("it ended with exit code {}", WEXITSTATUS(status))};
}

}  // namespace

Stop::Stop() {
  std::array<int, 2> fds{};
  if (::pipe2(fds.data(), O_CLOEXEC | O_NONBLOCK) != 0)
    throw IoError("view", {{"server", std::string("no file descriptor: ") + std::strerror(errno)}});
  read_ = fds[0];
  write_ = fds[1];
}

Stop::~Stop() {
  ::close(read_);
  ::close(write_);
}

void Stop::say() noexcept {
  const ssize_t ignored = ::write(write_, "", 1);  // a full pipe says it, too
  static_cast<void>(ignored);
}

bool Stop::is_said() const noexcept {
  pollfd wait{read_, POLLIN, 0};
  return ::poll(&wait, 1, 0) == 1;
}

JobResult run_job(const std::string& call, std::string_view body, const JobLimits& limits,
                  const JobWatch& watch) {
  const Fd in(::memfd_create("request", MFD_CLOEXEC)), out(::memfd_create("answer", MFD_CLOEXEC));
  if (!in || !out || !write_all(in.get(), body)) return failed("no memory for its request");
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return failed("no file descriptor");
  const Fd ended(pipe[0]);
  Fd ends(pipe[1]);
  const pid_t process =
      start({kJobName, call, std::to_string(limits.memory),
             std::to_string(static_cast<long>(limits.seconds) + 1), std::to_string(::getpid())},
            in.get(), out.get(), ends.get());
  if (process == 0) return failed("it can't be started");
  ends.close();
  const JobEnd end = wait_for_end(ended.get(), watch, limits.seconds);
  if (end != JobEnd::answered) ::kill(-process, SIGKILL);
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  if (end != JobEnd::answered) return {end, {}};
  return result_of(status, out.get());
}

}  // namespace glasshead::server
