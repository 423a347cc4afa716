// One client's connection, with an end to everything: how long its request may take to come and its
// answer to go, how long its head may be; and when the server ends, so does it.
#pragma once

#include <chrono>
#include <cstddef>
#include <sys/types.h>

namespace glasshead::server {

struct ConnectionLimits {
  std::chrono::milliseconds head{10'000};  // from its first byte, or from when it was made
  std::chrono::milliseconds body{60'000};
  std::chrono::milliseconds answer{60'000};
  std::size_t head_bytes = std::size_t{32} << 10;
};

class Connection {
 public:
  // The socket stays the caller's. `stop`: a descriptor that becomes readable when all must end.
  Connection(int socket, int stop, const ConnectionLimits& limits);

  // Bytes read or written; 0 at the end; -1 when it is over: too late, too long, stopped.
  ssize_t read(char* to, std::size_t size);
  ssize_t write(const char* from, std::size_t size);

  void begin_body();    // the head has been read
  void begin_answer();  // the rest of the time is the answer's
  bool is_too_late() const;
  bool is_stopped() const { return is_stopped_; }
  int socket() const { return socket_; }

  // Ends the answer, and reads what is still coming for a moment: closing with unread bytes would
  // take the answer from the client.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  bool wait(short events);

  int socket_, stop_;
  ConnectionLimits limits_;
  Clock::time_point deadline_;
  std::size_t head_left_;
  bool is_head_ = true, is_stopped_ = false;
};

}  // namespace glasshead::server
