// glasshead trace: every step of a case with its numbers and shapes.
#include <algorithm>
#include <cstdio>
#include <memory>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/trace_files.h"
#include "doctor/mistake_document.h"
#include "glasshead/tensor_file.h"
#include "wire/by_hand.h"
#include "wire/diff.h"
#include "wire/display.h"
#include "wire/explain.h"
#include "wire/given.h"
#include "wire/gradients.h"
#include "wire/render.h"
#include "wire/sweep.h"
#include "wire/trace_json.h"

namespace glasshead::cli {
namespace {

using wire::Case;
using wire::Document;
using wire::DocumentOptions;

struct TraceArgs {
  std::string name, out, format, mask, query, by_hand, sweep, check, mistake;
  std::string round = "sum1", empty_row;
  std::vector<std::string> set, hide, steps;
  double scale = 1;
  index_t head = 0;
  int decimals = 4, width = 100;
  bool has_scale = false, remove_scale = false, has_head = false, list = false;
  bool explain = false, diff = false, gradients = false, full = false, percent = false;
  bool ascii = false, math = false, standalone = false;
};

bool ends_with(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// By --format, else by the ending of -o, else text.
std::string format_of(const TraceArgs& args) {
  if (!args.format.empty()) return args.format;
  struct Ending {
    const char *ending, *format;
  };
  for (const Ending& e : {Ending{".json", "json"},
                          {".md", "md"},
                          {".tex", "latex"},
                          {".html", "html"},
                          {".svg", "svg"},
                          {".csv", "csv"},
                          {".npy", "npy"},
                          {".safetensors", "safetensors"}})
    if (ends_with(args.out, e.ending)) return e.format;
  return "text";
}

// "2" or "2,shift".
wire::ByHandOptions by_hand_options(const std::string& text) {
  wire::ByHandOptions options;
  const std::size_t comma = text.find(',');
  const std::string digits = text.substr(0, comma);
  options.is_shifted = comma != std::string::npos && text.substr(comma + 1) == "shift";
  const bool is_number = !digits.empty() && digits.size() <= 2 &&
                         digits.find_first_not_of("0123456789") == std::string::npos;
  if (is_number) options.decimals = std::stoi(digits);
  if (!is_number || options.decimals > wire::kMaxDecimals ||
      (comma != std::string::npos && !options.is_shifted))
    throw OptionError("trace", {{"--by-hand", "\"" + text +
                                                  "\" is not D or D,shift with D from 0 to 12 "
                                                  "(\"2\", \"2,shift\")"}});
  return options;
}

bool is_mask_file(const std::string& mask) {
  return ends_with(mask, ".npy") || mask.find(".safetensors") != std::string::npos;
}

Case edited(const Case& original, const TraceArgs& args) {
  std::vector<Problem> problems;
  wire::Edit edit;
  for (const std::string& text : args.set)
    if (std::optional<wire::Edit::Set> set = wire::parse_set(text, problems))
      edit.set.push_back(std::move(*set));
  edit.hide = args.hide;
  if (!args.mask.empty() && !is_mask_file(args.mask)) edit.mask = args.mask;
  if (args.has_scale) edit.scale = args.scale;
  if (args.remove_scale) edit.scale = 1;
  if (!args.empty_row.empty())
    edit.empty_row = args.empty_row == "zero" ? EmptyRow::zero : EmptyRow::error;
  std::optional<Case> c = original;
  if (problems.empty() && !edit.is_empty()) c = wire::edit_case(original, edit, problems);
  if (problems.empty() && c && is_mask_file(args.mask)) {
    const auto file = std::make_shared<FileTensor>(read_tensor(args.mask));
    c = wire::with_mask(*c, Broadcast(file->view<4>("--mask"), file), problems);
  }
  if (!problems.empty() || !c) throw OptionError("trace", std::move(problems));
  return std::move(*c);
}

// The row of a generated token, by its number: its label is not known before the run.
std::optional<index_t> generated_row(const Case& c, const std::string& text) {
  constexpr std::size_t kDigits = 9;
  if (text.empty() || text.size() > kDigits ||
      text.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  const index_t row = std::stoll(text), given = static_cast<index_t>(c.query_labels.size());
  // The last token is appended, but not run.
  if (row < given || row >= given + c.generate - 1) return std::nullopt;
  return row;
}

DocumentOptions document_options(const TraceArgs& args, const Case& c, const std::string& format) {
  DocumentOptions options;
  options.print.decimals = args.decimals;
  options.print.is_percent = args.percent;
  options.print.is_full = args.full || format == "svg" || format == "csv";
  options.print.rounding =
      args.round == "nearest" ? wire::RowRounding::nearest : wire::RowRounding::sum_to_one;
  options.steps = args.steps;
  if (format == "svg") options.map_above = wire::kSvgCells;
  std::vector<Problem> problems;
  if (!args.query.empty()) {
    std::string why;
    options.query = wire::find_row(c.query_labels, args.query, why);
    if (!options.query) options.query = generated_row(c, args.query);
    if (!options.query) problems.push_back({"--query", why});
  }
  if (args.has_head) {
    index_t heads = 1;
    for (const auto& block : c.network.blocks) heads = std::max(heads, block.attention.heads);
    if (args.head < 0 || args.head >= heads)
      problems.push_back(
          {"--head", fmt::format("{} is none of the {} heads, counted from 0", args.head, heads)});
    options.head = args.head;
  }
  if (!problems.empty()) throw OptionError("trace", std::move(problems));
  return options;
}

std::string render(const Document& document, const TraceArgs& args, const std::string& format) {
  if (format == "md") return wire::to_markdown(document, {args.math});
  if (format == "latex") return wire::to_latex(document, {args.standalone});
  if (format == "html") return wire::to_html(document);
  if (format == "svg") return wire::to_svg(document);
  if (format == "csv") return wire::to_csv(document);
  return wire::to_text(document, {args.width, args.ascii});
}

std::string json_text(const Case& c, const DocumentOptions& options) {
  std::string text;
  wire::write_trace_json(c, options, [&](std::string_view piece) { text += piece; });
  return text + "\n";
}

void refuse_format(const std::string& mode, const std::string& format) {
  throw OptionError("trace", {{"--format", format + " does not go with " + mode}});
}

using JsonPart = std::function<void(const wire::JsonWriter::Sink&)>;

// A page, or its JSON.
void put(const Document& document, const JsonPart& json, const TraceArgs& args,
         const std::string& format, const std::string& mode) {
  if (format == "npy" || format == "safetensors" || (format == "json" && !json))
    refuse_format(mode, format);
  if (format == "json") {
    write_pieces(args.out, [&](const auto& sink) {
      json(sink);
      sink("\n");
    });
    return;
  }
  write_result(args.out, render(document, args, format));
}

void check_steps(const Document& document, const TraceArgs& args) {
  if (args.steps.empty() || !document.sections.empty()) return;
  std::string names;
  for (const std::string& step : args.steps) names += (names.empty() ? "" : ", ") + step;
  throw OptionError("trace", {{"--steps", names + ": no step or matrix of this name"}});
}

// The JSON knows no sections, so --steps names taps and inputs, of one block or run or of all.
void check_taps(const Case& c, const TraceArgs& args) {
  std::vector<std::string> leaves;
  for (const auto& [tap, value] : c.inputs) leaves.push_back(wire::leaf_of(tap));
  for (const Step& step : wire::case_steps(c)) leaves.push_back(wire::leaf_of(step.tap));
  std::vector<Problem> problems;
  for (const std::string& name : args.steps)
    if (std::find(leaves.begin(), leaves.end(), wire::leaf_of(name)) == leaves.end())
      problems.push_back({"--steps", name + ": no step or matrix of this name"});
  if (!problems.empty()) throw OptionError("trace", std::move(problems));
}

void run_sweep(const TraceArgs& args, const std::string& format) {
  std::vector<Problem> problems;
  const std::optional<wire::SweepOptions> options = wire::parse_sweep(args.sweep, problems);
  if (!options) throw OptionError("trace", std::move(problems));
  const std::vector<wire::SweepPoint> points = wire::run_sweep(*options);
  if (format == "svg") {
    write_result(args.out, wire::sweep_svg(*options, points));
    return;
  }
  put(
      wire::sweep_document(*options, points, args.decimals),
      [&](const auto& sink) { wire::write_sweep_json(*options, points, sink); }, args, format,
      "--sweep");
}

// --mistake list: the table, with its numbers on this case as Markdown.
void list_mistakes(const Case& c, const TraceArgs& args, const std::string& format) {
  if (format == "md") {
    write_result(args.out, doctor::mistakes_markdown(c));
    return;
  }
  if (format != "text") refuse_format("--mistake list", format);
  constexpr int kIdWidth = 22;
  std::string text;
  for (const doctor::Mistake& mistake : doctor::mistakes())
    text += wire::pad_right(doctor::id_with_parameter(mistake), kIdWidth) + mistake.done + "\n";
  write_result(args.out, args.ascii ? wire::to_ascii(text) : text);
}

void run_mistake(const Case& c, const DocumentOptions& options, const TraceArgs& args,
                 const std::string& format) {
  if (args.mistake == "list") {
    list_mistakes(c, args, format);
    return;
  }
  std::vector<Problem> problems;
  const std::optional<doctor::MistakenRun> run = doctor::run_mistake(args.mistake, c, problems);
  if (!run) throw OptionError("trace", std::move(problems));
  put(
      doctor::mistake_document(*run, c, options),
      [&](const auto& sink) { doctor::write_mistake_json(*run, c, options, sink); }, args, format,
      "--mistake");
}

// 0, or 1 when --check finds a difference.
int run_case_modes(const TraceArgs& args, const std::string& format) {
  const Case original = load_case(args.name);
  const Case c = edited(original, args);
  std::vector<Problem> problems = wire::empty_row_problems(c);
  if (!problems.empty()) throw OptionError("trace", std::move(problems));
  const DocumentOptions options = document_options(args, c, format);
  if (!args.mistake.empty()) {
    run_mistake(c, options, args, format);
    return 0;
  }
  if (!args.by_hand.empty()) {
    const wire::ByHand hand = wire::run_by_hand(c, by_hand_options(args.by_hand));
    put(
        wire::by_hand_document(c, hand, options),
        [&](const auto& sink) { wire::write_by_hand_json(c, hand, sink); }, args, format,
        "--by-hand");
    return 0;
  }
  if (format == "json" && !args.explain && !args.diff && !args.gradients && args.check.empty()) {
    check_taps(c, args);
    write_pieces(args.out, [&](const auto& sink) {
      wire::write_trace_json(c, options, sink);
      sink("\n");
    });
    return 0;
  }
  const Trace trace = wire::run_case(c);
  if (!args.check.empty()) {
    const std::string json = ends_with(args.check, ".json") ? json_text(c, options) : std::string();
    const std::string found = compare_with(args.check, trace, json);
    write_result(args.out, found.empty() ? "equal\n" : "DIFFERS  " + found + "\n");
    return found.empty() ? 0 : 1;
  }
  if (args.explain) {
    put(
        wire::explain_document(c, trace, options),
        [&](const auto& sink) { wire::write_explain_json(c, trace, options, sink); }, args, format,
        "--explain");
  } else if (args.diff) {
    const wire::Comparison comparison{original, c, wire::run_case(original), trace};
    put(
        wire::diff_document(comparison, options),
        [&](const auto& sink) { wire::write_diff_json(comparison, sink); }, args, format, "--diff");
  } else if (args.gradients) {
    const std::vector<wire::AttentionGradients> gradients = wire::gradients_of(trace);
    put(
        wire::gradients_document(c, trace, gradients, options),
        [&](const auto& sink) { wire::write_gradients_json(c, gradients, sink); }, args, format,
        "--gradients");
  } else if (format == "npy" || format == "safetensors") {
    write_taps(args.out, trace, args.steps);
  } else {
    const Document document = wire::build_document(c, trace, options);
    check_steps(document, args);
    put(document, {}, args, format, "trace");
  }
  return 0;
}

int run(TraceArgs args) {
  if (std::find(args.steps.begin(), args.steps.end(), "all") != args.steps.end())
    args.steps.clear();
  if (args.list) {
    write_result(args.out, list_cases());
    return 0;
  }
  const std::string format = format_of(args);
  if ((format == "npy" || format == "safetensors") && args.out.empty())
    throw OptionError("trace", {{"-o", "missing; " + format + " needs a file"}});
  if (!args.sweep.empty()) {
    run_sweep(args, format);
    return 0;
  }
  if (args.name.empty())
    throw OptionError("trace", {{"CASE", "missing; glasshead trace --list shows the cases"}});
  return run_case_modes(args, format);
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
      ->type_name("none|causal|window:L,R|prefix:N|FILE")
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
  command.add_option("--query", args.query, "Only this query, by its label, or its index from 0")
      ->type_name("ROW")
      ->group("Choose what to see");
  command.add_option("--head", args.head, "Only this head, counted from 0")
      ->type_name("H")
      ->group("Choose what to see")
      ->each([&args](const std::string&) { args.has_head = true; });
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
      .add_option("-o,--out", args.out,
                  "Write to this file: .json .md .tex .html .svg .csv .npy .safetensors")
      ->type_name("FILE")
      ->group("Printing");
}

void add(CLI::App& command, int& exit_code) {
  auto args = std::make_shared<TraceArgs>();
  command
      .add_option("case", args->name,
                  "A case by its name (--list shows them), or a file of your own")
      ->type_name("CASE|FILE");
  command.add_flag("--list", args->list, "List the cases, one a line");
  add_edits(command, *args);
  add_views(command, *args);
  add_printing(command, *args);
  command.callback([args, &exit_code] { exit_code = run(*args); });
}

}  // namespace

const Command kTrace{"trace", "Show every step of a worked example with its numbers and shapes",
                     "# from queries to output, on one screen\n"
                     "glasshead trace three-tokens-causal\n"
                     "# how the weights of one row come about\n"
                     "glasshead trace three-tokens-causal --query B --explain\n"
                     "# what a change moves, and what it does not\n"
                     "glasshead trace three-tokens --set 'X[B]=1,1' --diff\n"
                     "# what rounding on paper does\n"
                     "glasshead trace cat-chases-mouse --by-hand 2\n"
                     "# a classic slip beside the right run\n"
                     "glasshead trace three-tokens-causal --mistake mask-after\n"
                     "# one file for a browser\n"
                     "glasshead trace two-heads -o page.html\n",
                     add};

}  // namespace glasshead::cli
