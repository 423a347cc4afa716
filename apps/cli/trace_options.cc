// The options of `glasshead trace`: their declarations, and the table of what goes with what.
#include "cli/trace_options.h"

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/trace_model.h"
#include "doctor/mistakes.h"
#include "glasshead/error.h"
#include "wire/print.h"

namespace glasshead::cli {
namespace {

// What is shown: of the case itself, or one of the other views.
using View = unsigned;
constexpr View kSteps = 1;
constexpr View kExplain = 2;
constexpr View kDiff = 4;
constexpr View kByHand = 8;
constexpr View kSweep = 16;
constexpr View kMistake = 32;
constexpr View kMistakeList = 64;
constexpr View kGradients = 128;
constexpr View kCheck = 256;
constexpr View kCheckJson = 512;
constexpr View kList = 1024;
constexpr View kInteractive = 2048;
constexpr unsigned kOfCase =
    kSteps | kExplain | kDiff | kByHand | kMistake | kGradients | kCheck | kCheckJson;
constexpr unsigned kEdited = kOfCase | kMistakeList | kInteractive;
constexpr unsigned kOfRows = kSteps | kExplain | kDiff | kByHand | kMistake | kGradients;
constexpr unsigned kOfPrintedWeights = (kOfRows & ~kGradients) | kCheckJson;

using Format = unsigned;
constexpr Format kText = 1;
constexpr Format kMarkdown = 2;
constexpr Format kLatex = 4;
constexpr Format kHtml = 8;
constexpr Format kSvg = 16;
constexpr Format kCsv = 32;
constexpr Format kJson = 64;
constexpr Format kNpy = 128;
constexpr Format kSafetensors = 256;
constexpr unsigned kPages = kText | kMarkdown | kLatex | kHtml | kSvg | kCsv;
constexpr unsigned kAnyFormat = kPages | kJson | kNpy | kSafetensors;

// An option has an effect in these views, written in these formats; in views whose JSON holds every
// number whole, it has none there.
struct Effect {
  const char* option;
  unsigned views, formats;
  unsigned views_of_json;  // of `views`
};
constexpr Effect kEffects[] = {
    {"case", kEdited, kAnyFormat, kOfCase},
    {"--set", kEdited, kAnyFormat, kOfCase},
    {"--hide", kEdited, kAnyFormat, kOfCase},
    {"--mask", kEdited, kAnyFormat, kOfCase},
    {"--scale", kEdited, kAnyFormat, kOfCase},
    {"--remove-scale", kEdited, kAnyFormat, kOfCase},
    {"--empty-row", kEdited, kAnyFormat, kOfCase},
    {"--prompt", kEdited, kAnyFormat, kOfCase},
    {"--tokens", kEdited, kAnyFormat, kOfCase},
    {"--layer", kEdited, kAnyFormat, kOfCase},
    {"--cross", kEdited, kAnyFormat, kOfCase},
    {"--encoder", kEdited, kAnyFormat, kOfCase},
    {"--decoder-tokens", kEdited, kAnyFormat, kOfCase},
    {"--save-case", kEdited, kAnyFormat, kOfCase},
    {"--steps", kSteps | kCheckJson, kAnyFormat, kSteps},
    {"--query", kOfRows, kPages | kJson, kExplain},
    {"--head", kOfRows, kPages | kJson, kExplain},
    {"--decimals", kOfRows | kSweep | kCheckJson, kPages | kJson, kSteps | kExplain | kMistake},
    {"--full", kSteps | kExplain | kDiff | kMistake | kGradients | kCheckJson, kPages | kJson,
     kSteps | kExplain | kMistake},
    {"--percent", kOfPrintedWeights, kPages | kJson, kSteps | kExplain | kMistake},
    {"--round", kOfPrintedWeights, kPages | kJson, kSteps | kExplain | kMistake},
    {"--ascii", kOfRows | kSweep | kMistakeList | kList, kText, 0},
    {"--width", kOfRows | kSweep, kText, 0},
    {"--math", kOfRows | kSweep, kMarkdown, 0},
    {"--standalone", kOfRows | kSweep, kLatex, 0},
    {"--format", kOfRows | kSweep | kMistakeList | kInteractive, kAnyFormat, kOfRows | kSweep},
    {"--interactive", kInteractive, kHtml, 0},
    {"--web", kInteractive, kHtml, 0},
};

// --query and --head say which numbers of a model there are, before any view of them.
bool is_of_model(std::string_view option) { return option == "--query" || option == "--head"; }

View view_of(const TraceArgs& args) {
  if (args.list) return kList;
  if (!args.sweep.empty()) return kSweep;
  if (args.mistake == "list") return kMistakeList;
  // Of the other views the page has these two.
  const bool has_other = !args.check.empty() || args.explain || args.diff || args.gradients;
  if (args.interactive && !has_other) return kInteractive;
  if (!args.mistake.empty()) return kMistake;
  if (!args.by_hand.empty()) return kByHand;
  if (!args.check.empty()) return ends_with(args.check, ".json") ? kCheckJson : kCheck;
  if (args.explain) return kExplain;
  if (args.diff) return kDiff;
  return args.gradients ? kGradients : kSteps;
}

const char* words_of(View view) {
  switch (view) {
    case kSteps:
      return "the steps";
    case kExplain:
      return "--explain";
    case kDiff:
      return "--diff";
    case kByHand:
      return "--by-hand";
    case kSweep:
      return "--sweep";
    case kMistake:
      return "--mistake";
    case kMistakeList:
      return "--mistake list";
    case kGradients:
      return "--gradients";
    case kCheck:
      return "--check with a tensor";
    case kCheckJson:
      return "--check";
    case kList:
      return "--list";
    case kInteractive:
      return "--interactive";
    default:
      return "";
  }
}

unsigned bit_of(const std::string& format) {
  unsigned bit = 1;
  for (const char* name :
       {"text", "md", "latex", "html", "svg", "csv", "json", "npy", "safetensors"}) {
    if (format == name) return bit;
    bit *= 2;
  }
  return 0;
}

void add_edits(CLI::App& command, TraceArgs& args) {
  command
      .add_option("--set", args.set,
                  "Change a row, X[B]=1,1, or a number, W_Q[0,1]=2; may be given again")
      ->type_name("NAME[AT]=VALUES")
      ->allow_extra_args(false)
      ->group("Change the case");
  command
      .add_option(
          "--hide", args.hide,
          "Hide a key (its label, or its index from 0) from every query; may be given again")
      ->type_name("KEY")
      ->allow_extra_args(false)
      ->group("Change the case");
  command
      .add_option(
          "--mask", args.mask,
          "Replace the mask; L and R are earlier and later keys, N a number of keys, FILE booleans")
      ->type_name("none|causal|window:L,R|prefix:N|padding:N|rows:10/11|FILE")
      ->group("Change the case");
  command
      .add_option("--scale", args.scale,
                  "Replace the scale, 1/sqrt(d_k) unless the case says otherwise")
      ->type_name("S")
      ->group("Change the case")
      ->each([&args](const std::string&) { args.has_scale = true; });
  command.add_flag("--remove-scale", args.remove_scale, "Leave the scale out, as if it were 1")
      ->group("Change the case");
  command
      .add_option(
          "--empty-row", args.empty_row,
          "What to do with a query that sees no key: refuse (as most cases say), or give zeros")
      ->type_name("error|zero")
      ->check(one_of({"error", "zero"}))
      ->group("Change the case");
}

void add_views(CLI::App& command, TraceArgs& args) {
  command.add_option("--steps", args.steps, "Only these steps, by name: scores,weights")
      ->type_name("STEP,...")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->group("Choose what to see");
  command
      .add_option("--query", args.query,
                  "Only this query, by its label, or its index from 0; of a model: the token that "
                  "asks (default: the last; -1 counts from the end)")
      ->type_name("ROW")
      ->group("Choose what to see");
  command.add_option("--head", args.head, "Only this head, counted from 0; a model needs it")
      ->type_name("H")
      ->group("Choose what to see");
  const std::vector<CLI::Option*> modes{
      command.add_flag("--explain", args.explain,
                       "Derive each weight, from q and k to the last division"),
      command.add_flag("--diff", args.diff, "Show what the change moved, and what it did not"),
      command
          .add_option("--by-hand", args.by_hand,
                      "Round every intermediate to D decimals, as on paper; D,shift subtracts "
                      "the row maximum first")
          ->type_name("D[,shift]"),
      command
          .add_option(
              "--sweep", args.sweep,
              "Show how random scores spread as heads grow, and what scaling does (takes no case)")
          ->type_name("d_k=A..B"),
      command
          .add_option("--mistake", args.mistake,
                      "Make a classic mistake, beside the right run; list says what each does: " +
                          doctor::mistake_ids())
          ->type_name("ID[:PARAM]|list"),
      command.add_flag(
          "--gradients", args.gradients,
          "Show the gradients of the sum of out, and the size of each softmax's Jacobian"),
      command
          .add_option(
              "--check", args.check,
              "Compare with an earlier .json trace or a .npy of out; exit code 1 if it differs")
          ->type_name("FILE")};
  for (CLI::Option* mode : modes) {
    mode->group("Another view (one of them)");
    for (CLI::Option* other : modes)
      if (other != mode) mode->excludes(other);
  }
}

void add_model(CLI::App& command, TraceArgs& args) {
  const char* const group = "A head of a model";
  command.add_option("--prompt", args.prompt, "The text that the model reads")
      ->type_name("TEXT")
      ->group(group);
  command.add_option("--tokens", args.tokens, "The text as token ids: 1,403,407")
      ->type_name("IDS")
      ->group(group);
  command.add_option("--layer", args.layer, "The layer, counted from 0")
      ->type_name("L")
      ->group(group);
  command
      .add_flag("--cross", args.cross,
                "Of an encoder-decoder: cross-attention, over the text that the encoder read")
      ->group(group);
  command
      .add_flag("--encoder", args.encoder,
                "Of an encoder-decoder: a layer of the encoder (without it, of the decoder)")
      ->group(group);
  command
      .add_option(
          "--decoder-tokens", args.decoder_tokens,
          "Of an encoder-decoder: the ids that its decoder reads (default: the first alone)")
      ->type_name("IDS")
      ->group(group);
  command
      .add_option("--save-case", args.save_case,
                  "Also write the head as a case, for glasshead trace and glasshead view")
      ->type_name("FILE")
      ->group(group);
}

void add_printing(CLI::App& command, TraceArgs& args) {
  command.add_option("--decimals", args.decimals, "Digits after the point, 0 to 12 (default 4)")
      ->type_name("P")
      ->check(CLI::Range(0, wire::kMaxDecimals).description(""))
      ->group("Printing");
  command.add_flag("--full", args.full, "Print rows of more than 16 keys whole")->group("Printing");
  command.add_flag("--percent", args.percent, "Print weights and probabilities times 100")
      ->group("Printing");
  command
      .add_option(
          "--round", args.round,
          "sum1 (the default): where a rounded row would not add to 1, an entry moves by one unit, "
          "marked ′; nearest: nothing moves")
      ->type_name("sum1|nearest")
      ->check(one_of({"sum1", "nearest"}))
      ->group("Printing");
  command.add_flag("--ascii", args.ascii, "Print ASCII characters only")->group("Printing");
  command.add_option("--width", args.width, "Columns a line of text may take (default 100)")
      ->type_name("N")
      ->check(CLI::Range(20, 10000).description(""))
      ->group("Printing");
  command
      .add_option("--format", args.format,
                  "What to write; by default what the ending of -o says, else text")
      ->type_name("text|md|latex|html|svg|csv|json")
      ->check(one_of({"text", "md", "latex", "html", "svg", "csv", "json"}))
      ->group("Printing");
  command.add_flag("--math", args.math, "Write Markdown with $$ blocks")->group("Printing");
  command
      .add_flag("--standalone", args.standalone, "Write LaTeX with a preamble, ready to compile")
      ->group("Printing");
  command
      .add_flag("--interactive", args.interactive,
                "Write HTML to edit and walk through, one file that needs no network")
      ->group("Printing");
  command
      .add_option("--web", args.web,
                  "The folder of the built page, for --interactive (default: the installed one, or "
                  "build/web)")
      ->type_name("DIR")
      ->group("Printing");
  command
      .add_option(
          "-o,--out", args.out,
          "Write to this file: .txt .json .md .tex .html .svg, or numbers: .npy (out, or the one "
          "matrix of --steps) .csv (one matrix, or a list of several) .safetensors; the last "
          "two all, or those of --steps")
      ->type_name("FILE")
      ->group("Printing");
}

}  // namespace

bool ends_with(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

std::string format_of(const TraceArgs& args) {
  if (!args.format.empty()) return args.format;
  struct Ending {
    const char *ending, *format;
  };
  for (const Ending& e : {Ending{".txt", "text"},
                          {".json", "json"},
                          {".md", "md"},
                          {".tex", "latex"},
                          {".html", "html"},
                          {".svg", "svg"},
                          {".csv", "csv"},
                          {".npy", "npy"},
                          {".safetensors", "safetensors"}})
    if (ends_with(args.out, e.ending)) return e.format;
  const std::size_t name = args.out.rfind('/') + 1, dot = args.out.rfind('.');
  if (dot != std::string::npos && dot > name)
    throw OptionError("trace",
                      {{"-o", args.out + ": nothing is known about " + args.out.substr(dot) +
                                  "; .txt, .md, .tex, .html, .svg, .csv, .json, .npy and "
                                  ".safetensors are written, or give --format"}});
  return "text";
}

void add_trace_options(CLI::App& command, TraceArgs& args) {
  command
      .add_option("case", args.name,
                  "A case by its name (--list shows them), a file of your own, or a model: a "
                  "directory with config.json, a .safetensors or .gguf file")
      ->type_name("CASE|FILE|MODEL");
  command.add_flag("--list", args.list, "List the cases, one a line");
  add_edits(command, args);
  add_views(command, args);
  add_model(command, args);
  add_printing(command, args);
}

void refuse_ignored(const CLI::App& command, const TraceArgs& args, const std::string& format) {
  const View view = view_of(args);
  const unsigned bit = bit_of(format);
  std::vector<Problem> problems;
  const auto refuse = [&](const std::string& option, const std::string& what) {
    problems.push_back({option == "case" ? "CASE" : option, what});
  };
  for (const Effect& effect : kEffects) {
    if (command.count(effect.option) == 0) continue;
    if (is_model(args.name) && is_of_model(effect.option)) continue;
    const bool is_mine = (effect.views & view) != 0;
    const bool is_page =
        view != kCheck && view != kCheckJson && view != kList;  // they write no page, in no format
    if (!is_mine)
      refuse(effect.option, fmt::format("has no effect on {}{}", words_of(view),
                                        view == kGradients && effect.views == kOfPrintedWeights
                                            ? ", which shows no weights"
                                            : ""));
    else if (view == kMistakeList && bit == kText && effect.views == kEdited &&
             effect.option[0] == '-')
      refuse(effect.option, "has no effect on --mistake list, save with --format md");
    else if (view == kInteractive && bit != kHtml && effect.views == kInteractive)
      refuse(effect.option, fmt::format("is of a page, HTML and not {}: -o lesson.html", format));
    else if (is_page && (effect.formats & bit) == 0)
      refuse(effect.option, fmt::format("has no effect on format {}", format));
    else if (is_page && bit == kJson && (effect.views_of_json & view) == 0)
      refuse(effect.option,
             fmt::format("has no effect on {} in JSON, which holds everything", words_of(view)));
  }
  if (!is_model(args.name)) refuse_model_flags(args, problems);
  if (args.has_scale && args.remove_scale)
    refuse("--scale", "does not go with --remove-scale; choose one");
  if (!args.save_case.empty() && !ends_with(args.save_case, ".json"))
    refuse("--save-case", args.save_case + ": a case is JSON, a file that ends in .json");
  need_writable("-o", args.out, problems);
  need_writable("--save-case", args.save_case, problems);
  if (!problems.empty()) throw OptionError("trace", std::move(problems));
}

}  // namespace glasshead::cli
