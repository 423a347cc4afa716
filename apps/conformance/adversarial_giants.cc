// Cases too large to store, described by n and a rule. Equal rows are one row with a stride of 0.
// Of the kernel sets only the first computes them: they ask for memory and for sums over many keys,
// and tests/kernels holds the sets to the same bits.
#include <algorithm>
#include <sys/resource.h>

#include "conformance/adversarial.h"
#include "glasshead/error.h"

namespace glasshead::conformance {
namespace {

using nlohmann::json;

constexpr float kZero = 0;
constexpr float kOne = 1;

// [1, 1, length, width], every entry the same.
ConstTensor<4> repeated(const float& value, index_t length, index_t width) {
  return {&value, DType::f32, {1, 1, length, width}, {0, 0, 0, 0}};
}

std::optional<Failure> close_to(const json& giant, double got, index_t row) {
  const Array expected{{1}, {number_of(giant.at("expected"))}};
  const double allowed = number_of(giant.at("tol_abs"));
  auto failure = compare("Y", {{1}, {got}}, expected,
                         {DType::f32, [allowed](std::size_t) { return allowed; }});
  if (failure) failure->index = {row};
  return failure;
}

// One row of causal attention over n keys of zeros, in f32. `width` is d_k and d_v.
std::vector<double> causal_row(const Engine& engine, index_t n, index_t row, index_t width) {
  AttentionOptions options;
  options.mask = Mask::causal();
  options.query_start = row;
  FileTensor y = zeros(DType::f32, {1, 1, 1, width});
  engine.attend(repeated(kZero, 1, width), repeated(kZero, n, width), repeated(kOne, n, width),
                writable<4>(y), options);
  return widened(y).values;
}

void run_half_ones(const json& giant, const Engine& engine, CaseResult& verdict) {
  const index_t n = giant.at("n");
  FileTensor v = zeros(DType::f32, {1, 1, n, 1});
  for (index_t j = index_t{1} << 24; j < n; ++j) {
    store_element(v.bytes.data(), DType::f32, j, 1);
  }
  FileTensor y = zeros(DType::f32, {1, 1, 1, 1});
  engine.attend(repeated(kZero, 1, 1), repeated(kZero, n, 1), v.view<4>("v"), writable<4>(y));
  verdict.add(close_to(giant, y.load(0), 0), engine.name + " f32");
}

void run_last_row(const json& giant, const Engine& engine, CaseResult& verdict) {
  const index_t n = giant.at("n");
  verdict.add(close_to(giant, causal_row(engine, n, n - 1, 1).front(), n - 1),
              engine.name + " f32");
}

// Kilobytes, the most that this process ever held.
index_t peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

// The matrix of scores would be 4 GiB; what is computed is 8 MiB.
constexpr index_t kMostGrowth = index_t{64} << 10;  // KiB

void run_whole(const json& giant, const Engine& engine, CaseResult& verdict) {
  const index_t n = giant.at("n"), width = 64;
  const std::string run = engine.name + " f32";
  AttentionOptions options;
  options.mask = Mask::causal();
  FileTensor y = zeros(DType::f32, {1, 1, n, width});
  const index_t before = peak_memory();
  engine.attend(repeated(kZero, n, width), repeated(kZero, n, width), repeated(kOne, n, width),
                writable<4>(y), options);
  const index_t growth = peak_memory() - before;
  if (growth > kMostGrowth)
    verdict.add(in_words("", "memory grew by " + std::to_string(growth) + " KiB, more than " +
                                 std::to_string(kMostGrowth)),
                run);
  for (index_t row = 0; row < n && verdict.outcome != Outcome::failed; ++row) {
    for (index_t d = 0; d < width; ++d)
      verdict.add(close_to(giant, y.load(row * width + d), row), run);
  }
}

// 2^35 multiplications one by one are too many for the readable path: the rows at the ends and
// around blocks.
void run_sampled_rows(const json& giant, const Engine& engine, CaseResult& verdict) {
  const index_t n = giant.at("n");
  for (const index_t row : {index_t{0}, index_t{1}, index_t{127}, index_t{128}, n / 2, n - 1}) {
    for (const double y : causal_row(engine, n, row, 64))
      verdict.add(close_to(giant, y, row), engine.name + " f32");
  }
}

void run_huge(const json& giant, const Engine& engine, CaseResult& verdict) {
  if (engine.is_fused())
    run_whole(giant, engine, verdict);
  else
    run_sampled_rows(giant, engine, verdict);
}

// The readable path where it is asked for, and the first of the fused ones.
std::vector<const Engine*> engines_for_giants(const Selection& selection) {
  std::vector<const Engine*> engines;
  bool has_fused = false;
  for (const Engine& engine : selection.engines) {
    if (engine.is_fused() && has_fused) continue;
    has_fused = has_fused || engine.is_fused();
    engines.push_back(&engine);
  }
  return engines;
}

}  // namespace

CaseResult run_giant(const json& giant, const Selection& selection) {
  CaseResult verdict = named(giant.at("name"));
  const bool is_huge = verdict.name == "gen_score_matrix_would_be_huge";
  const std::vector<const Engine*> engines = engines_for_giants(selection);
  try {
    for (const Engine* engine : engines) {
      if (verdict.name == "gen_two_pow_25_half_ones") {
        run_half_ones(giant, *engine, verdict);
      } else if (verdict.name == "gen_causal_1e6_equal") {
        run_last_row(giant, *engine, verdict);
      } else if (is_huge) {
        run_huge(giant, *engine, verdict);
      } else {
        return skipped(verdict.name, verdict.name + ": this program does not know its rule");
      }
    }
  } catch (const Error& error) {
    verdict.add_refusal(error);
  }
  if (is_huge && verdict.outcome == Outcome::passed && !engines.back()->is_fused())
    return skipped(verdict.name, verdict.name +
                                     ": the bound on memory is the fused path's; 6 rows were "
                                     "computed, all right");
  return verdict;
}

}  // namespace glasshead::conformance
