#include "cli/doctor_port.h"

#include "cli/command.h"
#include "cli/model_files.h"
#include "cli/values.h"
#include "glasshead/port.h"

namespace glasshead::cli {
namespace {

// The library names its arguments; whoever types a command knows the flags.
std::vector<Problem> in_flags(const PortArgs& args, std::vector<Problem> problems) {
  for (Problem& problem : problems) {
    if (problem.where == "names") {
      problem.where = "--names";
    } else if (problem.where == "ids" || problem.where == "segments" ||
               problem.where == "decoder_ids") {
      const bool is_given = problem.where == "ids" && (args.tokens || args.prompt);
      problem.where = !is_given     ? "--activations: " + problem.where
                      : args.tokens ? "--tokens"
                                    : "--prompt";
    } else if (problem.where == "activations") {
      problem.where = "--activations";
    } else {
      problem.where = "--activations: " + problem.where;
    }
  }
  return problems;
}

PortText given_text(const PortArgs& args) {
  PortText text;
  std::vector<Problem> problems;
  if (args.tokens && args.prompt)
    problems.push_back({"--prompt", "does not go with --tokens; the text is given in one way"});
  else if (args.tokens)
    text.ids = parse_integers("--tokens", *args.tokens, problems).value_or(std::vector<index_t>{});
  if (!problems.empty()) throw OptionError("doctor", std::move(problems));
  if (args.prompt) text.ids = ids_of(load_words(args.model), "--prompt", *args.prompt);
  return text;
}

}  // namespace

int run_port(const PortArgs& args) {
  PortOptions options;
  options.arithmetic = args.arithmetic;
  PortText text = given_text(args);
  if (!args.names.empty()) options.names = read_port_names(args.names);
  const NamedTensors activations = read_safetensors(args.activations);
  try {
    text = text_of(activations, std::move(text));
    if (text.ids.empty())
      throw OptionError("doctor", {{"--tokens",
                                    "missing; the file holds no `ids` or `input_ids`: give the ids "
                                    "that were read, or --prompt"}});
    // As programs choose Phi-3's positions: by the text's length.
    const Model model = Model::load(args.model, {.context = static_cast<index_t>(text.ids.size())});
    const PortReport report = diagnose_port(model, text, activations, options);
    write_result("", args.is_json ? port_json(report) + "\n" : port_text(report));
    return report.is_right() ? 0 : 1;
  } catch (const OptionError& error) {
    if (error.function() == "doctor") throw;
    throw OptionError("doctor", in_flags(args, error.problems()));
  } catch (const FormatError& error) {
    if (error.function() != "diagnose_port" && error.function() != "text_of") throw;
    throw FormatError("doctor", in_flags(args, error.problems()));
  }
}

}  // namespace glasshead::cli
