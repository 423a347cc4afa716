// glasshead bench: speed as a share of what the machine can do.
#include <cstdio>
#include <memory>

#include "cli/bench_machine.h"
#include "cli/bench_model.h"
#include "cli/bench_report.h"
#include "cli/bench_rows.h"
#include "cli/bench_run.h"
#include "cli/command.h"
#include "cli/values.h"
#include "glasshead/attend_plan.h"
#include "glasshead/cpu.h"
#include "glasshead/error.h"

namespace glasshead::cli {
namespace {

struct BenchArgs {
  std::string rows, isa, json, svg, threads, model;
  bool is_quick = false, has_growth = false, is_list = false;
};

void say(const std::string& text) {
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
}

void show(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

// 1 and every core; or the list that was given.
std::vector<int> threads_of(const BenchArgs& args) {
  std::vector<int> threads;
  if (args.threads.empty()) {
    threads = {1};
    const int cores = cpu().cores;
    for (int n = 2; n < cores; n *= 2) threads.push_back(n);
    if (cores > 1) threads.push_back(cores);
    return threads;
  }
  std::vector<Problem> problems;
  std::string_view left = args.threads;
  while (true) {
    const std::size_t end = std::min(left.find(','), left.size());
    const std::string word(left.substr(0, end));
    const bool is_number = !word.empty() && word.size() < 5 &&
                           word.find_first_not_of("0123456789") == std::string::npos;
    const int n = is_number ? std::stoi(word) : 0;
    if (n < 1 || n > 1024)
      problems.push_back({"--threads", "found '" + word +
                                           "'; numbers from 1 to 1024 with commas "
                                           "between them are needed"});
    threads.push_back(n);
    if (end == left.size()) break;
    left.remove_prefix(end + 1);
  }
  if (!problems.empty()) throw OptionError("bench", std::move(problems));
  return threads;
}

std::vector<BenchRow> rows_of(const BenchArgs& args) {
  std::vector<BenchRow> rows;
  for (BenchRow& row : bench_rows(args.is_quick))
    if (row.name.find(args.rows) != std::string::npos) rows.push_back(std::move(row));
  if (rows.empty())
    throw OptionError("bench", {{"--rows", "no row's name contains '" + args.rows +
                                               "'; glasshead bench --list prints them"}});
  return rows;
}

// Its own rows measure a set that rounds, against its own peak and within its own error.
void check_isa(const std::string& isa) {
  for (const KernelSetInfo& set : rounding_kernel_sets())
    if (set.name == isa)
      throw OptionError("bench", {{"--isa", isa +
                                                " rounds, and is measured by rows of its own: "
                                                "glasshead bench --rows " +
                                                isa}});
}

BenchMachine machine_of(const Context& context, const Context& widest) {
  const Cpu found = cpu();
  return {found.model.empty() ? found.architecture : found.model,
          context.isa(),
          context.why_isa(),
          widest.isa(),
          found.cores,
          {}};
}

// The best supported set: the peak is the machine's, whatever set is measured.
std::string widest_set() {
  for (const KernelSetInfo& set : kernel_sets())
    if (set.is_supported) return set.name;
  return "scalar";
}

BenchMachine::Limits limits_of(Team& team, const Context& widest, bool is_quick) {
  const double seconds = is_quick ? 0.01 : 0.2;
  const Buffer memory(larger_than_caches());
  auto* bytes = static_cast<unsigned char*>(memory.data());
  for (std::size_t n = 0; n < memory.bytes(); n += 64) bytes[n] = 1;  // pages that exist
  BenchMachine::Limits limits;
  limits.threads = team.threads();
  limits.f32 = peak_flops(team, widest, DType::f32, seconds);
  limits.f64 = peak_flops(team, widest, DType::f64, seconds);
  limits.stream = stream_rate(team, {{memory.data(), memory.bytes()}}, is_quick ? 1 : 4);
  return limits;
}

BenchResult measure_row(const BenchRow& row, const Context& context, const Context& widest,
                        Team& team, const std::vector<int>& cores, bool is_quick) {
  say("  " + row.name + ", " + std::to_string(team.threads()) + " thread(s)\n");
  BenchResult result;
  result.row = row;
  result.threads = team.threads();
  BenchCall call(row, context);
  result.error = call.error();  // also starts the library's threads
  result.allowed_error = call.allowed_error();
  result.is_right = result.error <= result.allowed_error;  // NaN is not
  pin_threads(cores, team.thread_numbers());
  const BenchLimits limits = is_quick ? BenchLimits{3, 0.002} : BenchLimits{};
  if (result.is_right) result.times = measure(row, call, team, widest, limits);
  return result;
}

// One length after another, so that the process's peak is each one's own.
std::vector<BenchGrowth> measure_growth(const Context& context, bool is_quick) {
  std::vector<BenchGrowth> growth;
  for (index_t n = 1024; n <= (is_quick ? 2048 : 131072); n *= 2) {
    say("  growth, n " + std::to_string(n) + "\n");
    BenchGrowth at;
    at.n = n;
    const std::array<index_t, 4> shape{1, 1, n, 64};
    std::vector<Tensor<float, 4>> tensors;
    for (int t = 0; t < 4; ++t) {
      tensors.emplace_back(shape);
      for (index_t e = 0; e < n * shape[3]; ++e)
        tensors.back().data()[e] = static_cast<float>((e * 37 + t) % 101 - 50) / 50;
    }
    const auto view = [&](std::size_t t) {
      return ConstTensor<4>(tensors[t].data(), DType::f32, shape, row_major<4>(shape));
    };
    AttentionOptions options;
    options.mask = Mask::causal();
    at.given = 4 * n * shape[3] * 4;
    at.scratch = plan_attend(view(0), view(1), view(2), options, context).scratch_bytes;
    at.flops = 2.0 * static_cast<double>(n) * static_cast<double>(n + 1) * 64;
    reset_peak_resident();
    const index_t before = peak_resident();
    const double begin = wall_seconds();
    attend(view(0), view(1), view(2), {tensors[3].data(), DType::f32, shape, row_major<4>(shape)},
           options, {}, context);
    at.seconds = wall_seconds() - begin;
    at.held = peak_resident() - before;
    growth.push_back(at);
  }
  return growth;
}

int run_model(const BenchArgs& args) {
  const std::vector<int> threads = threads_of(args);
  const std::vector<int> cores = cores_of_this_process();
  const Context widest({.isa = widest_set(), .threads = 1, .parallel_for = {}});
  const Context context({.isa = args.isa, .threads = 1, .parallel_for = {}});
  BenchMachine machine = machine_of(context, widest);  // before threads are pinned
  BenchModelReport report =
      measure_model({args.model, args.isa, threads, args.is_quick}, widest, cores, [&](Team& team) {
        say(args.model + ", " + std::to_string(team.threads()) + " thread(s)\n");
        machine.limits.push_back(limits_of(team, widest, args.is_quick));
      });
  report.machine = std::move(machine);
  show(machine_text(report.machine) + model_text(report));
  if (!args.json.empty())
    write_for("bench", "--json", [&] { write_result(args.json, model_json(report)); });
  return 0;
}

int run(const BenchArgs& args) {
  std::vector<Problem> problems;
  need_writable("--json", args.json, problems);
  need_writable("--svg", args.svg, problems);
  if (!problems.empty()) throw IoError("bench", std::move(problems));
  if (!args.model.empty()) return run_model(args);
  const std::vector<BenchRow> rows = rows_of(args);
  if (args.is_list) {
    std::string names;
    for (const BenchRow& row : rows) names += row.name + "\n";
    write_result("", names);
    return 0;
  }
  check_isa(args.isa);
  const std::vector<int> threads = threads_of(args);
  const std::vector<int> cores = cores_of_this_process();
  const Context widest({.isa = widest_set(), .threads = 1, .parallel_for = {}});
  BenchReport report;
  report.is_quick = args.is_quick;
  bool is_right = true;
  for (const int count : threads) {
    const Context context({.isa = args.isa, .threads = count, .parallel_for = {}});
    if (report.machine.cpu.empty()) report.machine = machine_of(context, widest);
    Team team(cores, count);
    say("limits of the machine, " + std::to_string(count) + " thread(s)\n");
    report.machine.limits.push_back(limits_of(team, widest, args.is_quick));
    BenchMachine now = report.machine;
    now.limits = {report.machine.limits.back()};
    show((count == threads.front() ? "" : "\n") + machine_text(now));
    std::string group;
    for (const BenchRow& row : rows) {
      if (row.group != group) show(table_head(row.group));
      group = row.group;
      if (row.isa.empty()) {
        report.results.push_back(measure_row(row, context, widest, team, cores, args.is_quick));
      } else {
        const Context own({.isa = row.isa, .threads = count, .parallel_for = {}});
        report.results.push_back(measure_row(row, own, own, team, cores, args.is_quick));
      }
      is_right = is_right && report.results.back().is_right;
      show(table_line(report.results.back()));
    }
    if (args.has_growth && count == threads.back()) {
      report.growth = measure_growth(context, args.is_quick);
      show(growth_text(report.growth));
    }
  }
  if (!args.json.empty())
    write_for("bench", "--json", [&] { write_result(args.json, to_json_text(report)); });
  if (!args.svg.empty())
    write_for("bench", "--svg", [&] { write_result(args.svg, to_svg(report)); });
  return is_right ? 0 : 1;
}

void add(CLI::App& command, int& exit_code) {
  auto args = std::make_shared<BenchArgs>();
  CLI::Option* const model =
      command
          .add_option("--model", args->model,
                      "Instead: reading and writing tokens with this model, a directory or .gguf "
                      "file; loading, and memory")
          ->type_name("MODEL");
  command.add_option("--rows", args->rows, "Only rows whose name contains this")
      ->type_name("TEXT")
      ->excludes(model);
  command.add_flag("--list", args->is_list, "Print the names of the rows, measure nothing")
      ->excludes(model);
  command
      .add_option("--threads", args->threads,
                  "How many threads, one number or several: 1,2,4 (otherwise 1, 2, 4 ... all)")
      ->type_name("N,...");
  command.add_option("--isa", args->isa, "The kernel set (glasshead inspect cpu lists them)")
      ->type_name("NAME");
  command.add_flag("--quick", args->is_quick,
                   "A few small rows and few runs: to see that it works, not how fast it is");
  command
      .add_flag("--growth", args->has_growth,
                "Also time and memory of causal attention over 1,024 to 131,072 tokens")
      ->excludes(model);
  command.add_option("--json", args->json, "Write everything that was measured")->type_name("FILE");
  command.add_option("--svg", args->svg, "Write a plot of the shares")
      ->type_name("FILE")
      ->excludes(model);
  command.callback([args, &exit_code] { exit_code = run(*args); });
}

}  // namespace

const Command kBench{"bench",
                     "Measure attention, or a model, as a share of what this machine can do",
                     "# every row, on one thread and on all\n"
                     "glasshead bench --json bench.json --svg bench.svg\n"
                     "# decoding on two threads\n"
                     "glasshead bench --rows decode --threads 2\n"
                     "# tokens a second of a model\n"
                     "glasshead bench --model stories260K\n"
                     "# how time and memory grow to 131,072 tokens\n"
                     "glasshead bench --rows causal-n2048-d64 --threads 1 --growth\n",
                     add};

}  // namespace glasshead::cli
