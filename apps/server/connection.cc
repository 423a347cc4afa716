#include "server/connection.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <poll.h>
#include <sys/socket.h>

namespace glasshead::server {

using std::chrono::milliseconds;

Connection::Connection(int socket, int stop, const ConnectionLimits& limits)
    : socket_(socket),
      stop_(stop),
      limits_(limits),
      deadline_(Clock::now() + limits.head),
      head_left_(limits.head_bytes) {}

bool Connection::wait(short events) {
  while (!is_stopped_) {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline_ - Clock::now()).count();
    if (left <= 0) return false;
    std::array<pollfd, 2> waits{pollfd{socket_, events, 0}, pollfd{stop_, POLLIN, 0}};
    constexpr long kSlice = 60'000;  // milliseconds
    const int ready =
        ::poll(waits.data(), waits.size(), static_cast<int>(std::min(left + 1, kSlice)));
    if (ready < 0 && errno != EINTR) return false;
    if (ready <= 0) continue;
    if (waits[1].revents != 0)
      is_stopped_ = true;
    else
      return true;
  }
  return false;
}

ssize_t Connection::read(char* to, std::size_t size) {
  if (is_head_) {
    size = std::min(size, head_left_);
    if (size == 0) return -1;
  }
  while (true) {
    if (!wait(POLLIN)) return -1;
    const ssize_t n = ::recv(socket_, to, size, MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n > 0 && is_head_) head_left_ -= static_cast<std::size_t>(n);
    return n;
  }
}

ssize_t Connection::write(const char* from, std::size_t size) {
  while (true) {
    // What is being said when the server ends is said to its end, where the client listens.
    const ssize_t n = ::send(socket_, from, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n >= 0) return n;
    if (errno != EINTR && errno != EAGAIN) return -1;
    if (!wait(POLLOUT)) return -1;
  }
}

void Connection::begin_body() {
  is_head_ = false;
  deadline_ = Clock::now() + limits_.body;
}

void Connection::begin_answer() { deadline_ = Clock::now() + limits_.answer; }

bool Connection::is_too_late() const { return Clock::now() >= deadline_; }

void Connection::finish() {
  ::shutdown(socket_, SHUT_WR);
  constexpr milliseconds kMoment{1000};
  deadline_ = Clock::now() + kMoment;
  is_head_ = false;
  std::array<char, 16384> unread{};
  while (read(unread.data(), unread.size()) > 0) {
  }
}

}  // namespace glasshead::server
