// glasshead-view, which `glasshead view` starts, with everything checked: the server, its end by a
// signal, the browser.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fcntl.h>
#include <filesystem>
#include <pthread.h>
#include <spawn.h>
#include <string>
#include <thread>
#include <unistd.h>

#include "glasshead/error.h"
#include "glasshead/tensor_file.h"
#include "server/server.h"
#include "wire/lesson.h"

namespace glasshead::server {
namespace {

constexpr int kBadUsage = 2, kInternal = 3;

// A browser outlives the server, and what it prints is of no interest here.
bool opens(const std::string& address) {
  std::string program = "xdg-open", argument = address;
  char* argv[] = {program.data(), argument.data(), nullptr};
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawnattr_init(&attributes);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    ::posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_RDWR, 0);
  sigset_t none;
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID);
  pid_t process = 0;
  const int error = ::posix_spawnp(&process, program.c_str(), &files, &attributes, argv, environ);
  ::posix_spawn_file_actions_destroy(&files);
  ::posix_spawnattr_destroy(&attributes);
  return error == 0;
}

// While one lives, SIGINT and SIGTERM end the server; a second one ends the program at once.
class EndsBySignal {
 public:
  explicit EndsBySignal(Server& server) {
    ::sigemptyset(&both_);
    ::sigaddset(&both_, SIGINT);
    ::sigaddset(&both_, SIGTERM);
    ::pthread_sigmask(SIG_BLOCK, &both_, nullptr);  // threads made from now on have it, too
    waiter_ = std::thread([this, &server] {
      int signal = 0;
      ::sigwait(&both_, &signal);
      if (is_over_) return;
      server.stop();
      ::sigwait(&both_, &signal);
      if (!is_over_) ::_exit(1);
    });
  }
  ~EndsBySignal() {
    is_over_ = true;
    ::pthread_kill(waiter_.native_handle(), SIGTERM);
    waiter_.join();
  }
  EndsBySignal(const EndsBySignal&) = delete;
  EndsBySignal& operator=(const EndsBySignal&) = delete;

 private:
  sigset_t both_{};
  std::atomic<bool> is_over_ = false;
  std::thread waiter_;
};

// Descriptors 0 to 2 must be taken, or a socket would take them, which jobs use as theirs.
void open_standard_files() {
  int fd = 0;
  while (fd >= 0 && fd <= STDERR_FILENO) fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (fd >= 0) ::close(fd);
}

// The words that `glasshead view` gives (apps/cli/view.cc), in this order.
enum Word { kName, kWeb, kPort, kSeconds, kMemory, kBody, kOpen, kFirstCase };

ServerOptions options_of(int argc, char** argv) {
  ServerOptions options;
  options.web = argv[kWeb];
  options.version = GLASSHEAD_VERSION;
  options.port = std::atoi(argv[kPort]);
  options.job.seconds = std::atoi(argv[kSeconds]);
  options.job.memory = std::strtoull(argv[kMemory], nullptr, 10) << 20;  // from MiB
  options.most_body = std::strtoull(argv[kBody], nullptr, 10) << 20;
  options.connection.body = std::chrono::seconds(std::atoi(argv[kSeconds]));
  options.connection.head = std::min(options.connection.head, options.connection.body);
  for (int n = kFirstCase; n < argc; ++n) {
    const std::vector<std::byte> text = read_bytes(argv[n]);
    options.cases.push_back({wire::address_name(std::filesystem::path(argv[n]).stem().string()),
                             {reinterpret_cast<const char*>(text.data()), text.size()}});
  }
  return options;
}

int run(int argc, char** argv) {
  if (argc < kFirstCase) {
    std::fputs("glasshead-view: glasshead view starts it\n", stderr);
    return kBadUsage;
  }
  open_standard_files();
  const ServerOptions options = options_of(argc, argv);
  Server server(options);
  const EndsBySignal ends(server);
  const std::string address =
      server.address(options.cases.empty() ? "" : options.cases.front().name);
  std::printf("%s\n", address.c_str());
  std::fflush(stdout);
  const bool is_open = argv[kOpen] != std::string("open") || opens(address);
  std::fputs(is_open ? "view: Ctrl-C ends it\n"
                     : "view: xdg-open was not found; open the address above. Ctrl-C ends it\n",
             stderr);
  server.run();
  return 0;
}

}  // namespace
}  // namespace glasshead::server

int main(int argc, char** argv) {
  using namespace glasshead::server;
  if (is_job(argc, argv)) return job_main(argc, argv);
  try {
    return run(argc, argv);
  } catch (const glasshead::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return kBadUsage;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "view: internal error: %s\n", error.what());
    return kInternal;
  }
}
