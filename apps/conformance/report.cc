#include "conformance/report.h"

#include <algorithm>
#include <cmath>

namespace glasshead::conformance {
namespace {

const char* name(Outcome outcome) {
  switch (outcome) {
    case Outcome::passed:
      return "passed";
    case Outcome::failed:
      return "failed";
    default:
      return "skipped";
  }
}

double excess(const Failure& failure) {
  if (!failure.sentence.empty() || !std::isfinite(failure.error_ulp)) return INFINITY;
  return failure.limit_ulp > 0 ? failure.error_ulp / failure.limit_ulp : INFINITY;
}

// JSON has no infinities: they are strings, as in the golden data.
nlohmann::json number(double x) {
  if (std::isfinite(x)) return x;
  return text(x);
}

nlohmann::json to_json(const Failure& failure) {
  nlohmann::json out{{"run", failure.run}, {"quantity", failure.quantity}};
  if (!failure.sentence.empty()) {
    out["what"] = failure.sentence;
    return out;
  }
  out["index"] = failure.index;
  out["got"] = number(failure.got);
  out["expected"] = number(failure.expected);
  out["error_ulp"] = number(failure.error_ulp);
  out["limit_ulp"] = number(failure.limit_ulp);
  return out;
}

}  // namespace

CaseResult named(std::string name) {
  CaseResult result;
  result.name = std::move(name);
  return result;
}

CaseResult skipped(std::string name, std::string reason) {
  CaseResult result = named(std::move(name));
  result.outcome = Outcome::skipped;
  result.reason = std::move(reason);
  return result;
}

void CaseResult::add(std::optional<Failure> failure, const std::string& run) {
  if (!failure) return;
  failure->run = run;
  outcome = Outcome::failed;
  failures.push_back(std::move(*failure));
}

void CaseResult::add_refusal(const Error& error) {
  add(in_words("", std::string("refused: ") + error.what()), "");
}

index_t FolderReport::count(Outcome outcome) const {
  return std::count_if(cases.begin(), cases.end(),
                       [outcome](const CaseResult& c) { return c.outcome == outcome; });
}

std::map<std::string, index_t> FolderReport::skipped_by_reason() const {
  std::map<std::string, index_t> reasons;
  for (const CaseResult& c : cases) {
    if (c.outcome == Outcome::skipped) ++reasons[c.reason];
  }
  return reasons;
}

std::string text(const FolderReport& report) {
  std::string out;
  for (const CaseResult& c : report.cases) {
    if (c.outcome != Outcome::failed) continue;
    const auto worst =
        std::max_element(c.failures.begin(), c.failures.end(),
                         [](const Failure& a, const Failure& b) { return excess(a) < excess(b); });
    out += "FAIL " + c.name + ": " + text(*worst);
    if (c.failures.size() > 1) out += " (and " + std::to_string(c.failures.size() - 1) + " more)";
    out += "\n";
  }
  for (const auto& [reason, count] : report.skipped_by_reason()) {
    out += "skipped " + std::to_string(count) + ": " + reason + "\n";
  }
  out += report.folder + ": " + std::to_string(report.count(Outcome::passed)) + " passed, " +
         std::to_string(report.count(Outcome::failed)) + " failed";
  const index_t skipped = report.count(Outcome::skipped);
  if (skipped > 0) out += ", " + std::to_string(skipped) + " skipped";
  return out + "\n";
}

nlohmann::json to_json(const FolderReport& report) {
  nlohmann::json cases = nlohmann::json::array();
  for (const CaseResult& c : report.cases) {
    nlohmann::json entry{{"name", c.name}, {"outcome", name(c.outcome)}};
    if (c.outcome == Outcome::skipped) entry["reason"] = c.reason;
    for (const Failure& failure : c.failures) entry["failures"].push_back(to_json(failure));
    cases.push_back(std::move(entry));
  }
  return {{"folder", report.folder},
          {"format", report.format},
          {"passed", report.count(Outcome::passed)},
          {"failed", report.count(Outcome::failed)},
          {"skipped", report.count(Outcome::skipped)},
          {"cases", std::move(cases)}};
}

}  // namespace glasshead::conformance
