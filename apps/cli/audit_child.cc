#include "cli/audit_child.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>

extern char** environ;

namespace glasshead::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kStartSeconds = 60;         // an interpreter that loads a large library takes many
constexpr std::size_t kMostHeard = 1 << 16;  // bytes of a line of theirs, and of its last words
constexpr std::uintmax_t kMostAnswer = 1 << 30;  // bytes of its file

double seconds_until(Clock::time_point end) {
  return std::chrono::duration<double>(end - Clock::now()).count();
}

Clock::time_point after(double seconds) {
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

[[noreturn]] void cannot(const std::string& where, const std::string& what) {
  throw IoError("audit", {{where, what}});
}

std::string of_errno(int number) { return std::strerror(number); }  // NOLINT(concurrency-mt-unsafe)

// Both ends are closed in children; `dup2` of posix_spawn opens the one that they get.
void make_pipe(PipeEnd& read_end, PipeEnd& write_end) {
  int ends[2];
  if (pipe(ends) != 0) cannot("COMMAND", "no pipe to it: " + of_errno(errno));
  for (const int end : ends) fcntl(end, F_SETFD, FD_CLOEXEC);
  read_end.take(ends[0]);
  write_end.take(ends[1]);
}

// {in} and {out} of the arguments; without them, both are added at the end.
std::vector<std::string> with_files(std::vector<std::string> arguments, const std::string& in,
                                    const std::string& out) {
  bool is_named = false;
  for (std::string& argument : arguments)
    for (const auto& [name, file] : {std::pair("{in}", &in), std::pair("{out}", &out)})
      for (std::size_t at = argument.find(name); at != std::string::npos;
           at = argument.find(name, at + file->size())) {
        argument.replace(at, std::strlen(name), *file);
        is_named = true;
      }
  if (!is_named) arguments.insert(arguments.end(), {in, out});
  return arguments;
}

}  // namespace

void PipeEnd::take(int number) {
  close();
  number_ = number;
}

void PipeEnd::close() {
  if (number_ >= 0) ::close(number_);
  number_ = -1;
}

QuietPipes::QuietPipes() {
  struct sigaction ignored{};
  ignored.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignored, &before_);
}

QuietPipes::~QuietPipes() { sigaction(SIGPIPE, &before_, nullptr); }

AuditChild::AuditChild(ChildOptions options)
    : options_(std::move(options)),
      folder_("audit"),
      in_(folder_.file("in.safetensors")),
      out_(folder_.file("out.safetensors")),
      errors_(folder_.file("stderr")) {}

AuditChild::~AuditChild() { kill_all(); }

AuditAnswer AuditChild::ask(const AuditCall& call) {
  write_bytes(in_, audit_file(call));
  std::error_code error;
  std::filesystem::remove(out_, error);
  return options_.serves ? ask_running() : ask_new();
}

void AuditChild::start(const std::vector<std::string>& arguments) {
  PipeEnd their_in, their_out;
  heard_.clear();
  if (options_.serves) {
    make_pipe(their_in, to_);
    make_pipe(from_, their_out);
  }
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  if (options_.serves) {
    posix_spawn_file_actions_adddup2(&files, their_in.number(), STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&files, their_out.number(), STDOUT_FILENO);
  } else {
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  }
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, errors_.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawnattr_t how;
  posix_spawnattr_init(&how);
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGPIPE);
  posix_spawnattr_setsigdefault(&how, &defaults);
  posix_spawnattr_setpgroup(&how, 0);  // a group of its own, which ends as one
  posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
  std::vector<char*> words;
  for (const std::string& argument : arguments)
    words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  const int failure = posix_spawnp(&process_, words.front(), &files, &how, words.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&how);
  if (failure != 0) {
    process_ = 0;
    cannot("COMMAND", arguments.front() + " can't be started: " + of_errno(failure));
  }
  is_fresh_ = true;
}

bool AuditChild::has_ended(double seconds) {
  const Clock::time_point end = after(seconds);
  auto pause = std::chrono::microseconds(200);
  for (;;) {
    if (waitpid(process_, &status_, WNOHANG) == process_) {
      const pid_t group = std::exchange(process_, 0);
      kill(-group, SIGKILL);  // what it left behind
      return true;
    }
    if (seconds_until(end) <= 0) return false;
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(5000));
  }
}

void AuditChild::kill_all() {
  to_.close();
  from_.close();
  if (process_ == 0) return;
  kill(-process_, SIGKILL);
  waitpid(process_, &status_, 0);
  process_ = 0;
}

AuditAnswer AuditChild::ask_new() {
  start(with_files(options_.command, in_, out_));
  if (!has_ended(options_.seconds + kStartSeconds)) {
    kill_all();
    return hung();
  }
  if (WIFEXITED(status_) && WEXITSTATUS(status_) == 0) return answer_file();
  return ended();
}

