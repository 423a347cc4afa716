#include "glasshead/context.h"

#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/context_impl.h"
#include "glasshead/cpu.h"
#include "glasshead/error.h"
#include "kernels/select.h"

namespace glasshead {
namespace {

// A variable of the environment for as long as it lives; null: not set.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    set(value);
  }
  ~Variable() { set(before_ ? before_->c_str() : nullptr); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  void set(const char* value) const {
    if (value != nullptr)
      ::setenv(name_, value, 1);
    else
      ::unsetenv(name_);
  }

  const char* name_;
  std::optional<std::string> before_;
};

// Whatever the tests are run under.
class Contexts : public testing::Test {
 private:
  Variable isa_{"GLASSHEAD_ISA", nullptr};
  Variable threads_{"GLASSHEAD_THREADS", nullptr};
};

std::vector<Problem> problems_of(const ContextOptions& options) {
  try {
    const Context context(options);
  } catch (const OptionError& e) {
    EXPECT_EQ(e.function(), "Context");
    return e.problems();
  }
  ADD_FAILURE() << "accepted";
  return {{"", ""}};
}

const KernelSetInfo* find(const std::vector<KernelSetInfo>& sets, bool is_supported) {
  for (const KernelSetInfo& set : sets)
    if (set.is_supported == is_supported) return &set;
  return nullptr;
}

TEST_F(Contexts, scalar_is_the_last_kernel_set_and_always_supported) {
  const std::vector<KernelSetInfo> sets = kernel_sets();
  ASSERT_FALSE(sets.empty());
  EXPECT_STREQ(sets.back().name, "scalar");
  EXPECT_TRUE(sets.back().is_supported);
  EXPECT_EQ(sets.back().lacks, "");
}

TEST_F(Contexts, what_a_kernel_set_needs_is_known_to_cpu) {
  for (const KernelSet* set : kernel_set_list())
    for (const char* const* needed = set->features; *needed != nullptr; ++needed) {
      bool is_known = false;
      for (const CpuFeature& feature : cpu().features)
        is_known |= std::strcmp(feature.name, *needed) == 0;
      EXPECT_TRUE(is_known) << set->name << " needs " << *needed;
    }
}

TEST_F(Contexts, the_first_supported_kernel_set_runs_on_every_core) {
  const Context context;
  EXPECT_STREQ(context.isa(), find(kernel_sets(), true)->name);
  EXPECT_EQ(context.why_isa(), "the first that this processor has");
  EXPECT_EQ(context.threads(), cpu().cores);
  EXPECT_EQ(context.impl().pool.workers(), cpu().cores);
}

TEST_F(Contexts, the_program_chooses) {
  for (const KernelSetInfo& set : kernel_sets()) {
    if (!set.is_supported) continue;
    const Context context({.isa = set.name, .threads = 3, .parallel_for = nullptr});
    EXPECT_STREQ(context.isa(), set.name);
    EXPECT_EQ(context.why_isa(), "asked for by the program");
    EXPECT_EQ(context.threads(), 3);
  }
}

TEST_F(Contexts, the_environment_chooses_where_the_program_does_not) {
  const Variable isa("GLASSHEAD_ISA", "scalar"), threads("GLASSHEAD_THREADS", "5");
  const Context context;
  EXPECT_STREQ(context.isa(), "scalar");
  EXPECT_EQ(context.why_isa(), "asked for by GLASSHEAD_ISA");
  EXPECT_EQ(context.threads(), 5);
  const std::string best = find(kernel_sets(), true)->name;
  const Context other({.isa = best, .threads = 2, .parallel_for = nullptr});
  EXPECT_EQ(other.isa(), best);
  EXPECT_EQ(other.threads(), 2);
}

TEST_F(Contexts, a_variable_set_to_nothing_is_not_set) {
  const Variable isa("GLASSHEAD_ISA", ""), threads("GLASSHEAD_THREADS", "");
  const Context context;
  EXPECT_EQ(context.why_isa(), "the first that this processor has");
  EXPECT_EQ(context.threads(), cpu().cores);
}

TEST_F(Contexts, an_unknown_kernel_set_is_refused_and_the_others_named) {
  const auto problems = problems_of({.isa = "AVX2", .threads = 0, .parallel_for = nullptr});
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0].where, "isa");
  EXPECT_NE(problems[0].what.find("there is no kernel set \"AVX2\""), std::string::npos);
  EXPECT_NE(problems[0].what.find("\"scalar\""), std::string::npos);
  const Variable isa("GLASSHEAD_ISA", "sse9");
  EXPECT_EQ(problems_of({})[0].where, "GLASSHEAD_ISA");
}

TEST_F(Contexts, a_kernel_set_that_the_processor_lacks_is_refused_with_what_is_missing) {
  const std::vector<KernelSetInfo> sets = kernel_sets();
  const KernelSetInfo* lacking = find(sets, false);
  if (lacking == nullptr) GTEST_SKIP() << "this processor has all of them";
  const auto problems = problems_of({.isa = lacking->name, .threads = 0, .parallel_for = nullptr});
  ASSERT_EQ(problems.size(), 1U);
  const std::string first = lacking->lacks.substr(0, lacking->lacks.find(' '));
  EXPECT_NE(problems[0].what.find("needs " + first), std::string::npos) << problems[0].what;
  EXPECT_NE(problems[0].what.find("\"scalar\""), std::string::npos);
}

