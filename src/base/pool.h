// Threads that compute: the only ones the library starts. The caller takes part; a run inside a run
// goes on in its own thread; every task has the default floating-point environment, whatever the
// thread's was, and gives the thread its own back.
//
//   Pool pool(threads);
//   pool.run(items, [&](index_t item, int worker) { compute(item, scratch[worker]); });
//
// Tasks are noexcept: what can fail is checked before. In WebAssembly everything runs in the
// caller.
#pragma once

#include <functional>
#include <memory>

#include "glasshead/context.h"

namespace glasshead {

class Pool {
 public:
  // threads >= 1, the caller's included. With a host's parallel_for no thread is started.
  explicit Pool(int threads, ParallelFor host = nullptr);
  ~Pool();

  int workers() const;  // worker numbers are in [0, workers())

  // task(item, worker) for every item in [0, count): items are taken from one queue in ascending
  // order; no two tasks of the run that are at work at the same time have the same worker, and
  // worker < min(workers(), count): room for so many is enough. Returns when all are done.
  // Several threads may call run at once: each call's workers are its own.
  void run(index_t count, const std::function<void(index_t item, int worker)>& task) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace glasshead
