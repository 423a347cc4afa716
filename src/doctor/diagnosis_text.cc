// A diagnosis as lines for a terminal.
#include <algorithm>
#include <cmath>

#include "doctor/numbers.h"
#include "glasshead/diagnose.h"
#include "wire/decimal.h"

namespace glasshead {
namespace {

using wire::significant;

constexpr std::size_t kLabel = 10;  // columns of a line's label

std::string line(std::string label, const std::string& text) {
  label.resize(std::max(label.size() + 1, kLabel), ' ');
  return label + text + "\n";
}

std::string shown(double x) { return significant(x, 7); }

// "out [0, 3, 5, 7]"
std::string place(const Entry& entry) {
  std::string text = entry.claim + " [";
  for (std::size_t n = 0; n < entry.index.size(); ++n)
    text += (n > 0 ? ", " : "") + std::to_string(entry.index[n]);
  return text + "]";
}

std::string off_by(const Entry& entry) {
  return shown(entry.found) + ", should be " + shown(entry.right) + " (off by " +
         significant(std::fabs(entry.found - entry.right), 3) + ", rounding explains " +
         significant(entry.tolerance, 2) + ")";
}

std::string list(const std::vector<std::string>& words, std::size_t most) {
  std::string text;
  for (std::size_t n = 0; n < std::min(words.size(), most); ++n)
    text += (n > 0 ? ", " : "") + words[n];
  if (words.size() > most) text += ", and " + std::to_string(words.size() - most) + " more";
  return text;
}

std::string rows_line(const Diagnosis& d) {
  const std::string type = std::string(name(d.arithmetic)) + " arithmetic";
  if (d.rows_checked == d.rows) return std::to_string(d.numbers) + " numbers compared, " + type;
  return "a sample of " + std::to_string(d.rows_checked) + " of " + std::to_string(d.rows) +
         " rows compared (" + std::to_string(d.numbers) + " numbers), " + type;
}

std::string right_text(const Diagnosis& d) {
  std::string text;
  if (d.numbers == 0) return line("RIGHT", "there is nothing to compare");
  text += line("RIGHT", rows_line(d));
  if (d.worst.found == d.worst.right)
    text += line("", "largest error 0");
  else
    text += line("", "worst entry: " + place(d.worst) + ": " + off_by(d.worst));
  if (d.worst_ulps > 0)
    text += line("", "largest error of out " + significant(d.worst_ulps, 2) + " ulp of " +
                         name(d.arithmetic) + " (plain attention in that type on these inputs: " +
                         significant(d.plain_ulps, 2) + ")");
  if (!d.blind.empty()) {
    text += line("but", "this input can't show " + list(d.blind, 12));
    text += line("try", "glasshead doctor --probe DIR with your shapes writes inputs that can");
  }
  return text;
}

std::string cause_text(const Cause& cause, bool is_first, bool is_alone, const Diagnosis& d) {
  std::string text;
  for (std::size_t n = 0; n < cause.mistakes.size(); ++n) {
    const NamedMistake& m = cause.mistakes[n];
    const std::string label = n > 0 ? "with" : is_first ? "cause" : "or";
    text += line(label, m.name() + ": " + m.title + ". " + m.done);
    if (!is_first) continue;
    text += line("look for", m.cause);
    text += line("fix", m.fix_code + "   " + m.fix);
  }
  if (cause.is_close)
    text += line("", "within " + significant(cause.worst, 2) +
                         " tolerances of all numbers: not ruled out, but not the best");
  else if (is_first)
    text += line("", std::string(is_alone && cause.telling >= 2 ? "gives" : "is consistent with") +
                         " all " + std::to_string(d.numbers) + " numbers, " +
                         std::to_string(cause.telling) +
                         " of which it sets apart from the right answer");
  return text;
}

// "row A right · row B wrong: ..." of a small claim.
std::string small_text(const Diagnosis& d) {
  std::string text, claim, summary;
  for (const RowReport& report : d.small_rows) {
    if (report.claim != claim) {
      if (!summary.empty()) text += line(claim, summary);
      summary.clear();
      claim = report.claim;
    }
    summary += (summary.empty() ? "" : " · ") + ("row " + report.row) +
               (report.is_right ? " right" : " wrong");
    if (report.is_right) continue;
    summary += ", should be";
    for (const double x : report.right) summary += " " + wire::fixed(x, 4);
  }
  if (!summary.empty()) text += line(claim, summary);
  return text;
}

}  // namespace

std::string diagnosis_text(const Diagnosis& d) {
  if (d.is_right()) return right_text(d);
  std::string text = line("WRONG", std::to_string(d.wrong) + " of " + rows_line(d));
  text += line("first", place(d.first_wrong) + ": " + off_by(d.first_wrong));
  text += small_text(d);
  for (std::size_t n = 0; n < d.causes.size(); ++n)
    text += cause_text(d.causes[n], n == 0, d.causes.size() == 1, d);
  if (d.causes.empty())
    text += line("cause",
                 "no mistake in the catalogue, and no pair, gives these numbers beyond chance (" +
                     std::to_string(d.tried) + " tried)");
  for (const std::string& fact : d.pattern) text += line("where", fact);
  for (const std::string& fact : d.proven) text += line("in order", fact);
  for (const std::string& fact : d.not_tried) text += line("untried", fact);
  for (const std::string& fact : d.next) text += line("next", fact);
  return text;
}

}  // namespace glasshead
