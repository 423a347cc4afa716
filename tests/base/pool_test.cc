#include "base/pool.h"

#include <atomic>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#if defined(__linux__)
#include <pthread.h>
#endif

#include "base/float_environment.h"

namespace glasshead {
namespace {

// Every count is smaller than, equal to and larger than the number of threads in turn.
TEST(Pool, every_item_runs_once) {
  for (const int threads : {1, 2, 3, 8}) {
    const Pool pool(threads);
    for (const index_t count : {0, 1, 2, 3, 7, 8, 9, 1000}) {
      std::vector<std::atomic<int>> times(static_cast<std::size_t>(count));
      pool.run(count, [&](index_t item, int) { ++times[static_cast<std::size_t>(item)]; });
      for (const auto& n : times) EXPECT_EQ(n, 1);
    }
  }
}

TEST(Pool, a_negative_count_runs_nothing) {
  const Pool pool(2);
  pool.run(-1, [](index_t, int) { FAIL(); });
}

// Without a lock: each worker's numbers must be written by one thread at a time (TSan looks on,
// too).
TEST(Pool, two_tasks_at_the_same_time_have_two_workers) {
  const Pool pool(4);
  ASSERT_EQ(pool.workers(), 4);
  std::vector<std::atomic<int>> inside(4);
  std::vector<index_t> sums(4);
  for (int round = 0; round < 50; ++round)
    pool.run(100, [&](index_t item, int worker) {
      const auto w = static_cast<std::size_t>(worker);
      ASSERT_LT(w, sums.size());
      EXPECT_EQ(inside[w].fetch_add(1), 0);
      sums[w] += item;
      inside[w].fetch_sub(1);
    });
  index_t sum = 0;
  for (const index_t part : sums) sum += part;
  EXPECT_EQ(sum, 50 * 4950);
}

// Scratch is made for so many; the threads of a larger run before are still looking for work.
TEST(Pool, workers_never_outnumber_the_items) {
  const Pool pool(6);
  for (int round = 0; round < 200; ++round) {
    pool.run(60, [](index_t, int) {});
    pool.run(2, [](index_t, int worker) { EXPECT_LT(worker, 2); });
  }
}

// A task that waits for the other shows that both run at once.
TEST(Pool, as_many_items_run_at_once_as_there_are_threads) {
  const Pool pool(3);
  std::mutex mutex;
  std::condition_variable all_here;
  int here = 0;
  std::set<int> workers;
  pool.run(3, [&](index_t, int worker) {
    std::unique_lock lock(mutex);
    workers.insert(worker);
    ++here;
    all_here.notify_all();
    all_here.wait(lock, [&] { return here == 3; });
  });
  EXPECT_EQ(workers, (std::set<int>{0, 1, 2}));
}

TEST(Pool, the_caller_takes_part_as_worker_0) {
  const Pool pool(2);
  const std::thread::id caller = std::this_thread::get_id();
  for (int round = 0; round < 20; ++round)
    pool.run(64, [&](index_t, int worker) {
      EXPECT_EQ(worker == 0, std::this_thread::get_id() == caller);
    });
}

TEST(Pool, items_are_taken_in_ascending_order) {
  const Pool pool(1);
  index_t next = 0;
  pool.run(100, [&](index_t item, int) { EXPECT_EQ(item, next++); });
  const Pool two(2);
  std::vector<index_t> last(2, -1);
  two.run(1000, [&](index_t item, int worker) {
    EXPECT_GT(item, last[static_cast<std::size_t>(worker)]);
    last[static_cast<std::size_t>(worker)] = item;
  });
}

TEST(Pool, a_run_inside_a_run_stays_in_its_thread) {
  const Pool pool(3);
  const Pool other(3);
  std::atomic<int> total{0};
  pool.run(6, [&](index_t, int) {
    const std::thread::id here = std::this_thread::get_id();
    for (const Pool* inner : {&pool, &other})
      inner->run(5, [&](index_t, int worker) {
        EXPECT_EQ(std::this_thread::get_id(), here);
        EXPECT_EQ(worker, 0);
        ++total;
      });
  });
  EXPECT_EQ(total, 6 * 2 * 5);
}

TEST(Pool, several_callers_at_once_each_get_their_own_items_done) {
  const Pool pool(3);
  std::vector<std::thread> callers;
  std::vector<index_t> sums(4);
  for (std::size_t c = 0; c < sums.size(); ++c)
    callers.emplace_back([&, c] {
      for (int round = 0; round < 100; ++round) {
        std::vector<index_t> parts(3);  // by worker: shared with nobody else's run
        pool.run(
            20, [&](index_t item, int worker) { parts[static_cast<std::size_t>(worker)] += item; });
        for (const index_t part : parts) sums[c] += part;
      }
    });
  for (std::thread& caller : callers) caller.join();
  for (const index_t sum : sums) EXPECT_EQ(sum, 100 * 190);
}

// The host is a loop backwards: any order will do, and no thread is started.
TEST(Pool, a_host_lends_its_threads) {
  std::vector<index_t> asked;
  const Pool pool(4, [&](index_t count, const std::function<void(index_t)>& task) {
    asked.push_back(count);
    for (index_t n = count; n > 0; --n) task(n - 1);
  });
  EXPECT_EQ(pool.workers(), 4);
  std::vector<int> times(10);
  const std::thread::id caller = std::this_thread::get_id();
  pool.run(10, [&](index_t item, int worker) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    EXPECT_LT(worker, 4);
    ++times[static_cast<std::size_t>(item)];
  });
  EXPECT_EQ(times, std::vector<int>(10, 1));
  pool.run(3, [](index_t, int) {});
  EXPECT_EQ(asked, (std::vector<index_t>{4, 3}));  // tasks: never more than items
}

TEST(Pool, a_hosts_threads_work_at_once) {
  const Pool pool(3, [](index_t count, const std::function<void(index_t)>& task) {
    std::vector<std::thread> threads;
    for (index_t n = 0; n < count; ++n) threads.emplace_back([&task, n] { task(n); });
    for (std::thread& thread : threads) thread.join();
  });
  std::vector<index_t> parts(3);
  for (int round = 0; round < 20; ++round)
    pool.run(100,
             [&](index_t item, int worker) { parts[static_cast<std::size_t>(worker)] += item; });
  EXPECT_EQ(parts[0] + parts[1] + parts[2], 20 * 4950);
}

#if defined(__x86_64__)

constexpr unsigned kFlushToZero = 0x8000, kDenormalsAreZero = 0x0040;

// Half the smallest normal number, computed where the compiler can't.
float half_of_smallest() {
  volatile float smallest = std::numeric_limits<float>::min();
  return smallest / 2;
}

// A host that set flush-to-zero, as audio programs and some numeric libraries do.
TEST(Pool, tasks_keep_subnormals_and_the_caller_keeps_its_setting) {
  const unsigned before = __builtin_ia32_stmxcsr();
  const unsigned hosts = before | kFlushToZero | kDenormalsAreZero;
  for (const int threads : {1, 3}) {
    const Pool pool(threads);
    __builtin_ia32_ldmxcsr(hosts);
    const float flushed = half_of_smallest();
    std::vector<float> seen(64);
    pool.run(64,
             [&](index_t item, int) { seen[static_cast<std::size_t>(item)] = half_of_smallest(); });
    const unsigned after = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(before);
    EXPECT_EQ(flushed, 0.0F);  // the setting is what it says
    EXPECT_EQ(after & ~0x3FU, hosts & ~0x3FU);
    for (const float x : seen) EXPECT_EQ(x, 0x1p-127F);
  }
}

TEST(Pool, a_hosts_threads_compute_in_the_default_environment_and_keep_their_own) {
  unsigned after = 0;
  const Pool pool(2, [&](index_t count, const std::function<void(index_t)>& task) {
    std::thread lent([&] {
      const unsigned own = __builtin_ia32_stmxcsr() | kFlushToZero;
      __builtin_ia32_ldmxcsr(own);
      for (index_t n = 0; n < count; ++n) task(n);
      after = __builtin_ia32_stmxcsr();
    });
    lent.join();
  });
  pool.run(8, [](index_t, int) { EXPECT_EQ(half_of_smallest(), 0x1p-127F); });
  EXPECT_NE(after & kFlushToZero, 0U);
}

#endif

#if defined(__GLIBC__)

// Stacks larger than the address space: the system starts no thread.
TEST(Pool, where_the_system_has_no_threads_left_the_caller_does_the_work) {
  pthread_attr_t before, huge;
  ASSERT_EQ(pthread_getattr_default_np(&before), 0);
  ASSERT_EQ(pthread_getattr_default_np(&huge), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&huge, std::size_t{1} << 48), 0);
  ASSERT_EQ(pthread_setattr_default_np(&huge), 0);
  std::vector<int> times(10);
  {
    const Pool pool(4);
    pool.run(10, [&](index_t item, int worker) {
      EXPECT_EQ(worker, 0);
      ++times[static_cast<std::size_t>(item)];
    });
  }
  EXPECT_EQ(pthread_setattr_default_np(&before), 0);
  EXPECT_EQ(times, std::vector<int>(10, 1));
}

#endif

}  // namespace
}  // namespace glasshead
