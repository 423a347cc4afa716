// A diagnosis as lines for a terminal.
#include <algorithm>
#include <cmath>

#include "doctor/numbers.h"
#include "glasshead/diagnose.h"
#include "wire/decimal.h"

namespace glasshead {
namespace {

using wire::significant;

constexpr std::size_t kLabel = 10;       // columns of a line's label
constexpr std::size_t kMostKinds = 8;    // of other causes, in the text
constexpr std::size_t kMostRows = 4;     // whose numbers are printed
constexpr std::size_t kMostColumns = 6;  // of a row: twice on a line that a terminal shows whole

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

// "9 numbers compared, f64 arithmetic", "2 of 9 numbers are wrong, f64 arithmetic"
std::string numbers_line(const Diagnosis& d) {
  std::string text = d.is_right() ? std::to_string(d.numbers) + " numbers compared"
                                  : std::to_string(d.wrong) + " of " + std::to_string(d.numbers) +
                                        " numbers are wrong";
  if (d.rows_checked != d.rows)
    text += " in a sample of " + std::to_string(d.rows_checked) + " of " + std::to_string(d.rows) +
            " rows";
  return text + ", " + name(d.arithmetic) + " arithmetic";
}

std::string right_text(const Diagnosis& d) {
  std::string text;
  if (d.numbers == 0) return line("RIGHT", "there is nothing to compare");
  text += line("RIGHT", numbers_line(d));
  for (const std::string& fact : d.read) text += line("read", fact);
  if (d.worst.found == d.worst.right)
    text += line("", "largest error 0");
  else
    text += line("", "worst entry: " + place(d.worst) + ": " + off_by(d.worst));
  if (d.worst_ulps > 0)
    text += line("", "largest error of out " + significant(d.worst_ulps, 2) + " ulp of " +
                         name(d.arithmetic) + " (plain attention in that type on these inputs: " +
                         significant(d.plain_ulps, 2) + ")");
  for (const std::string& fact : d.next) text += line("but", fact);
  if (!d.blind.empty()) {
    text += line("but", "this input can't show " + list(d.blind, 12) +
                            (d.probe.empty() ? "; nor would a probe of these shapes" : ""));
  }
  if (!d.probe.empty()) text += line("try", d.probe + " writes inputs that show more");
  return text;
}

std::string first_cause(const Cause& cause, bool is_alone, const Diagnosis& d) {
  std::string text;
  for (std::size_t n = 0; n < cause.mistakes.size(); ++n) {
    const NamedMistake& m = cause.mistakes[n];
    text += line(n > 0 ? "with" : "cause", m.name() + ": " + m.title + ". " + m.done);
    text += line("look for", m.cause);
    text += line("fix", m.fix_code + "   " + m.fix);
  }
  return text +
         line("", std::string(is_alone && cause.telling >= 2 ? "gives" : "is consistent with") +
                      " all " + std::to_string(d.numbers) + " numbers, " +
                      std::to_string(cause.telling) +
                      " of which it sets apart from the right answer");
}

// Other causes of one kind, which differ in their parameters: "mask-finite:-100, -1000".
struct Others {
  std::vector<const Cause*> causes;
  std::string names() const {
    std::string text;
    for (const Cause* cause : causes)
      text += text.empty() ? cause->name() : ", " + cause->mistakes.front().parameter;
    return text;
  }
};

bool is_of_a_kind(const Cause& a, const Cause& b) {
  return a.mistakes.size() == 1 && b.mistakes.size() == 1 && a.is_close == b.is_close &&
         a.mistakes.front().id == b.mistakes.front().id;
}

std::string other_causes(const Diagnosis& d) {
  std::vector<Others> kinds;
  for (std::size_t n = 1; n < d.causes.size(); ++n) {
    const auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const Others& others) {
      return is_of_a_kind(*others.causes.front(), d.causes[n]);
    });
    if (kind == kinds.end())
      kinds.push_back({{&d.causes[n]}});
    else
      kind->causes.push_back(&d.causes[n]);
  }
  std::string text;
  for (std::size_t n = 0; n < std::min(kinds.size(), kMostKinds); ++n) {
    const Cause& cause = *kinds[n].causes.front();
    std::string titles;
    for (const NamedMistake& m : cause.mistakes)
      titles += (titles.empty() ? "" : ", and ") + m.title;
    text += line("or", kinds[n].names() + ": " + titles);
    if (cause.is_close)
      text += line("", "within " + significant(cause.worst, 2) +
                           " tolerances of all numbers: not ruled out, but not the best");
  }
  if (kinds.size() > kMostKinds)
    text +=
        line("or", std::to_string(kinds.size() - kMostKinds) + " more, all of them in the JSON");
  return text;
}

