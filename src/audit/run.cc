// The audit, one call after another.
#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <map>
#include <utility>

#include "audit/inputs.h"
#include "audit/judgement.h"
#include "base/fail.h"

namespace glasshead {

using namespace audits;

namespace {
constexpr std::size_t kMostNamed = 12;     // mistakes of one row
constexpr std::size_t kMostWitnesses = 8;  // right answers that speak against them
}  // namespace

struct AuditRun::Impl {
  AuditOptions options;
  std::vector<Input> inputs;
  std::size_t at = 0;      // the input that is being asked
  bool is_second = false;  // of its relation's two calls
  MadeCall made;           // the call that was handed out
  FileTensor first;        // the answer to the first call of a relation
  std::vector<AuditRow> rows;

  // The smallest failing input of each fault.
  struct Failing {
    index_t size = 0;
    std::size_t row = 0;
    std::vector<std::byte> file;
    std::string command;
  };
  std::map<std::string, Failing> failing;
  std::vector<std::vector<std::string>>
      explaining;  // by rows: all mistakes that give their numbers
  std::map<std::size_t, std::vector<std::string>> unseen;  // by right rows, in which they hide

  bool takes(Feature feature) const {
    return std::find(options.takes.begin(), options.takes.end(), feature) != options.takes.end();
  }
  std::string missing(const Input& input) const;
  AuditRow row_of(const Input& input) const;
  void rule_out(const Input& input, AuditRow& row);
  void finish(AuditRow row, std::vector<std::string> mistakes);
  void keep(const AuditRow& row, const AuditAnswer& answer);
};

// What the input needs and the function does not take; empty if it is all there.
std::string AuditRun::Impl::missing(const Input& input) const {
  std::string text;
  for (const Feature feature : needs(input))
    if (!takes(feature)) text += (text.empty() ? "" : ", ") + std::string(name(feature));
  if (input.causal && !takes(Feature::causal_start) && !takes(Feature::causal_end) &&
      text.find("causal") == std::string::npos)
    text += (text.empty() ? "" : ", ") + std::string("causal");
  return text;
}

// Whether two inputs ask for the same things, in whatever shapes and types.
bool is_alike(const Input& a, const Input& b) {
  const auto asks = [](const Input& x) {
    return std::array<int, 7>{static_cast<int>(x.dtype),
                              x.hide != Hide::none,
                              x.form != Form::boolean,
                              x.causal.has_value(),
                              x.window.has_value(),
                              !x.key_lengths.empty(),
                              x.softcap > 0};
  };
  return asks(a) == asks(b);
}

// Of the mistakes that explain an answer those stay that explain most of the wrong answers:
// `explaining` has all of each row.
void take_commonest(const std::vector<std::vector<std::string>>& explaining, AuditRow& row) {
  if (row.mistakes.size() < 2) return;
  std::vector<std::size_t> counts;
  for (const std::string& mistake : row.mistakes)
    counts.push_back(static_cast<std::size_t>(std::count_if(
        explaining.begin(), explaining.end(),
        [&](const auto& all) { return std::find(all.begin(), all.end(), mistake) != all.end(); })));
  const std::size_t most = *std::max_element(counts.begin(), counts.end());
  std::vector<std::string> left;
  for (std::size_t m = 0; m < counts.size(); ++m)
    if (counts[m] == most) left.push_back(row.mistakes[m]);
  row.mistakes = std::move(left);
}

// Right answers to inputs of the same kind speak against mistakes that would have shown in them:
// those that fewest speak against stay. (All may be contradicted where a fault is one of this shape
// alone.)
void AuditRun::Impl::rule_out(const Input& input, AuditRow& row) {
  std::vector<std::size_t> against(row.mistakes.size(), 0);
  std::size_t witnesses = 0;
  for (std::size_t n = rows.size(); n-- > 0 && witnesses < kMostWitnesses;) {
    if (rows[n].verdict != AuditVerdict::right || !is_alike(inputs[n], input)) continue;
    const MadeCall other = make_call(inputs[n], options.seed, false);
    if (work_of(other.call) > kDiagnosedWork) continue;
    ++witnesses;
    if (!unseen.contains(n)) unseen[n] = unseen_mistakes(other.call);
    const std::vector<std::string>& hidden = unseen[n];
    for (std::size_t m = 0; m < against.size(); ++m)
      if (std::find(hidden.begin(), hidden.end(), row.mistakes[m]) == hidden.end()) ++against[m];
  }
  const std::size_t least = *std::min_element(against.begin(), against.end());
  std::vector<std::string> left;
  for (std::size_t m = 0; m < against.size(); ++m)
    if (against[m] == least && left.size() < kMostNamed) left.push_back(row.mistakes[m]);
  row.mistakes = std::move(left);
}

AuditRow AuditRun::Impl::row_of(const Input& input) const {
  AuditRow row;
  row.group = input.group;
  row.input = input.name;
  return row;
}

void AuditRun::Impl::finish(AuditRow row, std::vector<std::string> mistakes) {
  explaining.push_back(std::move(mistakes));
  rows.push_back(std::move(row));
  ++at;
  is_second = false;
}

namespace {

index_t numbers_in(const AuditCall& call) {
  index_t count = 0;
  for (const ConstTensor<4>* x : {&call.q, &call.k, &call.v})
    count += x->shape[0] * x->shape[1] * x->shape[2] * x->shape[3];
  return count;
}

// As a shell takes it for one word.
std::string quoted(const std::string& text) {
  const auto is_plain = [](unsigned char c) {
    return std::isalnum(c) != 0 || std::strchr("/._-+=:,@%", c) != nullptr;
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), is_plain)) return text;
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

// Flags of `glasshead doctor` for this call, kept in the file `path`.
std::string doctor_command(const AuditCall& call, const std::string& path, bool has_out) {
  const std::string file = quoted(path);
  std::string text = "glasshead doctor --qkv " + file;
  if (call.mask.data != nullptr) text += " --mask " + file + ":mask";
  if (call.bias.data != nullptr) text += " --bias " + file + ":bias";
  for (const auto& [key, value] : audits::metadata(call)) {
    if (key == "threads") continue;
    std::string flag = "--" + key;
    std::replace(flag.begin(), flag.end(), '_', '-');
    text += " " + flag + "=" + value;
  }
  return has_out ? text + " --out " + file + ":out" : text;
}

std::string file_name(const AuditRow& row) {
  std::string text = row.group + "-" + row.input + ".safetensors";
  std::replace(text.begin(), text.end(), ' ', '-');
  return text;
}

}  // namespace

