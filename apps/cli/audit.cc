// glasshead audit: somebody's program, run on the inputs that implementations get wrong.
#include "glasshead/audit.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <unistd.h>
#include <utility>

#include "cli/audit_child.h"
#include "cli/command.h"
#include "cli/values.h"

namespace glasshead::cli {
namespace {

struct AuditArgs {
  std::vector<std::string> command;
  std::string takes = "all", groups, folder, subject, seconds, seed;
  bool serves = false, is_json = false;
};

// Between commas, without the spaces around them: names have some inside.
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  for (const std::string_view part : split_at_commas(text)) {
    const std::size_t first = part.find_first_not_of(' ');
    if (first == std::string_view::npos) continue;
    words.emplace_back(part.substr(first, part.find_last_not_of(' ') + 1 - first));
  }
  return words;
}

std::string names_of(const std::vector<Feature>& features) {
  std::string text;
  for (const Feature feature : features)
    text += (text.empty() ? "" : ", ") + std::string(name(feature));
  return text;
}

std::vector<Feature> read_features(const std::string& text, std::vector<Problem>& problems) {
  const std::vector<Feature> all = all_features();
  if (text == "all") return all;
  if (text == "none") return {};
  std::vector<Feature> taken;
  for (const std::string& word : words_of(text)) {
    const auto found =
        std::find_if(all.begin(), all.end(), [&](Feature f) { return word == name(f); });
    if (found != all.end()) {
      taken.push_back(*found);
      continue;
    }
    problems.push_back({"--takes", "found '" + word + "'; all, none or some of " + names_of(all) +
                                       " are possible"});
  }
  return taken;
}

void own(const AuditCall& call, const MutableTensor<4>& out) {
  if (call.threads == 0) return attend(call.q, call.k, call.v, out, call.options);
  ContextOptions options;
  options.threads = call.threads;
  attend(call.q, call.k, call.v, out, call.options, {}, Context(options));
}

// "audit  12 of 260  causal/end-33x127", written over and over where stderr is a terminal, and gone
// at the end; elsewhere nothing.
class ProgressLine {
 public:
  ProgressLine() {
    const char* terminal = std::getenv("TERM");
    is_shown_ =
        isatty(STDERR_FILENO) == 1 && (terminal == nullptr || std::strcmp(terminal, "dumb") != 0);
  }
  ~ProgressLine() {
    if (is_shown_) std::fputs("\r\x1b[K", stderr);
  }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  AuditProgress shower() const {
    if (!is_shown_) return {};
    return [](index_t done, index_t inputs, const std::string& input) {
      const std::string text =
          "audit  " + std::to_string(done + 1) + " of " + std::to_string(inputs) + "  " + input;
      std::fprintf(stderr, "\r%.79s\x1b[K", text.c_str());
      std::fflush(stderr);
    };
  }

