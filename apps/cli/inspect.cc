// glasshead inspect: what this machine offers, or what a model is and costs.
#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/commands.h"
#include "cli/inspect_model.h"
#include "glasshead/context.h"
#include "glasshead/cpu.h"
#include "glasshead/error.h"
#include "glasshead/model_facts.h"

namespace glasshead::cli {
namespace {

struct InspectArgs {
  std::string what;
  std::optional<index_t> context;
  bool has_places = false, is_json = false;
};

std::vector<std::string> words(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

nlohmann::ordered_json to_json(const std::vector<KernelSetInfo>& sets) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const KernelSetInfo& set : sets)
    json.push_back(
        {{"name", set.name}, {"supported", set.is_supported}, {"lacks", words(set.lacks)}});
  return json;
}

std::string json_text(const Cpu& found, const Context& context) {
  nlohmann::ordered_json features = nlohmann::ordered_json::array();
  for (const CpuFeature& feature : found.features)
    features.push_back({{"name", feature.name}, {"supported", feature.is_supported}});
  const nlohmann::ordered_json json{{"architecture", found.architecture},
                                    {"model", found.model},
                                    {"cores", found.cores},
                                    {"features", features},
                                    {"kernel_sets", to_json(kernel_sets())},
                                    {"rounding_kernel_sets", to_json(rounding_kernel_sets())},
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

std::string lines_of(const char* label, const std::vector<KernelSetInfo>& sets,
                     const Context& context) {
  std::string text;
  for (const KernelSetInfo& set : sets) {
    std::string name = set.name;
    name.resize(std::max<std::size_t>(name.size(), 11), ' ');
    text += (text.empty() ? label : "               ") + name + " " + state_of(set, context) + "\n";
  }
  return text;
}

std::string plain_text(const Cpu& found, const Context& context) {
  const std::string text =
      "processor      " + (found.model.empty() ? "unknown" : found.model) + " (" +
      found.architecture + ")\n" + "cores          " + std::to_string(found.cores) +
      " that this process may use\n" + "threads        " + std::to_string(context.threads()) +
      "\n" + "has            " + names(found, true) + "\n" + "has not        " +
      names(found, false) + "\n" + lines_of("kernel sets    ", kernel_sets(), context) +
      "The same bits come out of every kernel set, on any number of threads.\n";
  const std::string rounding = lines_of("by name alone  ", rounding_kernel_sets(), context);
  return text + rounding +
         (rounding.empty() ? "" : "These round for speed, never unasked: docs/same-bits.md.\n");
}

std::string cpu_report(bool is_json) {
  const Cpu found = cpu();
  const Context context;
  return is_json ? json_text(found, context) : plain_text(found, context);
}

// A word that is neither a file nor a name: perhaps a slip in a name.
std::string model_text(const InspectArgs& args) {
  try {
    return args.has_places ? places_report(args.what, args.is_json)
                           : model_report(args.what, args.context, args.is_json);
  } catch (const IoError& error) {
    if (args.what.find_first_of("/.") != std::string::npos) throw;
    std::vector<Problem> problems = error.problems();
    const std::string meant = nearest(args.what, known_models());
    problems[0].what += meant.empty() ? "; glasshead inspect models lists the names that need none"
                                      : "; did you mean " + meant + "?";
    throw IoError("inspect", std::move(problems));
  }
}

void run(const InspectArgs& args) {
  const bool is_model = args.what != "cpu" && args.what != "families" && args.what != "models";
  if (args.has_places && !is_model)
    throw OptionError("inspect", {{"--places", args.what + " has none; a model has"}});
  if (args.has_places && args.context)
    throw OptionError("inspect", {{"--context", "says what the costs are for; --places has none"}});
  if (args.what == "cpu")
    write_result("", cpu_report(args.is_json));
  else if (args.what == "families")
    write_result("", families_report(args.is_json));
  else if (args.what == "models")
    write_result("", models_report(args.is_json));
  else
    write_result("", model_text(args));
}

void add(CLI::App& command, int&) {
  auto args = std::make_shared<InspectArgs>();
  command
      .add_option(
          "what", args->what,
          "What to inspect: cpu, families (of models that can be loaded), models (published "
          "configurations that are known by name), one of these names, or a model: a "
          "directory with config.json, a .safetensors or .gguf file")
      ->required()
      ->type_name("cpu|families|models|FILE");
  command
      .add_option("--context", args->context,
                  "How many tokens the costs are for (default: what the model was made for)")
      ->type_name("N");
  command.add_flag("--places", args->has_places,
                   "The places of a run that glasshead run --tap may name, with their shapes");
  command.add_flag("--json", args->is_json, "Print JSON");
  command.callback([args] { run(*args); });
}

}  // namespace

const Command kInspect{
    "inspect", "Show what a model is and costs, or what this machine offers",
    "# a model's family, parameters, heads, windows and memory\n"
    "glasshead inspect SmolLM2-135M-Instruct.Q4_1.gguf\n"
    "# what a context of 4,096 tokens costs a published model, without its files\n"
    "glasshead inspect llama-2-70b --context 4096\n"
    "# which numbers of a run can be saved\n"
    "glasshead inspect gpt2 --places\n"
    "# the processor's instruction sets and the kernel sets that can run on it\n"
    "glasshead inspect cpu\n"
    "# the same for scripts\n"
    "glasshead inspect cpu --json\n",
    add};

}  // namespace glasshead::cli
