// A session and its taps as Python's threads may use them: a call computes without the
// interpreter's lock, and one at a time.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "glasshead/head_study.h"
#include "glasshead/model.h"
#include "python/native/array.h"

namespace glasshead::python {

// A mutex whose waiters are served in the order they came. A thread that writes a text takes it
// again for every token: of a std::mutex it would be the next owner nearly always, and who asks for
// the session's length meanwhile would wait for the text's end.
class Turns {
 public:
  void lock() {
    std::unique_lock<std::mutex> hold(mutex_);
    const std::uint64_t mine = last_++;
    moved_.wait(hold, [&] { return now_ == mine; });
  }
  void unlock() {
    {
      const std::lock_guard hold(mutex_);
      ++now_;
    }
    moved_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable moved_;
  std::uint64_t last_ = 0, now_ = 0;
};

template <class Kept>
struct Shared {
  explicit Shared(Kept made) : kept(std::move(made)) {}

  Turns turns;
  Kept kept;
};
using SharedTaps = Shared<Taps>;
using SharedStudy = Shared<HeadStudy>;

// What looks at a run; none where null.
struct Seen {
  Taps* taps = nullptr;
  HeadStudy* heads = nullptr;
};

// Turns are taken always in this order: the session's, the taps', the study's. So a call waits for
// the calls that came before it, each of one token where a text is being written.
class SharedSession {
 public:
  SharedSession(const Model& model, const SessionOptions& options, const Context& context)
      : session_(model, options, context) {}

  // work(session, seen): what it gives is the caller's own
  template <class Work>
  auto run(SharedTaps* taps, SharedStudy* study, const Work& work) {
    const nb::gil_scoped_release others_may_run;
    const std::lock_guard alone(turns_);
    const auto locked = [](auto* shared) {
      return shared == nullptr ? std::unique_lock<Turns>() : std::unique_lock(shared->turns);
    };
    const std::unique_lock<Turns> taps_alone = locked(taps), study_alone = locked(study);
    return work(session_, Seen{taps == nullptr ? nullptr : &taps->kept,
                               study == nullptr ? nullptr : &study->kept});
  }
  template <class Work>
  auto run(const Work& work) {
    return run(nullptr, nullptr, [&](Session& session, const Seen&) { return work(session); });
  }

 private:
  Turns turns_;
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