void AuditRun::Impl::keep(const AuditRow& row, const AuditAnswer& answer) {
  if (options.folder.empty()) return;
  std::string fault = std::string(name(row.verdict)) + ": ";
  if (row.verdict == AuditVerdict::wrong && !row.mistakes.empty())
    fault += row.mistakes.front();
  else if (row.verdict == AuditVerdict::wrong || row.verdict == AuditVerdict::crashes ||
           row.verdict == AuditVerdict::hangs)
    fault += row.group;
  else
    return;
  const index_t size = numbers_in(made.call);
  const auto found = failing.find(fault);
  if (found != failing.end() && found->second.size <= size) return;
  const bool has_out = answer.kind == Answered::out && is_whole(answer.out);
  const std::string path = options.folder + "/" + file_name(row);
  failing[fault] = {size, rows.size(), audit_file(made.call, has_out ? &answer.out : nullptr),
                    doctor_command(made.call, path, has_out)};
}

AuditRun::AuditRun(const AuditOptions& options) : impl_(std::make_unique<Impl>()) {
  std::vector<Problem> problems;
  const std::vector<std::string> known = audit_groups();
  for (const std::string& group : options.groups) {
    if (std::find(known.begin(), known.end(), group) != known.end()) continue;
    std::string text = "there is no group '" + group + "'; there are ";
    for (std::size_t n = 0; n < known.size(); ++n) text += (n > 0 ? ", " : "") + known[n];
    problems.push_back({"groups", text});
  }
  if (!problems.empty()) fail(ErrorKind::option, "audit", std::move(problems));
  impl_->options = options;
  for (Input& input : all_inputs())
    if (options.groups.empty() || std::find(options.groups.begin(), options.groups.end(),
                                            input.group) != options.groups.end())
      impl_->inputs.push_back(std::move(input));
}