// A set that no processor has: what select says of it needs no particular machine.
TEST_F(Contexts, missing_features_are_named_in_the_sets_order) {
  const char* const features[] = {"zmm9", "scalar_unit", nullptr};
  const KernelSet set{"future", "scalar", features, {}, {}};
  EXPECT_EQ(missing_features(set), (std::vector<std::string>{"zmm9", "scalar_unit"}));
}

TEST_F(Contexts, thread_counts_outside_1_to_1024_are_refused) {
  for (const int threads : {-1, 1025, -2147483647}) {
    const auto problems = problems_of({.isa = "", .threads = threads, .parallel_for = nullptr});
    ASSERT_EQ(problems.size(), 1U);
    EXPECT_EQ(problems[0].where, "threads");
    EXPECT_NE(problems[0].what.find("found " + std::to_string(threads)), std::string::npos);
    EXPECT_NE(problems[0].what.find("1 to 1024"), std::string::npos);
  }
  EXPECT_EQ(Context({.isa = "", .threads = 1024, .parallel_for = nullptr}).threads(), 1024);
}

TEST_F(Contexts, only_a_whole_number_is_a_thread_count) {
  for (const char* text : {"0", "-1", "1025", "two", "2x", " 2", "2.0", "+2", "0x2", "99999999999",
                           "18446744073709551618"}) {
    const Variable threads("GLASSHEAD_THREADS", text);
    const auto problems = problems_of({});
    ASSERT_EQ(problems.size(), 1U) << text;
    EXPECT_EQ(problems[0].where, "GLASSHEAD_THREADS");
    EXPECT_NE(problems[0].what.find("found \"" + std::string(text) + "\""), std::string::npos);
  }
}

TEST_F(Contexts, everything_that_is_wrong_is_said_at_once) {
  EXPECT_EQ(problems_of({.isa = "x", .threads = -3, .parallel_for = nullptr}).size(), 2U);
}

// Beyond width and lanes a table is pointers to functions.
template <class T>
void expect_whole(const Kernels<T>& kernels, const char* name) {
  EXPECT_GT(kernels.width, 0) << name;
  EXPECT_EQ(kernels.lanes % kernels.width, 0) << name;
  EXPECT_LE(kernels.lanes, kMaxLanes) << name;
  constexpr std::size_t kBegin = 2 * sizeof(index_t);
  void* entries[(sizeof kernels - kBegin) / sizeof(void*)];
  std::memcpy(entries, static_cast<const char*>(static_cast<const void*>(&kernels)) + kBegin,
              sizeof entries);
  for (const void* entry : entries) EXPECT_NE(entry, nullptr) << name;
}

TEST_F(Contexts, a_selected_set_has_every_kernel) {
  for (const KernelSet* set : kernel_set_list()) {
    const KernelSet whole = filled(*set);
    expect_whole(whole.f32, set->name);
    expect_whole(whole.f64, set->name);
  }
}

TEST_F(Contexts, a_set_without_kernels_runs_its_fallbacks) {
  const char* const none[] = {nullptr};
  const KernelSet scalar = filled(*find_kernel_set("scalar"));
  const KernelSet whole = filled({"empty", "scalar", none, {}, {}});
  EXPECT_STREQ(whole.name, "empty");
  expect_whole(whole.f32, "empty");
  EXPECT_EQ(whole.f32.lanes, scalar.f32.lanes);
  EXPECT_EQ(whole.f32.scores, scalar.f32.scores);
}

TEST_F(Contexts, panels_of_another_shape_are_not_mixed) {
  const char* const none[] = {nullptr};
  const KernelSet scalar = filled(*find_kernel_set("scalar"));
  KernelSet own{"own", "scalar", none, {}, {}};
  own.f32.width = scalar.f32.width;
  own.f32.lanes = scalar.f32.lanes + 1;
  const KernelSet whole = filled(own);
  EXPECT_EQ(whole.f32.scores, nullptr);
  EXPECT_EQ(whole.f32.exp, scalar.f32.exp);  // element by element: no panel
}

TEST_F(Contexts, a_context_moves_with_its_threads) {
  Context first({.isa = "scalar", .threads = 2, .parallel_for = nullptr});
  std::vector<int> times(100);
  const auto count = [&](const Context& context) {
    context.impl().pool.run(100,
                            [&](index_t item, int) { ++times[static_cast<std::size_t>(item)]; });
  };
  count(first);
  const Context second = std::move(first);
  count(second);
  EXPECT_EQ(times, std::vector<int>(100, 2));
}

TEST_F(Contexts, the_default_context_is_one) { EXPECT_EQ(&default_context(), &default_context()); }

}  // namespace
}  // namespace glasshead
