#include "base/pool.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/float_environment.h"

#ifndef __wasm__
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>
#endif

namespace glasshead {
namespace {

using Task = std::function<void(index_t item, int worker)>;

thread_local bool is_in_task = false;  // of any pool: a run from here stays in this thread

class InTask {
 public:
  InTask() : was_in_task_(std::exchange(is_in_task, true)) {}
  ~InTask() { is_in_task = was_in_task_; }
  InTask(const InTask&) = delete;
  InTask& operator=(const InTask&) = delete;

 private:
  bool was_in_task_;
  DefaultFloatEnvironment environment_;
};

void take_items(std::atomic<index_t>& next, index_t count, const Task& task, int worker) {
  const InTask scope;
  for (;;) {
    const index_t item = next.fetch_add(1, std::memory_order_relaxed);
    if (item >= count) return;
    task(item, worker);
  }
}

void run_here(index_t count, const Task& task) {
  const InTask scope;
  for (index_t item = 0; item < count; ++item) task(item, 0);
}

void run_on_host(const ParallelFor& host, int threads, index_t count, const Task& task) {
  std::atomic<index_t> next{0};
  host(std::min<index_t>(threads, count),
       [&](index_t worker) { take_items(next, count, task, static_cast<int>(worker)); });
}

}  // namespace

#ifndef __wasm__

namespace {

// How long a thread looks on before it sleeps, in steps of `pause`: 12 us. Waking a sleeper costs
// the caller 4 us, and the sleeper starts 6 us later; one that looks on costs nothing and starts
// after 1 (2 cores of a Zen 4 server). So waiting costs at most about twice the better of both.
constexpr int kLooks = 500;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

template <class F>
bool look_for(const F& is_there) {
  for (int n = 0; n < kLooks; ++n) {
    if (is_there()) return true;
    pause();
  }
  return false;
}

// One call of run, alive in its caller's frame until no other thread is in it.
struct Job {
  const Task& task;
  index_t count;
  int most_workers;  // a slow starter must not become one too many
  std::atomic<index_t> next{0};
  int workers = 1;              // handed out so far, the caller's 0 among them; under the lock
  std::atomic<int> helpers{0};  // threads that are in it; changed under the lock

  bool is_open() const {
    return workers < most_workers && next.load(std::memory_order_relaxed) < count;
  }
};

// The pool's own threads and the calls they help. A thread that enters a job stays until its items
// are all taken, so it enters each at most once.
class Helpers {
 public:
  ~Helpers() {
    {
      const std::lock_guard lock(mutex_);
      is_ending_ = true;
      events_.fetch_add(1, std::memory_order_relaxed);
    }
    work_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  void help(Job& job) {
    const int wanted = job.most_workers - 1;
    int to_wake = 0;
    {
      const std::lock_guard lock(mutex_);
      const int started = start(wanted);
      jobs_.push_back(&job);
      events_.fetch_add(1, std::memory_order_release);
      to_wake = std::min(wanted - started - looking_, sleeping_);
    }
    for (; to_wake > 0; --to_wake) work_.notify_one();
  }

  // Nobody enters the job from here on; returns when those who did have left.
  void wait_for_end(Job& job) {
    {
      const std::lock_guard lock(mutex_);
      std::erase(jobs_, &job);
    }
    const auto is_empty = [&] { return job.helpers.load(std::memory_order_acquire) == 0; };
    if (look_for(is_empty)) return;
    std::unique_lock lock(mutex_);
    left_.wait(lock, is_empty);
  }

 private:
  int start(int wanted) {
    int started = 0;
    while (!is_short_ && threads_.size() < static_cast<std::size_t>(wanted)) {
      try {
        threads_.emplace_back([this] { live(); });
        ++started;
      } catch (const std::system_error&) {
        is_short_ = true;  // the system has no more threads: those there are do the work
      }
    }
    return started;
  }

  Job* open_job() const {  // the one with the fewest workers; under the lock
    Job* found = nullptr;
    for (Job* job : jobs_)
      if (job->is_open() && (found == nullptr || job->workers < found->workers)) found = job;
    return found;
  }

  void live() {
    std::unique_lock lock(mutex_);
    while (!is_ending_) {
      Job* job = open_job();
      if (job != nullptr) {
        work_on(*job, lock);
        continue;
      }
      const unsigned seen = events_.load(std::memory_order_relaxed);
      const auto is_new = [&] { return events_.load(std::memory_order_acquire) != seen; };
      ++looking_;
      lock.unlock();
      const bool is_there = look_for(is_new);
      lock.lock();
      --looking_;
      if (is_there) continue;
      ++sleeping_;
      work_.wait(lock, is_new);
      --sleeping_;
    }
  }

  // Afterwards the job may be gone: its caller waits for helpers == 0 alone.
  void work_on(Job& job, std::unique_lock<std::mutex>& lock) {
    const int worker = job.workers++;
    job.helpers.fetch_add(1, std::memory_order_relaxed);
    lock.unlock();
    take_items(job.next, job.count, job.task, worker);
    lock.lock();
    if (job.helpers.fetch_sub(1, std::memory_order_release) == 1) left_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable work_, left_;
  std::vector<Job*> jobs_;  // those that may have items to take
  std::vector<std::thread> threads_;
  int looking_ = 0, sleeping_ = 0;  // threads without a job
  bool is_short_ = false, is_ending_ = false;
  std::atomic<unsigned> events_{0};  // jobs that came, and the end
};

}  // namespace

struct Pool::State {
  int threads;
  ParallelFor host;
  Helpers helpers;
};

Pool::Pool(int threads, ParallelFor host)
    : state_(new State{.threads = threads, .host = std::move(host), .helpers = {}}) {}

void Pool::run(index_t count, const Task& task) const {
  if (count <= 0) return;
  if (is_in_task || state_->threads == 1 || count == 1) return run_here(count, task);
  if (state_->host) return run_on_host(state_->host, state_->threads, count, task);
  const auto most_workers = static_cast<int>(std::min<index_t>(state_->threads, count));
  Job job{.task = task, .count = count, .most_workers = most_workers};
  state_->helpers.help(job);
  take_items(job.next, count, task, 0);
  state_->helpers.wait_for_end(job);
}

#else

struct Pool::State {
  int threads;
  ParallelFor host;
};

Pool::Pool(int threads, ParallelFor host)
    : state_(new State{.threads = threads, .host = std::move(host)}) {}

void Pool::run(index_t count, const Task& task) const {
  if (count <= 0) return;
  if (is_in_task || !state_->host) return run_here(count, task);
  run_on_host(state_->host, state_->threads, count, task);
}

#endif

Pool::~Pool() = default;

int Pool::workers() const { return state_->threads; }

}  // namespace glasshead
