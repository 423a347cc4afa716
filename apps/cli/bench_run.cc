#include "cli/bench_run.h"

#include <algorithm>
#include <cmath>

#include "cli/bench_inputs.h"

namespace glasshead::cli {

struct BenchCall::State {
  BenchInputs inputs;
  const Context& context;
};

BenchCall::BenchCall(const BenchRow& row, const Context& context)
    : state_(new State{BenchInputs(row, context), context}) {}
BenchCall::~BenchCall() = default;

void BenchCall::run() { state_->inputs.run(state_->context); }

double BenchCall::error() {
  run();
  return state_->inputs.row().kind == BenchKind::backward ? state_->inputs.gradient_error()
                                                          : state_->inputs.output_error();
}

// Plain attention in f32 errs by some 1e-6 of the output, in f64 by some 1e-15; bf16, f16 and int8
// round the keys and values first, which is compared as it is stored and costs nothing more. A set
// that rounds to bf16 changes q, k, v and the weights by at most 2^-8 / sqrt(3) of themselves in
// the root mean square; each moves the output by as much, since scores of normal numbers have a
// variance of 1, and the four together by twice that. Twice again for the worst row.
double BenchCall::allowed_error() const {
  if (!state_->inputs.row().isa.empty()) return 4 * 0x1p-8 / std::sqrt(3.0);
  return state_->inputs.row().dtype == DType::f64 ? 1e-12 : 2e-5;
}

std::vector<MemoryRun> BenchCall::keys_and_values() const {
  return state_->inputs.keys_and_values();
}

double median(std::vector<double> numbers) {
  if (numbers.empty()) return 0;
  std::sort(numbers.begin(), numbers.end());
  const std::size_t n = numbers.size();
  return (numbers[(n - 1) / 2] + numbers[n / 2]) / 2;
}

double spread(std::vector<double> numbers) {
  if (numbers.size() < 2) return 0;
  const double middle = median(numbers);
  std::sort(numbers.begin(), numbers.end());
  const std::size_t n = numbers.size();
  return (numbers[3 * n / 4] - numbers[n / 4]) / middle;
}

BenchTimes measure(const BenchRow& row, BenchCall& call, Team& team, const Context& widest,
                   const BenchLimits& limits) {
  const auto clock = team.threads() == 1 ? cpu_seconds : wall_seconds;
  const bool is_decode = row.kind == BenchKind::decode || row.kind == BenchKind::decode_cache;
  const double once_begin = clock();
  call.run();
  const double once = std::max(1e-9, clock() - once_begin);
  const int calls = static_cast<int>(std::clamp(limits.seconds / once, 1.0, 1e6));
  // The peak beside a sample is measured for a quarter of its time, 2 ms at least.
  const double beside = std::clamp(once * calls / 4, 0.002, 0.02);
  const std::vector<MemoryRun> memory = call.keys_and_values();
  const int reads = static_cast<int>(std::clamp(0.25 * once * calls / once, 1.0, 1e4));
  BenchTimes times;
  std::vector<double> peaks, streams;
  for (int sample = 0; sample < limits.samples; ++sample) {
    peaks.push_back(peak_flops(team, widest, row.dtype, beside));
    if (is_decode) streams.push_back(stream_rate(team, memory, reads));
    const double begin = clock();
    for (int n = 0; n < calls; ++n) call.run();
    const double seconds = (clock() - begin) / calls;
    times.seconds.push_back(seconds);
    times.of_peak.push_back(row.flops() / seconds / peaks.back());
    if (is_decode) times.of_stream.push_back(row.bytes() / seconds / streams.back());
  }
  times.peak = median(peaks);
  times.stream = median(streams);
  return times;
}

}  // namespace glasshead::cli
