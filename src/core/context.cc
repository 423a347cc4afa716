#include "glasshead/context.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/fail.h"
#include "core/context_impl.h"
#include "glasshead/cpu.h"
#include "kernels/select.h"

namespace glasshead {
namespace {

constexpr int kMaxThreads = 1024;

// The only place that reads the environment. A variable that is set to nothing is not set.
std::string environment(const char* name) {
#ifdef __wasm__
  static_cast<void>(name);  // a module has none, and asking would need an import
  return "";
#else
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
#endif
}

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

std::string supported_names() {
  std::vector<std::string> names;
  for (const KernelSet* set : kernel_set_list())
    if (missing_features(*set).empty()) names.push_back(std::string("\"") + set->name + "\"");
  return joined(names, ", ");
}

struct Choice {
  const KernelSet* set = nullptr;
  std::string why;
};

Choice choose_isa(const std::string& asked, std::vector<Problem>& problems) {
  const char* where = "isa";
  Choice choice;
  std::string name = asked;
  if (!asked.empty()) {
    choice.why = "asked for by the program";
  } else {
    name = environment("GLASSHEAD_ISA");
    if (name.empty()) {
      for (const KernelSet* set : kernel_set_list())
        if (missing_features(*set).empty()) return {set, "the first that this processor has"};
    }
    where = "GLASSHEAD_ISA";
    choice.why = "asked for by GLASSHEAD_ISA";
  }
  choice.set = find_kernel_set(name);
  if (choice.set == nullptr) {
    problems.push_back({where, "there is no kernel set \"" + name +
                                   "\"; those of this build that this processor can run are " +
                                   supported_names()});
    return choice;
  }
  const std::vector<std::string> missing = missing_features(*choice.set);
  if (!missing.empty())
    problems.push_back({where, "the kernel set \"" + name + "\" needs " + joined(missing, ", ") +
                                   ", which this processor lacks; it can run " +
                                   supported_names()});
  return choice;
}

std::vector<KernelSetInfo> infos(const std::vector<const KernelSet*>& list) {
  std::vector<KernelSetInfo> sets;
  for (const KernelSet* set : list) {
    const std::vector<std::string> missing = missing_features(*set);
    sets.push_back({set->name, missing.empty(), joined(missing, " ")});
  }
  return sets;
}

// Decimal digits alone; 0 for anything else.
int whole_number(const std::string& text) {
  if (text.empty() || text.size() > std::strlen("1024")) return 0;
  int value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return 0;
    value = 10 * value + (c - '0');
  }
  return value;
}

int choose_threads(int asked, std::vector<Problem>& problems) {
  const std::string limits = "the number of threads is 1 to " + std::to_string(kMaxThreads);
  if (asked != 0) {
    if (asked < 0 || asked > kMaxThreads)
      problems.push_back({"threads", "found " + std::to_string(asked) + "; " + limits +
                                         ", or 0 for every core that this process may use"});
    return asked;
  }
  const std::string text = environment("GLASSHEAD_THREADS");
  if (text.empty()) return std::min(cpu().cores, kMaxThreads);
  const int threads = whole_number(text);
  if (threads < 1 || threads > kMaxThreads)
    problems.push_back({"GLASSHEAD_THREADS", "found \"" + text + "\"; " + limits});
  return threads;
}

}  // namespace

std::vector<KernelSetInfo> kernel_sets() { return infos(kernel_set_list()); }
std::vector<KernelSetInfo> rounding_kernel_sets() { return infos(rounding_set_list()); }

Context::Context(const ContextOptions& options) {
  std::vector<Problem> problems;
  Choice choice = choose_isa(options.isa, problems);
  const int threads = choose_threads(options.threads, problems);
  if (!problems.empty()) fail(ErrorKind::option, "Context", std::move(problems));
  impl_.reset(new Impl{.kernels = filled(*choice.set),
                       .why_isa = std::move(choice.why),
                       .pool = Pool(threads, options.parallel_for)});
}

Context::~Context() = default;
Context::Context(Context&&) noexcept = default;
Context& Context::operator=(Context&&) noexcept = default;

const char* Context::isa() const { return impl_->kernels.name; }
const std::string& Context::why_isa() const { return impl_->why_isa; }
int Context::threads() const { return impl_->pool.workers(); }

const Context& default_context() {
  // Never destroyed: what is destroyed after it may still compute, and a forked child has no
  // threads that could be joined at its end.
  static const Context* const context = new Context;
  return *context;
}

}  // namespace glasshead
