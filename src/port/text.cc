// A report as lines for a terminal.
#include <algorithm>

#include "glasshead/port.h"
#include "wire/decimal.h"

namespace glasshead {
namespace {

using wire::significant;

constexpr std::size_t kLabel = 10;  // columns of a line's label, as the doctor's
constexpr std::size_t kMostNames = 6;
constexpr std::size_t kMostOthers = 6;

std::string line(std::string label, const std::string& text) {
  label.resize(std::max(label.size() + 1, kLabel), ' ');
  return label + text + "\n";
}

std::string count(index_t n, const char* one, const char* many) {
  return std::to_string(n) + " " + (n == 1 ? one : many);
}

std::string called(const PortPlace& place) {
  std::string text = place.name;
  if (place.theirs != place.name) text += " (" + place.theirs + ")";
  return text;
}

std::string index(const PortPlace& place) {
  std::string text = "[";
  for (std::size_t n = 0; n < place.worst.size(); ++n)
    text += (n > 0 ? ", " : "") + std::to_string(place.worst[n]);
  return text + "]";
}

std::string numbers(const PortPlace& place) {
  return index(place) + " is " + significant(place.found, 7) + ", should be " +
         significant(place.right, 7);
}

// The right places before the first wrong one, and the one among them that is furthest off.
std::string right_line(const PortReport& report) {
  std::size_t right = 0;
  while (right < report.places.size() && report.places[right].is_right) ++right;
  if (right == 0) return line("right", "no place before it is in the file");
  const auto worst = std::max_element(
      report.places.begin(), report.places.begin() + static_cast<std::ptrdiff_t>(right),
      [](const PortPlace& a, const PortPlace& b) { return a.error < b.error; });
  std::string text = count(static_cast<index_t>(right), "place", "places");
  if (right < report.places.size()) text += " up to " + called(report.places[right - 1]);
  return line("right", text + "; largest error " + significant(worst->error, 2) +
                           " of the largest number, at " + worst->name);
}

std::string layout_lines(const PortReport& report) {
  std::vector<std::pair<std::string, std::vector<std::string>>> layouts;
  for (const PortPlace& place : report.places) {
    // Of a wrong place the layout is a guess: the one that is least wrong.
    if (place.layout.empty() || !place.is_right) continue;
    const auto same = std::find_if(layouts.begin(), layouts.end(),
                                   [&](const auto& one) { return one.first == place.layout; });
    if (same == layouts.end())
      layouts.push_back({place.layout, {place.theirs}});
    else
      same->second.push_back(place.theirs);
  }
  std::string text;
  for (const auto& [layout, names] : layouts) {
    std::string all;
    for (std::size_t n = 0; n < std::min(names.size(), kMostNames); ++n)
      all += (n > 0 ? ", " : "") + names[n];
    if (names.size() > kMostNames)
      all += " and " + std::to_string(names.size() - kMostNames) + " more";
    text += line("layout", layout + ": " + all);
  }
  return text;
}

std::string cause_lines(const PortFinding& finding) {
  const PortCause& cause = finding.causes.front();
  std::string text = line("cause", cause.name() + ": " + cause.title + ". " + cause.done);
  text += line("look for", cause.cause);
  text += line("fix", cause.fix);
  if (cause.is_doctors)
    text += line("", "made " + cause.where + " it gives their attention, number by number");
  else
    text += line("", "made " + cause.where + " it gives their numbers here (largest error " +
                         significant(cause.error, 2) + ")");
  for (std::size_t n = 1; n < std::min(finding.causes.size(), kMostOthers + 1); ++n)
    text += line("or", finding.causes[n].name() + ": " + finding.causes[n].title);
  if (finding.causes.size() > kMostOthers + 1)
    text +=
        line("or", std::to_string(finding.causes.size() - kMostOthers - 1) + " more, see --json");
  return text;
}

std::string finding_lines(const PortReport& report, std::size_t n) {
  const PortFinding& finding = report.findings[n];
  const PortPlace& place = finding.place;
  std::string text =
      line(n == 0 ? "first" : "then", called(place) + ": error " + significant(place.error, 2) +
                                          " of the largest number, rounding explains " +
                                          significant(place.tolerance, 2));
  text += line("", numbers(place));
  if (finding.causes.empty()) {
    text += line("cause", "no mistake of the catalogue, made between " +
                              (finding.after.empty() ? std::string("the ids") : finding.after) +
                              " and here, gives these numbers (" + std::to_string(report.tried) +
                              " tried)");
    if (finding.after.empty() || finding.facts.empty())
      text += line("next",
                   "dump more places between them: `glasshead run MODEL --tap NAME` names "
                   "them all");
  } else {
    text += cause_lines(finding);
  }
  for (const std::string& fact : finding.facts) text += line("where", fact);
  return text;
}

// Whether the causes found explain all that is wrong.
std::string sum_line(const PortReport& report) {
  if (!report.explains_everything) return "";
  const std::size_t count = report.findings.size();
  return line("then", count == 1 ? "every place behind it is right with this mistake made: it "
                                   "explains everything"
                                 : "every place behind it is right with these " +
                                       std::to_string(count) + " mistakes made");
}

}  // namespace

std::string port_text(const PortReport& report) {
  const auto places = static_cast<index_t>(report.places.size());
  const auto wrong = std::count_if(report.places.begin(), report.places.end(),
                                   [](const PortPlace& place) { return !place.is_right; });
  std::string text;
  const std::string end = ", " + count(report.tokens, "token", "tokens") + ", " +
                          name(report.arithmetic) + " arithmetic";
  if (report.is_right())
    text += line("RIGHT", count(places, "place", "places") + " compared" + end);
  else
    text += line("WRONG", std::to_string(wrong) + " of " + count(places, "place", "places") +
                              " are wrong" + end);
  text += right_line(report);
  text += layout_lines(report);
  for (std::size_t n = 0; n < report.findings.size(); ++n) text += finding_lines(report, n);
  if (!report.is_right()) text += sum_line(report);
  if (!report.notes.empty()) {
    std::string names;
    for (std::size_t n = 0; n < std::min(report.notes.size(), kMostNames); ++n)
      names += (n > 0 ? ", " : "") + report.notes[n];
    if (report.notes.size() > kMostNames)
      names += " and " + std::to_string(report.notes.size() - kMostNames) + " more";
    text += line("unread", "no place has the name of " + names);
  }
  return text;
}

}  // namespace glasshead
