// The report: counts, a table for a terminal, JSON.
#include <algorithm>
#include <array>
#include <utility>

#include "audit/inputs.h"
#include "wire/decimal.h"
#include "wire/json_writer.h"

namespace glasshead {
namespace {

constexpr std::array kVerdicts{AuditVerdict::right,      AuditVerdict::varies,  AuditVerdict::wrong,
                               AuditVerdict::refuses,    AuditVerdict::crashes, AuditVerdict::hangs,
                               AuditVerdict::not_offered};
constexpr std::size_t kGroupWidth = 12, kInputWidth = 44;

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

std::string right_aligned(const std::string& text, std::size_t width) {
  return std::string(width - std::min(width, text.size()), ' ') + text;
}

index_t count_of(const AuditReport& report, const std::string& group, AuditVerdict verdict) {
  return std::count_if(report.rows.begin(), report.rows.end(), [&](const AuditRow& row) {
    return (group.empty() || row.group == group) && row.verdict == verdict;
  });
}

// "scale-missing or mask-finite:-100..finfo.min": one mistake with several parameters once.
std::string joined(const std::vector<std::string>& mistakes) {
  const auto id = [](const std::string& name) { return name.substr(0, name.find(':')); };
  std::string text;
  for (std::size_t n = 0; n < mistakes.size();) {
    std::size_t last = n;
    while (last + 1 < mistakes.size() && id(mistakes[last + 1]) == id(mistakes[n])) ++last;
    text += (n > 0 ? " or " : "") + mistakes[n];
    if (last > n) text += ".." + mistakes[last].substr(mistakes[last].find(':') + 1);
    n = last + 1;
  }
  return text;
}

std::string table_text(const AuditReport& report) {
  std::vector<AuditVerdict> shown;
  for (const AuditVerdict verdict : kVerdicts)
    if (verdict == AuditVerdict::right || report.count(verdict) > 0) shown.push_back(verdict);
  std::string text = padded("", kGroupWidth);
  for (const AuditVerdict verdict : shown) text += right_aligned(name(verdict), 13);
  text += "\n";
  const auto line = [&](const std::string& label, const std::string& group) {
    text += padded(label, kGroupWidth);
    for (const AuditVerdict verdict : shown) {
      const index_t count = count_of(report, group, verdict);
      text += right_aligned(count == 0 ? "." : std::to_string(count), 13);
    }
    text += "\n";
  };
  std::string last;
  for (const AuditRow& row : report.rows)
    if (row.group != last) line(last = row.group, row.group);
  line("all", "");
  return text;
}

// What a line says of a row: rows that say the same are one line.
std::string saying(const AuditRow& row) {
  if (!row.mistakes.empty()) return joined(row.mistakes);
  return row.text;
}

// Lines of the rows with a verdict, those that say the same in a group together.
std::string lines(const AuditReport& report, AuditVerdict verdict) {
  std::string text;
  for (std::size_t n = 0; n < report.rows.size(); ++n) {
    const AuditRow& row = report.rows[n];
    const auto is_same = [&](const AuditRow& other) {
      return other.verdict == verdict && other.group == row.group && saying(other) == saying(row);
    };
    const auto end = report.rows.begin() + static_cast<std::ptrdiff_t>(n);
    if (row.verdict != verdict || std::any_of(report.rows.begin(), end, is_same)) continue;
    std::vector<std::string> inputs;
    for (const AuditRow& other : report.rows)
      if (is_same(other)) inputs.push_back(other.input);
    std::string label = row.group + "/" + inputs.front();
    if (inputs.size() > 1) label += " and " + std::to_string(inputs.size() - 1) + " more";
    text += "  " + padded(label, kInputWidth) + "  " + saying(row) + "\n";
    const std::string indent = "  " + padded("", kInputWidth) + "  ";
    if (!row.mistakes.empty()) text += indent + row.text + "\n";
    for (const AuditRow& other : report.rows)
      if (is_same(other) && !other.command.empty())
        text += indent + "look: " + other.command + "\n";
  }
  if (!text.empty()) text = std::string("\n") + name(verdict) + "\n" + text;
  return text;
}

// What inputs are not offered for, each reason with its number of inputs, the commonest first.
std::vector<std::pair<std::string, index_t>> reasons(const AuditReport& report) {
  std::vector<std::pair<std::string, index_t>> all;
  for (const AuditRow& row : report.rows) {
    if (row.verdict != AuditVerdict::not_offered) continue;
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const auto& x) { return x.first == row.text; });
    if (found == all.end())
      all.emplace_back(row.text, 1);
    else
      ++found->second;
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  return all;
}

std::string reasons_text(const AuditReport& report) {
  std::string text;
  for (const auto& [reason, count] : reasons(report))
    text += right_aligned(std::to_string(count), 6) + "  " + reason + "\n";
  return text.empty() ? text : "\nnot offered\n" + text;
}

// The largest errors in each type.
std::string accuracy_text(const AuditReport& report) {
  std::string text;
  for (const AuditRow& row : report.rows)
    if (row.group == "accuracy" && row.verdict == AuditVerdict::right)
      text += "  " + padded(row.input, kInputWidth) + "  " + wire::significant(row.ulps, 2) +
              " ulp (plain attention in that type: " + wire::significant(row.plain_ulps, 2) + ")\n";
  return text.empty() ? text : "\nlargest error of out against f64\n" + text;
}

}  // namespace

