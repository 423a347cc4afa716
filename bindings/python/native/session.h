// A session and its taps as Python's threads may use them: a call computes without the
// interpreter's lock, and one at a time.
#pragma once

#include <mutex>
#include <utility>
#include <vector>

#include "glasshead/model.h"
#include "python/native/array.h"

namespace glasshead::python {

struct SharedTaps {
  SharedTaps(std::vector<Tap> wanted, index_t sequence) : taps(std::move(wanted), sequence) {}

  std::mutex mutex;
  Taps taps;
};

// Always in this order: the session's, then the taps'.
class SharedSession {
 public:
  SharedSession(const Model& model, const SessionOptions& options, const Context& context)
      : session_(model, options, context) {}

  // work(session, taps): what it gives is the caller's own
  template <class Work>
  auto run(SharedTaps* shared, const Work& work) {
    const nb::gil_scoped_release others_may_run;
    const std::lock_guard alone(mutex_);
    if (shared == nullptr) return work(session_, static_cast<Taps*>(nullptr));
    const std::lock_guard taps_alone(shared->mutex);
    return work(session_, &shared->taps);
  }
  template <class Work>
  auto run(const Work& work) {
    return run(nullptr, [&](Session& session, Taps*) { return work(session); });
  }

 private:
  std::mutex mutex_;
  Session session_;
};

// Changes of a run, one after another; what is wrong with their arrays is told by the session that
// gets them.
struct Changes {
  std::vector<Change> made;
  std::vector<Problem> problems;
};

void add_writing(nb::module_& module);  // what follows SharedSession's class

}  // namespace glasshead::python