 private:
  bool is_shown_ = false;
};

// Why a view with strides can't be put to a program that reads files.
void say_why_dense(AuditReport& report) {
  for (AuditRow& row : report.rows)
    if (row.verdict == AuditVerdict::not_offered && row.text == name(Feature::strides))
      row.text += ": the tensors in a file are dense";
}

// An audit that asked nothing would pass anything.
void refuse_nothing(const AuditReport& report, const char* where) {
  if (const std::string why = report.why_nothing(); !why.empty())
    throw OptionError("audit", {{where, why}});
}

AuditReport ask(const AuditOptions& options, const ChildOptions& child) {
  AuditRun audit(options);
  AuditChild theirs(child);
  index_t asked = 0, none = 0;  // of them, those answered without numbers
  std::string last;
  while (const AuditCall* call = audit.next()) {
    AuditAnswer answer = theirs.ask(*call);
    ++asked;
    if (answer.kind == Answered::refused ||
        (answer.kind == Answered::out && !answer.text.empty())) {
      ++none;
      last = answer.text;
    }
    audit.answer(std::move(answer));
  }
  // A misspelt command refuses everything, too. (One that serves has said "refused" itself.)
  if (!child.serves && asked > 0 && none == asked)
    throw IoError("audit", {{"COMMAND", "answered none of " + std::to_string(asked) +
                                            " inputs with numbers; its last words: " +
                                            (last.empty() ? "none" : last)}});
  AuditReport report = audit.report();
  say_why_dense(report);
  refuse_nothing(report, asked > 0 ? "COMMAND" : "--takes");
  return report;
}

AuditReport audited(const AuditArgs& args, AuditOptions options, const ChildOptions& child) {
  const ProgressLine line;
  options.progress = line.shower();
  if (!args.command.empty()) return ask(options, child);
  AuditReport report = glasshead::audit(own, options);
  refuse_nothing(report, "--takes");
  return report;
}

int run(const AuditArgs& args) {
  std::vector<Problem> problems;
  AuditOptions options;
  options.takes = read_features(args.takes, problems);
  if (!args.command.empty()) std::erase(options.takes, Feature::strides);  // files are dense
  options.groups = words_of(args.groups);
  options.folder = args.folder;
  ChildOptions child{args.command, args.serves};
  if (!args.seconds.empty()) {
    const std::optional<double> seconds = parse_number(args.seconds);
    if (seconds && *seconds > 0 && *seconds < 1e6)
      child.seconds = *seconds;
    else
      problems.push_back({"--timeout", "found '" + args.seconds + "'; seconds above 0 are needed"});
  }
  if (!args.seed.empty()) {
    const std::optional<std::uint64_t> seed = parse_seed(args.seed);
    if (seed)
      options.seed = *seed;
    else
      problems.push_back({"--seed", "found '" + args.seed + "'; a whole number is needed"});
  }
  options.subject = args.subject;
  for (std::size_t n = 0; n < args.command.size() && args.subject.empty(); ++n)
    options.subject += (n > 0 ? " " : "") + args.command[n];
  if (options.subject.empty()) options.subject = "glasshead " GLASSHEAD_VERSION;
  if (!problems.empty()) throw OptionError("audit", std::move(problems));
  const AuditRun known(options);  // refuses before anything is started
  if (!args.folder.empty()) {
    std::error_code error;
    std::filesystem::create_directories(args.folder, error);
    if (error) throw IoError("audit", {{"--failing", args.folder + ": " + error.message()}});
  }
  const AuditReport report = audited(args, std::move(options), child);
  write_result("", args.is_json ? audit_json(report) + "\n" : audit_text(report));
  return report.has_faults() ? 1 : 0;
}

void add(CLI::App& command, int& exit_code) {
  auto args = std::make_shared<AuditArgs>();
  command.add_option(
      "COMMAND", args->command,
      "After --: the program that computes attention. {in} and {out} in its arguments, or two "
      "arguments at their end, are the .safetensors files that it reads and writes. Without it: "
      "the library's own attention");
  command.add_flag("--serve", args->serves,
                   "Start it once: each line on its stdin is IN, a tab, OUT; it answers \"ok\" or "
                   "\"refused WHY\"");
  const auto text = [&](const char* flag, std::string& to, const char* type,
                        const char* description) {
    command.add_option(flag, to, description)->type_name(type);
  };
  const std::string features = names_of(all_features());
  text("--takes", args->takes, "LIST",
       ("What it knows beside q, k, v: all, none, or some of " + features +
        " (default all; strides not through files, whose tensors are dense)")
           .c_str());
  text("--groups", args->groups, "LIST", "Only these groups of inputs, \"shapes,empty rows\"");
  text("--timeout", args->seconds, "S", "Seconds that it has for an answer (default 20)");
  text("--seed", args->seed, "N", "Of the random numbers (default 1)");
  text("--failing", args->folder, "DIR",
       "Write the smallest failing input of each fault to this folder");
  text("--name", args->subject, "NAME", "What the report calls it (default: the command)");
  command.add_flag("--json", args->is_json, "Write the report as JSON");
  command.callback([args, &exit_code] { exit_code = run(*args); });
}

}  // namespace

const Command kAudit{"audit",
                     "Run somebody's attention on the inputs that implementations get wrong",
                     "# a program that reads one .safetensors file and writes another\n"
                     "glasshead audit --takes mask,causal-end -- python3 theirs.py\n"
                     "# one process for all inputs, and the failing ones kept for the doctor\n"
                     "glasshead audit --serve --failing failing -- python3 serve.py\n"
                     "# a program that takes more than its files\n"
                     "glasshead audit --takes none -- ./attention {in} {out} 8\n",
                     add};

}  // namespace glasshead::cli
