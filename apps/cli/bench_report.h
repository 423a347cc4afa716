// What the benchmark found, as a table, JSON and a bar plot.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cli/bench_rows.h"
#include "cli/bench_run.h"

namespace glasshead::cli {

struct BenchResult {
  BenchRow row;
  int threads = 1;
  double error = 0, allowed_error = 0;
  bool is_right = false;  // else `times` is empty: no speed of a wrong answer
  BenchTimes times;
};

struct BenchMachine {
  std::string cpu, isa, why_isa, widest;
  int cores = 1;
  // By number of threads, in the order of `threads`.
  struct Limits {
    int threads = 1;
    double f32 = 0, f64 = 0;  // operations a second
    double stream = 0;        // bytes a second
  };
  std::vector<Limits> limits;
};

// Length n, causal, one head, d 64.
struct BenchGrowth {
  index_t n = 0;
  double seconds = 0, flops = 0;             // of one call
  index_t given = 0, held = 0, scratch = 0;  // bytes: inputs and result, peak above them, planned
};

std::string table_head(const std::string& group);
std::string table_line(const BenchResult& result);
std::string machine_text(const BenchMachine& machine);
nlohmann::ordered_json machine_json(const BenchMachine& machine);
std::string growth_text(const std::vector<BenchGrowth>& growth);

struct BenchReport {
  BenchMachine machine;
  std::vector<BenchResult> results;
  std::vector<BenchGrowth> growth;
  bool is_quick = false;
};
std::string to_json_text(const BenchReport& report);
std::string to_svg(const BenchReport& report);

}  // namespace glasshead::cli