AuditRun::~AuditRun() = default;
AuditRun::AuditRun(AuditRun&&) noexcept = default;
AuditRun& AuditRun::operator=(AuditRun&&) noexcept = default;

index_t AuditRun::inputs() const { return static_cast<index_t>(impl_->inputs.size()); }
index_t AuditRun::inputs_done() const { return static_cast<index_t>(impl_->at); }

const AuditCall* AuditRun::next() {
  Impl& run = *impl_;
  for (; run.at < run.inputs.size();) {
    const Input& input = run.inputs[run.at];
    const std::string missing = run.missing(input);
    run.made = make_call(input, run.options.seed, run.is_second);
    if (missing.empty()) {
      if (run.options.progress && !run.is_second)
        run.options.progress(inputs_done(), inputs(), run.made.call.input);
      return &run.made.call;
    }
    AuditRow row = run.row_of(input);
    row.what = words(run.made.call);
    row.verdict = AuditVerdict::not_offered;
    row.text = missing;
    run.finish(std::move(row), {});
  }
  return nullptr;
}

void AuditRun::answer(AuditAnswer answer) {
  Impl& run = *impl_;
  if (run.at >= run.inputs.size()) return;
  const Input& input = run.inputs[run.at];
  AuditRow row = run.row_of(input);
  row.what = words(run.made.call);
  const bool is_first_of_group =
      std::none_of(run.rows.begin(), run.rows.end(), [&](const AuditRow& done) {
        return done.group == row.group && done.verdict == AuditVerdict::wrong;
      });
  judge_answer(run.made.call, answer, is_first_of_group, row);
  const bool is_right = row.verdict == AuditVerdict::right;
  if (is_right && input.relation != Relation::none && !run.is_second) {
    run.first = std::move(answer.out);
    run.is_second = true;
    return;
  }
  if (is_right && run.is_second) judge_bits(run.made.call, input, run.first, answer.out, row);
  std::vector<std::string> all = row.mistakes;
  if (row.mistakes.size() > 1) run.rule_out(input, row);
  run.keep(row, answer);
  run.finish(std::move(row), std::move(all));
}

AuditReport AuditRun::report() const {
  const Impl& run = *impl_;
  AuditReport report{run.options.subject, run.options.takes, run.options.seed, run.rows};
  for (AuditRow& row : report.rows) take_commonest(run.explaining, row);
  for (const auto& [fault, kept] : run.failing) {
    AuditRow& row = report.rows[kept.row];
    row.file = run.options.folder + "/" + file_name(row);
    row.command = kept.command;
    write_bytes(row.file, kept.file);
  }
  return report;
}

AuditReport audit(const AuditFunction& attend, const AuditOptions& options) {
  AuditRun run(options);
  while (const AuditCall* call = run.next()) {
    const auto shape = call->out_shape();
    AuditAnswer answer;
    answer.out = make_tensor(call->q.dtype, {shape.begin(), shape.end()});
    const MutableTensor<4> out(answer.out.bytes.data(), call->q.dtype, shape, row_major(shape));
    for (index_t n = 0; n < answer.out.size(); ++n)
      store_element(out.data, out.dtype, n, std::numeric_limits<double>::quiet_NaN());
    try {
      attend(*call, out);
    } catch (const std::exception& refusal) {
      answer.kind = Answered::refused;
      answer.text = refusal.what();
    }
    run.answer(std::move(answer));
  }
  return run.report();
}

}  // namespace glasshead