const char* name(AuditVerdict verdict) {
  constexpr std::array kNames{"right",   "varies", "wrong",      "refuses",
                              "crashes", "hangs",  "not offered"};
  return kNames[static_cast<std::size_t>(verdict)];
}

namespace {
constexpr std::array kFeatures{"mask",        "bias",  "causal-start", "causal-end",    "window",
                               "key-lengths", "scale", "softcap",      "grouped-heads", "other-d-v",
                               "f64",         "bf16",  "f16",          "strides",       "threads"};
}  // namespace

const char* name(Feature feature) { return kFeatures[static_cast<std::size_t>(feature)]; }

std::vector<Feature> all_features() {
  std::vector<Feature> all;
  for (std::size_t n = 0; n < kFeatures.size(); ++n) all.push_back(static_cast<Feature>(n));
  return all;
}

std::vector<std::string> audit_groups() {
  std::vector<std::string> groups;
  for (const audits::Input& input : audits::all_inputs())
    if (groups.empty() || groups.back() != input.group) groups.emplace_back(input.group);
  return groups;
}

index_t AuditReport::count(AuditVerdict verdict) const { return count_of(*this, "", verdict); }

bool AuditReport::has_faults() const {
  return count(AuditVerdict::wrong) + count(AuditVerdict::crashes) + count(AuditVerdict::hangs) > 0;
}

std::string AuditReport::why_nothing() const {
  if (rows.empty()) return "there is no input";
  if (count(AuditVerdict::not_offered) < static_cast<index_t>(rows.size())) return {};
  constexpr std::size_t kMostReasons = 3;
  const auto all = reasons(*this);
  std::string text = "none of " + std::to_string(rows.size()) + " inputs is offered: ";
  for (std::size_t n = 0; n < std::min(all.size(), kMostReasons); ++n)
    text += (n > 0 ? "; " : "") + all[n].first + " (" + std::to_string(all[n].second) + ")";
  if (all.size() > kMostReasons)
    text += "; and " + std::to_string(all.size() - kMostReasons) + " more reasons";
  return text;
}

std::string audit_text(const AuditReport& report) {
  std::string text =
      "audit of " + report.subject + ": " + std::to_string(report.rows.size()) + " inputs\n";
  text += table_text(report);
  for (const AuditVerdict verdict :
       {AuditVerdict::crashes, AuditVerdict::hangs, AuditVerdict::wrong, AuditVerdict::varies,
        AuditVerdict::refuses})
    text += lines(report, verdict);
  return text + reasons_text(report) + accuracy_text(report);
}

std::string audit_json(const AuditReport& report) {
  std::string text;
  wire::JsonWriter json([&](std::string_view piece) { text.append(piece); });
  json.begin_object();
  json.key("schema").value("glasshead.audit/1");
  json.key("subject").value(report.subject);
  json.key("seed").raw(std::to_string(report.seed));  // beyond int64, too
  json.key("takes").begin_array();
  for (const Feature feature : report.takes) json.value(name(feature));
  json.end_array();
  json.key("counts").begin_object();
  for (const AuditVerdict verdict : kVerdicts) json.key(name(verdict)).value(report.count(verdict));
  json.end_object();
  json.key("rows").begin_array();
  for (const AuditRow& row : report.rows) {
    json.begin_object();
    json.key("group").value(row.group);
    json.key("input").value(row.input);
    json.key("what").value(row.what);
    json.key("verdict").value(name(row.verdict));
    json.key("text").value(row.text);
    json.key("mistakes").values(std::span<const std::string>(row.mistakes));
    json.key("ulps").value(row.ulps);
    json.key("plain_ulps").value(row.plain_ulps);
    if (!row.file.empty()) json.key("file").value(row.file);
    if (!row.command.empty()) json.key("command").value(row.command);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  json.flush();
  return text;
}

}  // namespace glasshead
