// What the machine can do, measured while the kernels are: pinned threads, clocks, memory that is
// read as fast as it can be.
//
//   Team team(cores_of_this_process(), 2);              // two threads, a core each
//   team.run([&](int worker) { ... });                  // on both, the caller is worker 0
//   const double flops = peak_flops(team, widest, DType::f32, 0.005);
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "glasshead/context.h"
#include "glasshead/tensor.h"

namespace glasshead::cli {

double wall_seconds();
double cpu_seconds();  // of the calling thread
// Bytes, the most that this process held since it was reset; where the system can't reset it, ever.
index_t peak_resident();
void reset_peak_resident();

std::vector<int> cores_of_this_process();
// Pins the calling thread to a core, and the threads that a library has started to the ones after
// it, in the order of their numbers; `mine` are left alone. Does nothing where the system can't.
void pin_threads(const std::vector<int>& cores, const std::vector<long>& mine);

// Threads of the benchmark's own, each on its core.
class Team {
 public:
  Team(const std::vector<int>& cores, int threads);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int threads() const;
  // f(worker) on every thread at once: they begin together. Returns when all are done.
  void run(const std::function<void(int worker)>& f);
  std::vector<long> thread_numbers() const;  // the system's, of all but the caller

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Operations a second (a multiply-add is two) of all threads of the team together, over about
// `seconds`. One thread is timed by its own processor time, several by the clock.
double peak_flops(Team& team, const Context& widest, DType type, double seconds);

// Memory in huge pages where the system has them: a buffer of a decode step is larger than what
// ordinary pages map at once.
class Buffer {
 public:
  explicit Buffer(std::size_t bytes);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0, mapped_ = 0;
};

// Bytes a second at which the team reads these runs of memory from beginning to end, each thread a
// part, `times` over.
struct MemoryRun {
  const void* data;
  std::size_t bytes;
};
double stream_rate(Team& team, const std::vector<MemoryRun>& runs, int times);

// A size that no cache holds.
std::size_t larger_than_caches();

}  // namespace glasshead::cli
