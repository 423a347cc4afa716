// The process that computes one answer.
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "server/answer.h"
#include "server/job.h"

namespace glasshead::server {
namespace {

constexpr int kAnswered = 0, kRefused = 1, kInternal = 3, kOutOfMemory = 4;
constexpr int kArguments = 5;  // the name, the call, bytes, seconds, the parent

// Sanitizers keep terabytes of addresses for their own use.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kLimitsMemory = false;
#elif defined(__has_feature)
constexpr bool kLimitsMemory =
    !(__has_feature(address_sanitizer) || __has_feature(thread_sanitizer));
#else
constexpr bool kLimitsMemory = true;
#endif

void limit(__rlimit_resource_t what, rlim_t most) {
  rlimit now{};
  if (::getrlimit(what, &now) != 0) return;
  if (now.rlim_max != RLIM_INFINITY && now.rlim_max < most) most = now.rlim_max;
  const rlimit next{most, most};
  ::setrlimit(what, &next);
}

void apply_limits(rlim_t memory, rlim_t seconds, pid_t parent) {
  // A killed server leaves no job behind; it may have ended before this was asked for.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kInternal);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_CPU, seconds);
  if (!kLimitsMemory) return;
  limit(RLIMIT_AS, memory);
  limit(RLIMIT_FSIZE, memory);  // the answer stands in memory, too
}

std::string read_stdin() {
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  std::string text;
  while (true) {
    const std::size_t size = text.size();
    text.resize(size + kPiece);
    const ssize_t n = ::read(STDIN_FILENO, text.data() + size, kPiece);
    text.resize(size + (n > 0 ? static_cast<std::size_t>(n) : 0));
    if (n == 0) return text;
    if (n < 0 && errno != EINTR) throw std::runtime_error("the request can't be read");
  }
}

void write_stdout(const std::string& bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::write(STDOUT_FILENO, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno != EINTR) throw std::bad_alloc();  // it is memory that is written to
    if (n > 0) done += static_cast<std::size_t>(n);
  }
}

}  // namespace

bool is_job(int argc, char** argv) {
  return argc == kArguments && std::string(argv[0]) == kJobName;
}

int job_main(int argc, char** argv) noexcept {
  if (!is_job(argc, argv)) return kInternal;
  // Unwinding needs memory, too: what stands in the heap is of no use any more.
  std::set_new_handler([] { ::_exit(kOutOfMemory); });
  try {
    // One thread: each would keep addresses for itself, and no bit depends on their number.
    ::setenv("GLASSHEAD_THREADS", "1", 1);
    apply_limits(std::strtoull(argv[2], nullptr, 10), std::strtoull(argv[3], nullptr, 10),
                 std::atoi(argv[4]));
    const Answer found = answer(argv[1], read_stdin());
    write_stdout(found.bytes);
    return found.is_ok ? kAnswered : kRefused;
  } catch (const std::bad_alloc&) {  // of a size that no memory has
    return kOutOfMemory;
  } catch (const std::length_error&) {
    return kOutOfMemory;
  } catch (const std::exception&) {
    return kInternal;
  }
}

}  // namespace glasshead::server