AuditAnswer AuditChild::ask_running() {
  if (process_ == 0) start(options_.command);
  const std::string line = in_ + "\t" + out_ + "\n";
  // A line fits into the pipe whole: the process has answered the ones before.
  const bool is_told =
      write(to_.number(), line.data(), line.size()) == static_cast<ssize_t>(line.size());
  std::string said;
  const Heard heard =
      is_told ? hear(options_.seconds + (is_fresh_ ? kStartSeconds : 0), said) : Heard::ended;
  if (heard == Heard::nothing) {
    kill_all();
    return hung();
  }
  if (heard == Heard::ended) {
    has_ended(1);
    kill_all();  // it may have closed its stdout and live on
    if (!has_answered_ && WIFEXITED(status_))
      cannot("COMMAND", "ended with exit code " + std::to_string(WEXITSTATUS(status_)) +
                            " before its first answer: " + last_words());
    return ended();
  }
  is_fresh_ = false;
  has_answered_ = true;
  if (heard == Heard::refused) return {Answered::refused, {}, said};
  if (heard == Heard::not_offered) return {Answered::not_offered, {}, said};
  return answer_file();
}

// Lines that are no answer are passed over: libraries print.
AuditChild::Heard AuditChild::hear(double seconds, std::string& said) {
  const Clock::time_point end = after(seconds);
  for (;;) {
    for (std::size_t at = heard_.find('\n'); at != std::string::npos; at = heard_.find('\n')) {
      std::string line = heard_.substr(0, at);
      heard_.erase(0, at + 1);
      if (!line.empty() && line.back() == '\r') line.pop_back();
      if (line == "ok") return Heard::ok;
      if (line == "refused" || line.starts_with("refused ")) {
        said = line.substr(std::min<std::size_t>(line.size(), 8));
        return Heard::refused;
      }
      if (line == "not offered" || line.starts_with("not offered ")) {
        said = line.substr(std::min<std::size_t>(line.size(), 12));
        return Heard::not_offered;
      }
    }
    pollfd waiting{from_.number(), POLLIN, 0};
    const double left = seconds_until(end);
    if (left <= 0) return Heard::nothing;
    const int ready = poll(&waiting, 1, static_cast<int>(left * 1000) + 1);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) continue;  // the time decides
    char piece[4096];
    const ssize_t count = read(from_.number(), piece, sizeof piece);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return Heard::ended;
    heard_.append(piece, static_cast<std::size_t>(count));
    // The beginning of a line says what it is: of a longer one the rest is dropped.
    const std::size_t begin = heard_.rfind('\n') == std::string::npos ? 0 : heard_.rfind('\n') + 1;
    if (heard_.size() - begin > kMostHeard) heard_.resize(begin + kMostHeard);
  }
}

AuditAnswer AuditChild::hung() const {
  return {Answered::hung,
          {},
          "no answer in " + std::to_string(static_cast<long>(options_.seconds)) + " s"};
}

// A program that ends with an exit code has refused; a shell's above 128 is a signal.
AuditAnswer AuditChild::ended() const {
  const auto by_signal = [&](int number) {
    const char* name = strsignal(number);  // NOLINT(concurrency-mt-unsafe)
    return AuditAnswer{Answered::crashed,
                       {},
                       "signal " + std::to_string(number) +
                           (name != nullptr ? std::string(" (") + name + ")" : "")};
  };
  if (WIFSIGNALED(status_)) return by_signal(WTERMSIG(status_));
  const int code = WEXITSTATUS(status_);
  if (code > 128 && code < 128 + NSIG) return by_signal(code - 128);
  if (options_.serves)
    return {Answered::crashed, {}, "exit code " + std::to_string(code) + ": " + last_words()};
  return {Answered::refused, {}, last_words()};
}

// Who says that it answered, and has no numbers, is wrong.
AuditAnswer AuditChild::answer_file() const {
  AuditAnswer answer;
  const auto no_numbers = [](const std::string& why) {
    AuditAnswer nothing;
    nothing.text = why;
    return nothing;
  };
  std::error_code failure;
  const std::filesystem::file_status status = std::filesystem::symlink_status(out_, failure);
  if (!std::filesystem::exists(status)) return no_numbers("it wrote no file");
  if (!std::filesystem::is_regular_file(status)) return no_numbers("its file is no regular file");
  if (const std::uintmax_t size = std::filesystem::file_size(out_, failure);
      failure || size > kMostAnswer)
    return no_numbers("its file is too large");
  try {
    NamedTensors tensors = read_safetensors(out_);
    const auto found = std::find_if(tensors.begin(), tensors.end(),
                                    [](const auto& x) { return x.first == "out"; });
    if (found == tensors.end()) return no_numbers("its file holds no tensor 'out'");
    answer.out = std::move(found->second);
  } catch (const Error& error) {
    return no_numbers("its file can't be read: " + error.problems().front().what);
  }
  return answer;
}

std::string AuditChild::last_words() const {
  std::ifstream file(errors_, std::ios::binary | std::ios::ate);
  const std::streamoff end = file ? static_cast<std::streamoff>(file.tellg()) : 0;
  file.seekg(std::max<std::streamoff>(0, end - static_cast<std::streamoff>(kMostHeard)));
  std::string line, last;
  while (std::getline(file, line))
    if (line.find_first_not_of(" \t\r") != std::string::npos) last = line;
  return last;
}

}  // namespace glasshead::cli
