#include "python/native/trace_page.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "doctor/mistake_document.h"
#include "doctor/mistakes.h"
#include "glasshead/error.h"
#include "wire/by_hand.h"
#include "wire/diff.h"
#include "wire/given.h"
#include "wire/gradients.h"
#include "wire/render.h"

namespace glasshead::python {
namespace {

constexpr const char* kFunction = "trace";

[[noreturn]] void refuse(std::vector<Problem> problems) {
  throw OptionError(kFunction, std::move(problems));
}

// A view's options: it shows what it shows, so there are no steps to choose.
wire::DocumentOptions view_options(const wire::Case& c, const std::string& format,
                                   const Printing& printing) {
  if (!printing.steps.empty()) refuse({{"steps", "this view has no steps to choose from"}});
  return options_of(c, format, printing);
}

// write(sink) -> the JSON as one string.
template <class Write>
std::string json_of(const Write& write) {
  std::string text;
  write([&](std::string_view piece) { text += piece; });
  return text + "\n";
}

}  // namespace

wire::DocumentOptions options_of(const wire::Case& c, const std::string& format,
                                 const Printing& printing) {
  wire::DocumentOptions options;
  options.print.decimals = printing.decimals;
  options.print.is_percent = printing.is_percent;
  options.print.is_full = printing.is_full || format == "svg" || format == "csv";
  options.print.rounding =
      printing.is_nearest ? wire::RowRounding::nearest : wire::RowRounding::sum_to_one;
  options.steps = printing.steps;
  if (format == "svg") options.map_above = wire::kSvgCells;
  std::vector<Problem> problems;
  if (printing.decimals < 0 || printing.decimals > wire::kMaxDecimals)
    problems.push_back({"decimals", std::to_string(printing.decimals) + "; 0 to " +
                                        std::to_string(wire::kMaxDecimals) + " are possible"});
  if (printing.width < 20 || printing.width > 10000)
    problems.push_back({"width", std::to_string(printing.width) + "; 20 to 10000 are possible"});
  if (printing.query) {
    std::string why;
    options.query = wire::find_row(c.query_labels, *printing.query, why);
    if (!options.query) problems.push_back({"query", why});
  }
  index_t heads = 1;
  for (const auto& block : c.network.blocks) heads = std::max(heads, block.attention.heads);
  if (printing.head && (*printing.head < 0 || *printing.head >= heads))
    problems.push_back({"head", std::to_string(*printing.head) + " is none of the " +
                                    std::to_string(heads) + " heads, counted from 0"});
  options.head = printing.head;
  if (!problems.empty()) refuse(std::move(problems));
  return options;
}

std::string rendered(const wire::Document& document, const std::string& format,
                     const Printing& printing) {
  if (format == "md") return wire::to_markdown(document, {printing.has_math});
  if (format == "latex") return wire::to_latex(document, {printing.is_standalone});
  if (format == "html") return wire::to_html(document);
  if (format == "svg") return wire::to_svg(document);
  if (format == "csv") return wire::to_csv(document);
  return wire::to_text(document, {printing.width, printing.is_ascii});
}

std::string diff_page(const Shown& before, const Shown& after, const std::string& format,
                      const Printing& printing) {
  const wire::DocumentOptions options = view_options(after.shown, format, printing);
  const wire::Comparison comparison{before.shown, after.shown, before.trace, after.trace};
  if (format == "json")
    return json_of([&](const auto& sink) { wire::write_diff_json(comparison, sink); });
  return rendered(wire::diff_document(comparison, options), format, printing);
}

std::string by_hand_page(const Shown& run, int decimals, bool is_shifted, const std::string& format,
                         const Printing& printing) {
  const wire::DocumentOptions options = view_options(run.shown, format, printing);
  if (decimals < 0 || decimals > wire::kMaxDecimals)
    refuse({{"decimals", std::to_string(decimals) + "; 0 to " + std::to_string(wire::kMaxDecimals) +
                             " are possible"}});
  const wire::ByHand hand = wire::run_by_hand(run.shown, {decimals, is_shifted});
  if (format == "json")
    return json_of([&](const auto& sink) { wire::write_by_hand_json(run.shown, hand, sink); });
  return rendered(wire::by_hand_document(run.shown, hand, options), format, printing);
}

std::string mistake_page(const Shown& run, const std::string& mistake, const std::string& format,
                         const Printing& printing) {
  const wire::DocumentOptions options = view_options(run.shown, format, printing);
  std::vector<Problem> problems;
  const std::optional<doctor::MistakenRun> mistaken =
      doctor::run_mistake(mistake, run.shown, problems);
  if (!mistaken) {
    for (Problem& problem : problems) problem.where = "mistake";
    refuse(std::move(problems));
  }
  if (format == "json")
    return json_of(
        [&](const auto& sink) { doctor::write_mistake_json(*mistaken, run.shown, options, sink); });
  return rendered(doctor::mistake_document(*mistaken, run.shown, options), format, printing);
}

std::string gradients_page(const Shown& run, const std::string& format, const Printing& printing) {
  const wire::DocumentOptions options = view_options(run.shown, format, printing);
  const std::vector<wire::AttentionGradients> gradients = wire::gradients_of(run.trace);
  if (format == "json")
    return json_of(
        [&](const auto& sink) { wire::write_gradients_json(run.shown, gradients, sink); });
  return rendered(wire::gradients_document(run.shown, run.trace, gradients, options), format,
                  printing);
}

}  // namespace glasshead::python
