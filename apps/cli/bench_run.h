// One row of the benchmark: its numbers, the check against f64, its times.
//
//   BenchCall call(row, context);
//   const double error = call.error();              // before anything is timed
//   const BenchTimes times = measure(row, call, team, limits);
#pragma once

#include <memory>
#include <vector>

#include "cli/bench_machine.h"
#include "cli/bench_rows.h"

namespace glasshead::cli {

// Inputs, standard normal from one seed, and the call that is timed.
class BenchCall {
 public:
  BenchCall(const BenchRow& row, const Context& context);
  ~BenchCall();
  BenchCall(const BenchCall&) = delete;
  BenchCall& operator=(const BenchCall&) = delete;

  void run();
  // Of the worst sampled row: the root mean square of its difference from attend_transparent in f64
  // on the same numbers, over that of the right answer. NaN or inf where something isn't finite.
  // (Gradients: of sampled rows of dq, dk and dv together, from f64 weights.)
  double error();
  // What is allowed: several times what rounding gives, less than any mistake.
  double allowed_error() const;
  // Keys and values, where they stand: what a decode step must read.
  std::vector<MemoryRun> keys_and_values() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct BenchTimes {
  std::vector<double> seconds;    // of one call, each sample
  std::vector<double> of_peak;    // its multiply-adds over the processor's, measured beside it
  std::vector<double> of_stream;  // its bytes over those of reading them; empty: not a decode row
  double peak = 0, stream = 0;    // medians of what stood beside it
};

struct BenchLimits {
  int samples = 12;
  double seconds = 0.02;  // a sample is as many calls as take that long
};

double median(std::vector<double> numbers);
double spread(std::vector<double> numbers);  // between the quartiles, over the median

BenchTimes measure(const BenchRow& row, BenchCall& call, Team& team, const Context& widest,
                   const BenchLimits& limits);

}  // namespace glasshead::cli
