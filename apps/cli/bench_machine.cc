#include "cli/bench_machine.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <dirent.h>
#include <mutex>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

#include "glasshead/cpu.h"
#include "glasshead/error.h"
#include "glasshead/peak.h"

namespace glasshead::cli {
namespace {

void pin(long thread, int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(core), &set);
  // Where it is refused the thread stays where it was, and the spread tells.
  static_cast<void>(sched_setaffinity(static_cast<pid_t>(thread), sizeof set, &set));
}

long this_thread() { return syscall(SYS_gettid); }

// Eight sums that do not wait for each other, of 8 bytes each, so that loads alone are the limit.
std::uint64_t read_all(const void* data, std::size_t bytes) {
  const auto* words = static_cast<const std::uint64_t*>(data);
  const std::size_t count = bytes / sizeof *words;
  constexpr std::size_t kSums = 32;
  std::uint64_t sums[kSums] = {};
  std::size_t n = 0;
  for (; n + kSums <= count; n += kSums)
    for (std::size_t i = 0; i < kSums; ++i) sums[i] += words[n + i];
  for (; n < count; ++n) sums[0] += words[n];
  std::uint64_t total = 0;
  for (const std::uint64_t sum : sums) total += sum;
  return total;
}

std::atomic<std::uint64_t> sink{0};  // so that no read is left out

}  // namespace

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

index_t peak_resident() {
  index_t kilobytes = 0;
  if (std::FILE* status = std::fopen("/proc/self/status", "r")) {
    char line[256];
    long long found = 0;
    while (std::fgets(line, sizeof line, status) != nullptr)
      if (std::sscanf(line, "VmHWM: %lld", &found) == 1) kilobytes = found;
    std::fclose(status);
  }
  if (kilobytes == 0) {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    kilobytes = usage.ru_maxrss;
  }
  return kilobytes * 1024;
}

void reset_peak_resident() {
  if (std::FILE* file = std::fopen("/proc/self/clear_refs", "w")) {
    std::fputs("5", file);  // proc(5)
    std::fclose(file);
  }
}

std::vector<int> cores_of_this_process() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    for (int core = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(static_cast<std::size_t>(core), &set)) cores.push_back(core);
  }
  return cores;
}

void pin_threads(const std::vector<int>& cores, const std::vector<long>& mine) {
  if (cores.empty()) return;
  std::vector<long> others;
  if (DIR* tasks = opendir("/proc/self/task")) {
    while (const dirent* entry = readdir(tasks)) {
      const long number = std::atol(entry->d_name);
      if (number > 0 && number != this_thread() &&
          std::find(mine.begin(), mine.end(), number) == mine.end())
        others.push_back(number);
    }
    closedir(tasks);
  }
  std::sort(others.begin(), others.end());
  pin(this_thread(), cores[0]);
  for (std::size_t n = 0; n < others.size(); ++n) pin(others[n], cores[(n + 1) % cores.size()]);
}

struct Team::State {
  std::mutex mutex;
  std::condition_variable changed;
  const std::function<void(int)>* task = nullptr;
  std::uint64_t round = 0;
  std::size_t done = 0;
  bool is_over = false;
  std::atomic<int> waiting{0};  // workers that are awake and wait for the last
  std::vector<std::thread> threads;
  std::vector<long> numbers;

  void begin_together(int count) {
    waiting.fetch_add(1);
    while (waiting.load() < count) std::this_thread::yield();  // more threads than cores
  }
};

Team::Team(const std::vector<int>& cores, int threads) : state_(std::make_unique<State>()) {
  State& state = *state_;
  state.numbers.resize(static_cast<std::size_t>(threads - 1));
  if (!cores.empty()) pin(this_thread(), cores[0]);
  for (int worker = 1; worker < threads; ++worker) {
    state.threads.emplace_back([&state, &cores, worker, threads] {
      if (!cores.empty())
        pin(this_thread(), cores[static_cast<std::size_t>(worker) % cores.size()]);
      std::unique_lock lock(state.mutex);
      state.numbers[static_cast<std::size_t>(worker - 1)] = this_thread();
      ++state.done;
      state.changed.notify_all();
      for (std::uint64_t seen = 0;;) {
        state.changed.wait(lock, [&] { return state.is_over || state.round != seen; });
        if (state.is_over) return;
        seen = state.round;
        const auto* task = state.task;
        lock.unlock();
        state.begin_together(threads);
        (*task)(worker);
        lock.lock();
        ++state.done;
        state.changed.notify_all();
      }
    });
  }
  std::unique_lock lock(state.mutex);
  state.changed.wait(lock, [&] { return state.done == state.threads.size(); });
}

