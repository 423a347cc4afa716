// `glasshead bench --model`: how fast a model is, as shares of what the machine can do.
//
//   BenchModelReport report = measure_model(options, say);
//   show(model_text(report));
//
// Reading a prompt and making vectors are bound by multiply-adds, writing token by token by how
// fast weights are read.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/bench_report.h"

namespace glasshead::cli {

struct BenchModelOptions {
  std::string path, isa;
  std::vector<int> threads = {1};
  bool is_quick = false;
};

// Some tokens in one go, or one after another.
struct BenchModelRow {
  std::string name;               // "prefill", "generation", "batch"
  index_t texts = 1, tokens = 0;  // tokens of each text
  double flops = 0, bytes = 0;    // of all of it: counted multiply-adds, weights read; 0: not
                                  // counted
  std::vector<double> seconds;    // each sample
  std::vector<double> share;      // of the peak or of the read rate, measured beside it
  int threads = 1;
};

struct BenchModelReport {
  BenchMachine machine;
  std::string path, family, kind;
  index_t parameters = 0, weights = 0;             // weights: bytes in memory
  index_t file_bytes = 0, cache_bytes = 0;         // cache: after generation
  std::vector<double> load_seconds, read_seconds;  // read: the files' bytes alone
  // The most that was resident above what was before: while loading, and from then on.
  index_t held_loading = 0, held_running = 0;
  std::vector<BenchModelRow> rows;
  bool is_quick = false;
};

// `begin` is called before the rows of each number of threads. The machine is the caller's to fill.
BenchModelReport measure_model(const BenchModelOptions& options, const Context& widest,
                               const std::vector<int>& cores,
                               const std::function<void(Team& team)>& begin);

std::string model_text(const BenchModelReport& report);
std::string model_json(const BenchModelReport& report);

}  // namespace glasshead::cli
