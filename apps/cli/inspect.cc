// glasshead inspect cpu: what this machine offers.
#include <memory>

#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "glasshead/cpu.h"
#include "glasshead/error.h"

namespace glasshead::cli {
namespace {

struct InspectArgs {
  std::string what;
  bool is_json = false;
};

std::string json_text(const Cpu& found) {
  nlohmann::ordered_json features = nlohmann::ordered_json::array();
  for (const CpuFeature& feature : found.features)
    features.push_back({{"name", feature.name}, {"supported", feature.is_supported}});
  const nlohmann::ordered_json json{{"architecture", found.architecture},
                                    {"model", found.model},
                                    {"cores", found.cores},
                                    {"features", features},
                                    {"kernel_sets", nlohmann::ordered_json::array()}};
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string names(const Cpu& found, bool is_supported) {
  std::string text;
  for (const CpuFeature& feature : found.features)
    if (feature.is_supported == is_supported)
      text += (text.empty() ? "" : " ") + std::string(feature.name);
  return text.empty() ? "none" : text;
}

std::string plain_text(const Cpu& found) {
  return "processor      " + (found.model.empty() ? "unknown" : found.model) + " (" +
         found.architecture + ")\n" + "cores          " + std::to_string(found.cores) +
         " that this process may use\n" + "has            " + names(found, true) + "\n" +
         "has not        " + names(found, false) + "\n" +
         "kernel sets    none in this version: attention runs on the transparent path, which needs "
         "no\n"
         "               instruction set and gives the same bits on every machine\n";
}

void run(const InspectArgs& args) {
  if (args.what != "cpu")
    throw OptionError(
        "inspect",
        {{args.what, "this version inspects the processor only: glasshead inspect cpu"}});
  const Cpu found = cpu();
  write_result("", args.is_json ? json_text(found) : plain_text(found));
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