Team::~Team() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->is_over = true;
  }
  state_->changed.notify_all();
  for (std::thread& thread : state_->threads) thread.join();
}

int Team::threads() const { return static_cast<int>(state_->threads.size()) + 1; }
std::vector<long> Team::thread_numbers() const { return state_->numbers; }

void Team::run(const std::function<void(int)>& f) {
  State& state = *state_;
  if (state.threads.empty()) return f(0);
  {
    const std::lock_guard lock(state.mutex);
    state.task = &f;
    state.done = 0;
    state.waiting = 0;
    ++state.round;
  }
  state.changed.notify_all();
  state.begin_together(threads());
  f(0);
  std::unique_lock lock(state.mutex);
  state.changed.wait(lock, [&] { return state.done == state.threads.size(); });
}

double peak_flops(Team& team, const Context& widest, DType type, double seconds) {
  constexpr index_t kRounds = 20'000;  // some tens of microseconds between looks at the clock
  std::vector<double> rates(static_cast<std::size_t>(team.threads()));
  const auto clock = team.threads() == 1 ? cpu_seconds : wall_seconds;
  team.run([&](int worker) {
    run_multiply_adds(widest, type, kRounds);
    const double start = clock();
    double used = 0, done = 0;
    while (used < seconds) {
      done += static_cast<double>(run_multiply_adds(widest, type, kRounds));
      used = clock() - start;
    }
    rates[static_cast<std::size_t>(worker)] = 2 * done / used;
  });
  double sum = 0;
  for (const double rate : rates) sum += rate;
  return sum;
}

Buffer::Buffer(std::size_t bytes) : bytes_(bytes) {
  constexpr std::size_t kHugePage = std::size_t{2} << 20;
  mapped_ = (bytes + 2 * kHugePage - 1) / kHugePage * kHugePage;
  void* memory = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    mapped_ = 0;
    throw IoError("bench", {{"memory", std::to_string(bytes) + " bytes are not to be had"}});
  }
  data_ = memory;
#ifdef MADV_HUGEPAGE
  madvise(memory, mapped_, MADV_HUGEPAGE);  // advice: ordinary pages are slower, not wrong
#endif
}

Buffer::Buffer(Buffer&& other) noexcept
    : data_(other.data_), bytes_(other.bytes_), mapped_(other.mapped_) {
  other.mapped_ = 0;
}

Buffer::~Buffer() {
  if (mapped_ > 0) munmap(data_, mapped_);
}

double stream_rate(Team& team, const std::vector<MemoryRun>& runs, int times) {
  const auto threads = static_cast<std::size_t>(team.threads());
  const auto clock = team.threads() == 1 ? cpu_seconds : wall_seconds;
  std::vector<double> used(threads);
  double bytes = 0;
  for (const MemoryRun& run : runs) bytes += static_cast<double>(run.bytes);
  team.run([&](int worker) {
    const auto part = static_cast<std::size_t>(worker);
    const double start = clock();
    std::uint64_t sum = 0;
    for (int n = 0; n < times; ++n) {
      for (const MemoryRun& run : runs) {
        constexpr std::size_t kLine = 64;
        const std::size_t begin = run.bytes * part / threads / kLine * kLine;
        const std::size_t end =
            part + 1 == threads ? run.bytes : run.bytes * (part + 1) / threads / kLine * kLine;
        sum += read_all(static_cast<const char*>(run.data) + begin, end - begin);
      }
    }
    sink += sum;
    used[part] = clock() - start;
  });
  return times * bytes / *std::max_element(used.begin(), used.end());
}

std::size_t larger_than_caches() {
  constexpr std::size_t kLeast = std::size_t{128} << 20, kMost = std::size_t{1} << 30;
  std::size_t cache = 0;
#ifdef _SC_LEVEL3_CACHE_SIZE
  const long found = sysconf(_SC_LEVEL3_CACHE_SIZE);
  if (found > 0) cache = static_cast<std::size_t>(found);
#endif
  return std::clamp(4 * cache, kLeast, kMost);
}

}  // namespace glasshead::cli
