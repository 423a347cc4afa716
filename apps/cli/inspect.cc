// glasshead inspect cpu: what this machine offers.
#include <algorithm>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "glasshead/context.h"
#include "glasshead/cpu.h"
#include "glasshead/error.h"

namespace glasshead::cli {
namespace {

struct InspectArgs {
  std::string what;
  bool is_json = false;
};

std::vector<std::string> words(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

std::string json_text(const Cpu& found, const Context& context) {
  nlohmann::ordered_json features = nlohmann::ordered_json::array();
  for (const CpuFeature& feature : found.features)
    features.push_back({{"name", feature.name}, {"supported", feature.is_supported}});
  nlohmann::ordered_json sets = nlohmann::ordered_json::array();
  for (const KernelSetInfo& set : kernel_sets())
    sets.push_back(
        {{"name", set.name}, {"supported", set.is_supported}, {"lacks", words(set.lacks)}});
  const nlohmann::ordered_json json{{"architecture", found.architecture},
                                    {"model", found.model},
                                    {"cores", found.cores},
                                    {"features", features},
                                    {"kernel_sets", sets},
                                    {"isa", context.isa()},
                                    {"why_isa", context.why_isa()},
                                    {"threads", context.threads()}};
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string names(const Cpu& found, bool is_supported) {
  std::string text;
  for (const CpuFeature& feature : found.features)
    if (feature.is_supported == is_supported)
      text += (text.empty() ? "" : " ") + std::string(feature.name);
  return text.empty() ? "none" : text;
}

std::string state_of(const KernelSetInfo& set, const Context& context) {
  if (!set.is_supported) return "cannot run here: lacks " + set.lacks;
  if (std::string_view(set.name) == context.isa()) return "runs: " + context.why_isa();
  return "can run";
}

// Every set gives the same bits, so the choice is one of speed alone.
std::string plain_text(const Cpu& found, const Context& context) {
  std::string text = "processor      " + (found.model.empty() ? "unknown" : found.model) + " (" +
                     found.architecture + ")\n" + "cores          " + std::to_string(found.cores) +
                     " that this process may use\n" + "threads        " +
                     std::to_string(context.threads()) + "\n" + "has            " +
                     names(found, true) + "\n" + "has not        " + names(found, false) + "\n";
  const char* label = "kernel sets    ";
  for (const KernelSetInfo& set : kernel_sets()) {
    std::string name = set.name;
    name.resize(std::max<std::size_t>(name.size(), 8), ' ');
    text += label + name + " " + state_of(set, context) + "\n";
    label = "               ";
  }
  return text + "The same bits come out of every kernel set, on any number of threads.\n";
}

void run(const InspectArgs& args) {
  if (args.what != "cpu")
    throw OptionError(
        "inspect",
        {{args.what, "this version inspects the processor only: glasshead inspect cpu"}});
  const Cpu found = cpu();
  const Context context;
  write_result("", args.is_json ? json_text(found, context) : plain_text(found, context));
}

void add(CLI::App& command, int&) {
  auto args = std::make_shared<InspectArgs>();
  command.add_option("what", args->what, "What to inspect: cpu")->required()->type_name("cpu");
  command.add_flag("--json", args->is_json, "Print JSON");
  command.callback([args] { run(*args); });
}

}  // namespace

const Command kInspect{"inspect",
                       "Show what this machine offers: instruction sets, cores, kernel sets",
                       "# the processor's instruction sets and the kernel sets that can run on it\n"
                       "glasshead inspect cpu\n"
                       "# the same for scripts\n"
                       "glasshead inspect cpu --json\n",
                       add};

}  // namespace glasshead::cli
