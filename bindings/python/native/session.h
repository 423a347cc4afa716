// A session and its taps as Python's threads may use them: a call computes without the
// interpreter's lock, and one at a time.
#pragma once

#include <mutex>
#include <utility>
#include <vector>

#include "glasshead/head_study.h"
#include "glasshead/model.h"
#include "python/native/array.h"

namespace glasshead::python {

template <class Kept>
struct Shared {
  explicit Shared(Kept made) : kept(std::move(made)) {}

  std::mutex mutex;
  Kept kept;
};
using SharedTaps = Shared<Taps>;
using SharedStudy = Shared<HeadStudy>;

// What looks at a run; none where null.
struct Seen {
  Taps* taps = nullptr;
  HeadStudy* heads = nullptr;
};

// Mutexes are taken always in this order: the session's, the taps', the study's.
class SharedSession {
 public:
  SharedSession(const Model& model, const SessionOptions& options, const Context& context)
      : session_(model, options, context) {}

  // work(session, seen): what it gives is the caller's own
  template <class Work>
  auto run(SharedTaps* taps, SharedStudy* study, const Work& work) {
    const nb::gil_scoped_release others_may_run;
    const std::lock_guard alone(mutex_);
    const auto locked = [](auto* shared) {
      return shared == nullptr ? std::unique_lock<std::mutex>() : std::unique_lock(shared->mutex);
    };
    const std::unique_lock<std::mutex> taps_alone = locked(taps), study_alone = locked(study);
    return work(session_, Seen{taps == nullptr ? nullptr : &taps->kept,
                               study == nullptr ? nullptr : &study->kept});
  }
  template <class Work>
  auto run(const Work& work) {
    return run(nullptr, nullptr, [&](Session& session, const Seen&) { return work(session); });
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

void add_heads(nb::module_& module);
void add_writing(nb::module_& module);  // what follows SharedSession's class

}  // namespace glasshead::python
