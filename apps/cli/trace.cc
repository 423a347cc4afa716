// glasshead trace: every step of a case with its numbers and shapes.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/head_document.h"
#include "cli/page_files.h"
#include "cli/trace_files.h"
#include "cli/trace_model.h"
#include "cli/trace_options.h"
#include "cli/values.h"
#include "doctor/mistake_document.h"
#include "glasshead/tensor_file.h"
#include "wire/by_hand.h"
#include "wire/case_reader.h"
#include "wire/case_text.h"
#include "wire/diff.h"
#include "wire/display.h"
#include "wire/document_notes.h"
#include "wire/explain.h"
#include "wire/given.h"
#include "wire/gradients.h"
#include "wire/lesson.h"
#include "wire/render.h"
#include "wire/sequence.h"
#include "wire/sweep.h"
#include "wire/trace_json.h"

namespace glasshead::cli {
namespace {

using wire::Case;
using wire::Document;
using wire::DocumentOptions;

// To -o, or the screen.
void save(const TraceArgs& args, const std::string& text) {
  write_for("trace", "-o", [&] { write_result(args.out, text); });
}
using Pieces = std::function<void(const std::function<void(std::string_view)>&)>;
void save_pieces(const TraceArgs& args, const Pieces& write) {
  write_for("trace", "-o", [&] { write_pieces(args.out, write); });
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

bool is_edited(const TraceArgs& args) {
  return !args.set.empty() || !args.hide.empty() || !args.mask.empty() || args.has_scale ||
         args.remove_scale || !args.empty_row.empty();
}

bool is_mask_file(const std::string& mask) {
  return ends_with(mask, ".npy") || mask.find(".safetensors") != std::string::npos;
}

// What the flags ask for, but for a mask's file.
wire::Edit edit_of(const TraceArgs& args, std::vector<Problem>& problems) {
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
  return edit;
}

Case edited(const Case& original, const TraceArgs& args) {
  std::vector<Problem> problems;
  const wire::Edit edit = edit_of(args, problems);
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
  options.width = args.width;
  if (format == "svg") options.map_above = wire::kSvgCells;
  std::vector<Problem> problems;
  if (!args.query.empty()) {
    std::string why;
    options.query = wire::find_row(c.query_labels, args.query, why);
    if (!options.query) options.query = generated_row(c, args.query);
    if (!options.query) problems.push_back({"--query", why});
  }
  if (!args.head.empty()) {
    const std::optional<index_t> head = parse_integer(args.head);
    index_t heads = 1;
    for (const auto& block : c.network.blocks) heads = std::max(heads, block.attention.heads);
    if (!head || *head < 0 || *head >= heads)
      problems.push_back(
          {"--head", fmt::format("{} is none of the {} heads, counted from 0", args.head, heads)});
    options.head = head;
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

// What is traced: a case as it is given, or a head of a model as one.
struct Subject {
  CaseText given;
  std::optional<ModelHead> head;
  bool is_own = true;  // of a head: unchanged, so that the model's run is about the same numbers
};

Subject subject_of(const TraceArgs& args) {
  if (!is_model(args.name)) return {load_case_text(args.name), std::nullopt};
  ModelHead head = read_head(args);
  CaseText given{head.shown.name, args.name, {}, head.shown};
  return {std::move(given), std::move(head), !is_edited(args)};
}

void write_json(const Subject& subject, const Case& c, const DocumentOptions& options,
                const wire::JsonWriter::Sink& sink) {
  if (!subject.head) {
    wire::write_trace_json(c, options, sink);
    return;
  }
  const auto more = [&](wire::JsonWriter& json) {
    write_head(json, *subject.head, subject.is_own);
  };
  wire::write_trace_json(c, options, wire::case_steps(c), more, sink);
}

std::string json_text(const Subject& subject, const Case& c, const DocumentOptions& options) {
  std::string text;
  write_json(subject, c, options, [&](std::string_view piece) { text += piece; });
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
    save_pieces(args, [&](const auto& sink) {
      json(sink);
      sink("\n");
    });
    return;
  }
  const std::string page = render(document, args, format);
  if (format == "csv" && page.empty())
    throw OptionError("trace", {{"--format", "csv holds matrices, and " + mode +
                                                 " shows none; other formats have it"}});
  save(args, page);
}

// `known`: everything that could have been named.
void refuse_steps(const std::vector<std::string>& unknown, const std::vector<std::string>& known) {
  std::vector<Problem> problems;
  std::string all;
  for (const std::string& name : known) all += (all.empty() ? "" : ", ") + name;
  for (const std::string& name : unknown) {
    const std::optional<std::string> meant = wire::nearest(name, known);
    problems.push_back({"--steps", name + ": no step or matrix of this name" +
                                       (meant ? "; did you mean " + *meant + "?" : "") +
                                       (&name == &unknown.back() ? "; there are " + all : "")});
  }
  if (!problems.empty()) throw OptionError("trace", std::move(problems));
}

// Once each, in order.
void add_name(std::vector<std::string>& names, const std::string& name) {
  if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end())
    names.push_back(name);
}

// Leaves the named sections and matrices; a name of none is refused, also beside known ones.
void choose_steps(Document& document, const TraceArgs& args) {
  std::vector<std::string> unknown, known;
  for (const std::string& name : args.steps) {
    Document named;
    named.sections = document.sections;
    wire::keep_steps(named, {name});
    if (named.sections.empty()) unknown.push_back(name);
  }
  for (const wire::Section& section : document.sections) {
    add_name(known, section.title.substr(section.title.rfind(' ') + 1));
    for (const wire::Table& table : section.tables) add_name(known, wire::leaf_of(table.tap));
  }
  refuse_steps(unknown, known);
  wire::keep_steps(document, args.steps);
}

// The JSON knows no sections, so --steps names taps and inputs, of one block or run or of all.
void check_taps(const Case& c, const TraceArgs& args) {
  std::vector<std::string> taps, known, unknown;
  for (const auto& [tap, value] : c.inputs) taps.push_back(tap);
  for (const Step& step : wire::case_steps(c)) taps.push_back(step.tap);
  for (const std::string& tap : taps) add_name(known, wire::leaf_of(tap));
  for (const std::string& name : args.steps) {
    const std::string first = wire::Sequence::without_run(name);
    const bool is_cache = c.feed + c.generate > 0 &&
                          (wire::leaf_of(name) == "k_cache" || wire::leaf_of(name) == "v_cache");
    const bool is_known = std::any_of(taps.begin(), taps.end(), [&](const std::string& tap) {
      return first == tap || first == wire::leaf_of(tap);
    });
    if (!is_known && !is_cache) unknown.push_back(name);
  }
  refuse_steps(unknown, known);
}

void run_sweep(const TraceArgs& args, const std::string& format) {
  std::vector<Problem> problems;
  const std::optional<wire::SweepOptions> options = wire::parse_sweep(args.sweep, problems);
  if (!options) throw OptionError("trace", std::move(problems));
  const std::vector<wire::SweepPoint> points = wire::run_sweep(*options);
  if (format == "svg") {
    save(args, wire::sweep_svg(*options, points));
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
    save(args, doctor::mistakes_markdown(c));
    return;
  }
  if (format != "text") refuse_format("--mistake list", format);
  constexpr int kIdWidth = 22;
  std::string text;
  for (const doctor::Mistake& mistake : doctor::mistakes())
    text += wire::pad_right(doctor::id_with_parameter(mistake), kIdWidth) + mistake.done + "\n";
  save(args, args.ascii ? wire::to_ascii(text) : text);
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

// The page with the case in it, opening in the state that the flags ask for.
void write_lesson(const TraceArgs& args) {
  const Subject subject = subject_of(args);
  CaseText given = subject.given;
  if (subject.head) given.text = wire::given_case_text(given.parsed);
  const Case c = edited(given.parsed, args);
  std::vector<Problem> problems = wire::empty_row_problems(c);
  wire::AddressOptions options{{}, args.mistake};
  if (!args.by_hand.empty()) {
    const wire::ByHandOptions hand = by_hand_options(args.by_hand);
    options.by_hand = hand.decimals;
    if (hand.is_shifted)
      problems.push_back({"--by-hand", "the page computes by hand without shift"});
  }
  if (is_mask_file(args.mask))
    problems.push_back(
        {"--mask", args.mask + ": a file; the page's address names masks, such as causal"});
  if (!args.mistake.empty() && problems.empty()) doctor::run_mistake(args.mistake, c, problems);
  if (!problems.empty()) throw OptionError("trace", std::move(problems));
  const std::string start =
      wire::page_address(given.parsed, c, edit_of(args, problems), options, problems);
  if (!problems.empty()) throw OptionError("trace", std::move(problems));
  const std::optional<std::string> page = wire::fill_lesson(
      one_file_page("trace", args.web), {wire::address_name(given.name), given.text, start});
  if (!page)
    throw FormatError("trace", {{"--web", "lesson.html has no place for a case; make web anew"}});
  save(args, *page);
}

void run_by_hand(const Case& c, const DocumentOptions& options, const TraceArgs& args,
                 const std::string& format) {
  const wire::ByHand hand = wire::run_by_hand(c, by_hand_options(args.by_hand));
  put(
      wire::by_hand_document(c, hand, options),
      [&](const auto& sink) { wire::write_by_hand_json(c, hand, sink); }, args, format,
      "--by-hand");
}

// 0, or 1 when it finds a difference.
int run_check(const Subject& subject, const Case& c, const Trace& trace,
              const DocumentOptions& options, const TraceArgs& args) {
  const std::string json =
      ends_with(args.check, ".json") ? json_text(subject, c, options) : std::string();
  const std::string found = compare_with(args.check, trace, json);
  save(args, found.empty() ? "equal\n" : "DIFFERS  " + found + "\n");
  return found.empty() ? 0 : 1;
}

void refuse_empty_diff(const TraceArgs& args) {
  if (args.diff && !is_edited(args))
    throw OptionError("trace", {{"--diff",
                                 "nothing was changed; give --set 'X[B]=1,1' (a row) or "
                                 "'W_Q[0,1]=2' (a number), --hide KEY, --mask, --scale or "
                                 "--remove-scale"}});
}

// 0, or 1 when --check finds a difference.
int run_case_modes(TraceArgs args, const std::string& format) {
  refuse_empty_diff(args);
  const Subject subject = subject_of(args);
  if (subject.head) args.query = args.head = "";  // they have chosen: there is one of each
  const Case& original = subject.given.parsed;
  const Case c = edited(original, args);
  std::vector<Problem> problems = wire::empty_row_problems(c);
  if (!problems.empty()) throw OptionError("trace", std::move(problems));
  if (!args.save_case.empty())
    write_for("trace", "--save-case",
              [&] { write_result(args.save_case, wire::given_case_text(c)); });
  const DocumentOptions options = document_options(args, c, format);
  if (!args.mistake.empty()) {
    run_mistake(c, options, args, format);
    return 0;
  }
  if (!args.by_hand.empty()) {
    run_by_hand(c, options, args, format);
    return 0;
  }
  if (format == "json" && !args.explain && !args.diff && !args.gradients && args.check.empty()) {
    check_taps(c, args);
    save_pieces(args, [&](const auto& sink) {
      write_json(subject, c, options, sink);
      sink("\n");
    });
    return 0;
  }
  const Trace trace = wire::run_case(c);
  if (!args.check.empty()) return run_check(subject, c, trace, options, args);
  if (args.explain) {
    put(
        wire::explain_document(c, trace, options),
        [&](const auto& sink) { wire::write_explain_json(c, trace, options, sink); }, args, format,
        "--explain");
  } else if (args.diff) {
    const Trace before = wire::run_case(original);
    const wire::Comparison comparison{original, c, before, trace};
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
    write_for("trace", "-o", [&] { write_taps(args.out, trace, args.steps); });
  } else {
    DocumentOptions all = options;
    all.steps.clear();
    Document document = wire::build_document(c, trace, all);
    if (subject.head) add_head(document, *subject.head, trace, options, subject.is_own);
    choose_steps(document, args);
    put(document, {}, args, format, "--steps");
  }
  return 0;
}

int run(const CLI::App& command, TraceArgs args) {
  if (std::find(args.steps.begin(), args.steps.end(), "all") != args.steps.end())
    args.steps.clear();
  const std::string format = format_of(args);
  refuse_ignored(command, args, format);
  if (args.list) {
    const std::string text = list_cases();  // refused where there is no folder of cases
    save(args, args.ascii ? wire::to_ascii(text) : text);
    return 0;
  }
  if ((format == "npy" || format == "safetensors") && args.out.empty())
    throw OptionError("trace", {{"-o", "missing; " + format + " needs a file"}});
  if (!args.sweep.empty()) {
    run_sweep(args, format);
    return 0;
  }
  if (args.name.empty())
    throw OptionError(
        "trace",
        {{"CASE",
          "missing; glasshead trace --list shows the cases, and a model may stand in its place"}});
  if (args.interactive) {
    write_lesson(args);
    return 0;
  }
  return run_case_modes(args, format);
}

void add(CLI::App& command, int& exit_code) {
  auto args = std::make_shared<TraceArgs>();
  add_trace_options(command, *args);
  command.callback([args, &command, &exit_code] { exit_code = run(command, *args); });
}

}  // namespace

const Command kTrace{
    "trace", "Show every step of a worked example with its numbers and shapes",
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
    "# a head of a model at one token\n"
    "glasshead trace stories260K --prompt \"Once upon a time\" --layer 2 --head 3\n"
    "# one file for a browser\n"
    "glasshead trace two-heads -o page.html\n"
    "# a lesson to edit, one file that needs no network\n"
    "glasshead trace three-tokens --interactive -o lesson.html\n",
    add};

}  // namespace glasshead::cli