// "row B is", "rows A and C are", "5 rows are" of heads
std::string list_of_rows(const std::vector<std::string>& names) {
  if (names.size() > 1 && names.front().find(" of ") != std::string::npos)
    return std::to_string(names.size()) + " rows are";
  std::string text = names.size() == 1 ? "row " : "rows ";
  for (std::size_t n = 0; n < names.size(); ++n)
    text += (n == 0 ? "" : n + 1 == names.size() ? " and " : ", ") + names[n];
  return text + (names.size() == 1 ? " is" : " are");
}

// Of a row the columns that are printed: all, or a few, the one that is furthest off among them.
struct Columns {
  std::size_t begin = 0, end = 0;
  bool is_cut = false;  // behind

  // Weights to the last visible key.
  explicit Columns(const RowReport& report) : end(report.right.size()) {
    const auto is_nothing = [&](std::size_t n) {
      return report.right[n] == 0 && report.found[n] == 0;
    };
    while (report.claim == "weights" && end > 1 && is_nothing(end - 1)) --end;
    if (end <= kMostColumns) return;
    std::size_t furthest = 0;
    double most = -1;
    for (std::size_t n = 0; n < end; ++n) {
      const double off = std::fabs(report.found[n] - report.right[n]);
      if (off > most || (std::isnan(off) && !std::isnan(most))) {
        most = off;
        furthest = n;
      }
    }
    if (furthest >= kMostColumns) begin = furthest + 1 - kMostColumns;
    is_cut = end > begin + kMostColumns;
    end = begin + kMostColumns;
  }

  std::string text(const std::vector<double>& numbers) const {
    std::string text = begin > 0 ? " ..." : "";
    for (std::size_t n = begin; n < end; ++n) text += " " + wire::fixed(numbers[n], 4);
    return text + (is_cut ? " ..." : "");
  }
};

// "row B has 0.5000 0.5000, should be 0.3302 0.6698"
std::string both_texts(const RowReport& report) {
  const Columns columns(report);
  return "row " + report.row + " has" + columns.text(report.found) + ", should be" +
         columns.text(report.right);
}

// "row B is wrong: 0.3302 0.6698; rows A and C are right", then each wrong row's numbers beside
// what they should be.
std::string text_of_claim(const std::vector<const RowReport*>& reports) {
  std::vector<std::string> right, wrong;
  std::string rows, should_be;
  for (const RowReport* report : reports) {
    if (report->is_right) {
      right.push_back(report->row);
      continue;
    }
    wrong.push_back(report->row);
    should_be = Columns(*report).text(report->right);
    if (wrong.size() <= kMostRows) rows += line("", both_texts(*report));
  }
  std::string summary;
  if (wrong.size() == 1)
    summary = list_of_rows(wrong) + " wrong:" + should_be;
  else if (wrong.size() > 2 * kMostRows)
    summary = std::to_string(wrong.size()) + " rows are wrong";
  else if (!wrong.empty())
    summary = list_of_rows(wrong) + " wrong";
  if (!right.empty()) {
    const bool is_long = reports.size() > 2 * kMostRows && right.size() > 1;
    summary += summary.empty() ? "" : "; ";
    summary += !is_long ? list_of_rows(right) + " right"
                        : std::string(wrong.empty() ? "all " : "the other ") +
                              std::to_string(right.size()) + " rows are right";
  }
  return line(reports.front()->claim, summary) + rows;
}

// By claims, in the order in which a row has them.
std::string small_text(const Diagnosis& d) {
  std::vector<std::vector<const RowReport*>> claims;
  for (const RowReport& report : d.small_rows) {
    const auto same = std::find_if(claims.begin(), claims.end(), [&](const auto& reports) {
      return reports.front()->claim == report.claim;
    });
    if (same == claims.end())
      claims.push_back({&report});
    else
      same->push_back(&report);
  }
  std::string text;
  for (const auto& reports : claims) text += text_of_claim(reports);
  return text;
}

}  // namespace

std::string diagnosis_text(const Diagnosis& d) {
  if (d.is_right()) return right_text(d);
  std::string text = line("WRONG", numbers_line(d));
  for (const std::string& fact : d.read) text += line("read", fact);
  text += line("first", place(d.first_wrong) + ": " + off_by(d.first_wrong));
  text += small_text(d);
  if (!d.causes.empty())
    text += first_cause(d.causes.front(), d.causes.size() == 1, d) + other_causes(d);
  else
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
