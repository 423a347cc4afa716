// A diagnosis as lines for a terminal.
#include <algorithm>
#include <cmath>

#include "doctor/numbers.h"
#include "glasshead/diagnose.h"
#include "wire/decimal.h"

namespace glasshead {
namespace {

using wire::significant;

constexpr std::size_t kLabel = 10;     // columns of a line's label
constexpr std::size_t kMostKinds = 8;  // of other causes, in the text
constexpr std::size_t kMostRows = 4;   // whose right numbers are printed

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
    text += line("but", "this input can't show " + list(d.blind, 12));
    text += line("try", "glasshead doctor --probe DIR with your shapes writes inputs that can");
  }
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
    text += line("or", std::to_string(kinds.size() - kMostKinds) + " more, see --json");
  return text;
}

std::string list_of_rows(const std::vector<std::string>& names) {
  std::string text = names.size() == 1 ? "row " : "rows ";
  for (std::size_t n = 0; n < names.size(); ++n)
    text += (n == 0 ? "" : n + 1 == names.size() ? " and " : ", ") + names[n];
  return text + (names.size() == 1 ? " is right" : " are right");
}

// The right numbers, to the last visible key of weights.
std::string right_numbers(const RowReport& report) {
  std::size_t count = report.right.size();
  while (report.claim == "weights" && count > 1 && report.right[count - 1] == 0) --count;
  std::string text;
  for (std::size_t n = 0; n < count; ++n) text += " " + wire::fixed(report.right[n], 4);
  return text;
}

// "row B is wrong: 0.3302 0.6698; rows A and C are right"
std::string small_text(const Diagnosis& d) {
  std::string text;
  for (std::size_t first = 0; first < d.small_rows.size();) {
    const std::string& claim = d.small_rows[first].claim;
    std::vector<std::string> right;
    std::string summary;
    std::size_t wrong = 0;
    for (; first < d.small_rows.size() && d.small_rows[first].claim == claim; ++first) {
      const RowReport& report = d.small_rows[first];
      if (report.is_right)
        right.push_back(report.row);
      else if (++wrong <= kMostRows)
        summary +=
            (wrong > 1 ? "; " : "") + ("row " + report.row) + " is wrong:" + right_numbers(report);
    }
    if (wrong > kMostRows)
      summary += "; " + std::to_string(wrong - kMostRows) + " more " +
                 (wrong - kMostRows == 1 ? "is" : "are") + " wrong";
    if (!right.empty()) {
      const bool is_long = right.size() + wrong > 2 * kMostRows;
      summary += summary.empty() ? "" : "; ";
      summary += !is_long ? list_of_rows(right)
                          : std::string(wrong > 0 ? "the other " : "all ") +
                                std::to_string(right.size()) + " rows are right";
    }
    text += line(claim, summary);
  }
  return text;
}

}  // namespace

std::string diagnosis_text(const Diagnosis& d) {
  if (d.is_right()) return right_text(d);
  std::string text = line("WRONG", numbers_line(d));
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
