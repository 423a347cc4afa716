// diagnose: judge first, then search the catalogue, then say what is known.
#include "glasshead/diagnose.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/fail.h"
#include "base/math.h"
#include "doctor/examine.h"
#include "doctor/probe_outlook.h"
#include "doctor/relation.h"
#include "doctor/search.h"

namespace glasshead {

using namespace doctor;

namespace {

// Rows, of which a sample of tens finds what a mistake in code does to many: those on which an
// unseen mistake must stay unseen, and those that plain arithmetic is measured on.
constexpr std::size_t kBlindRows = 64, kPlainRows = 256;
constexpr std::size_t kMostNamed = 6;  // more pairs than this that fit are none worth naming

Cause cause_of(const Suspect& suspect, const Program& right) {
  Cause cause;
  for (const Made& made : suspect.made)
    cause.mistakes.push_back(named(*made.fault, made.choice, right));
  cause.worst = suspect.worst;
  cause.telling = suspect.telling;
  cause.is_close = suspect.worst > kFits;
  return cause;
}

// `command` writes a probe of this call.
void name_causes(const std::vector<Suspect>& suspects, const Program& right, ProbeOutlook& outlook,
                 const std::string& command, Diagnosis& d) {
  for (const Suspect& suspect : suspects) d.causes.push_back(cause_of(suspect, right));
  d.verdict = DiagnosisVerdict::mistaken;
  d.pattern.clear();  // follows from the cause
  d.next.clear();
  if (d.causes.size() > 1) {
    if (outlook.tells_apart(suspects)) d.probe = command;
    d.next.push_back(d.probe.empty()
                         ? "this input can't tell these apart, nor would a probe of these shapes: "
                           "look for each of them in your code"
                         : "this input can't tell these apart: run your code on inputs that tell "
                           "more, " +
                               d.probe);
  } else if (d.causes.front().telling < 2) {
    if (!outlook.is_probe()) d.probe = command;
    d.next.push_back("a single number speaks for it" +
                     (d.probe.empty() ? "" : ": make sure with " + d.probe));
  }
}

// Some of so many mistakes fits few digits by chance: the digits must say more than which one.
bool is_evidence(const Suspect& suspect, index_t tried) {
  constexpr double kBeyondChance = 4;  // bits: 1 in 16
  return suspect.evidence >=
         kBeyondChance + math::log(static_cast<double>(std::max<index_t>(1, tried))) / math::log(2);
}

bool is_single_evidence(const Suspect& suspect, const Search& search) {
  return is_evidence(suspect, search.tried()) ||
         (is_evidence(suspect, 1) && is_evidence(suspect, search.rivals(suspect)));
}

// "q holds nan at [0, 1, 5, 3]" for the first number that is not finite of each input.
std::vector<std::string> not_finite(const AttentionCase& attention) {
  std::vector<std::string> found;
  const auto look = [&](const char* name, const ConstTensor<4>& t) {
    for (index_t b = 0; b < t.shape[0]; ++b)
      for (index_t h = 0; h < t.shape[1]; ++h)
        for (index_t l = 0; l < t.shape[2]; ++l)
          for (index_t d = 0; d < t.shape[3]; ++d) {
            const double x = t.load(b, h, l, d);
            if (std::isfinite(x)) continue;
            found.push_back(std::string(name) + " holds " + (std::isnan(x) ? "nan" : "inf") +
                            " at [" + std::to_string(b) + ", " + std::to_string(h) + ", " +
                            std::to_string(l) + ", " + std::to_string(d) + "]");
            return;
          }
  };
  look("q", attention.q);
  look("k", attention.k);
  look("v", attention.v);
  return found;
}

// Whether numbers of this call, or sums of their products, may leave the range of f16.
bool leaves_f16(const AttentionCase& attention) {
  constexpr double kLargest = 65504;
  const auto largest = [](const ConstTensor<4>& t) {
    double most = 0;
    for (index_t b = 0; b < t.shape[0]; ++b)
      for (index_t h = 0; h < t.shape[1]; ++h)
        for (index_t l = 0; l < t.shape[2]; ++l)
          for (index_t d = 0; d < t.shape[3]; ++d)
            most = std::max(most, std::fabs(t.load(b, h, l, d)));
    return most;
  };
  const double q = largest(attention.q), k = largest(attention.k);
  return std::max({q, k, largest(attention.v)}) > kLargest ||
         q * k * static_cast<double>(attention.q.shape[3]) > kLargest;
}

// NaN everywhere, of numbers that f16 can't hold: whatever overflows gives that, so it speaks for
// no overflow.
void leave_out_overflow(std::vector<Suspect>& causes, const Program& right, Diagnosis& d) {
  d.pattern.emplace_back("every number is NaN, and f16 can't hold all that is computed here");
  const auto overflows = [](const Suspect& suspect) {
    return std::string_view(suspect.made.front().fault->id).starts_with("softmax-unshifted");
  };
  const auto first = std::find_if(causes.begin(), causes.end(), overflows);
  if (first == causes.end()) return;
  d.next.push_back(cause_of(*first, right).name() +
                   " would give that here, and so would f16 before the softmax");
  std::erase_if(causes, overflows);
}

// What is looked for beside single mistakes, and looked out for.
struct Leads {
  bool may_overflow = false, may_be_rounding = false, tries_pairs = false;
};

// What may be named for these numbers, best first; d.next says why something is not.
std::vector<Suspect> find_causes(Search& search, const Program& right, const Leads& leads,
                                 Diagnosis& d) {
  std::vector<Suspect> causes = search.single_causes();
  if (leads.may_overflow) {
    leave_out_overflow(causes, right, d);
    if (causes.empty()) return {};
  }
  if (!causes.empty() && !is_single_evidence(causes.front(), search)) {
    d.next.push_back(cause_of(causes.front(), right).name() +
                     " would give these numbers too, but they are so few digits that some mistake "
                     "fits them by chance: no verdict");
    return {};
  }
  if (causes.empty() && leads.tries_pairs) {
    causes = search.pair_causes();
    if (!causes.empty() && !is_evidence(causes.front(), search.tried())) causes.clear();
    if (causes.size() > kMostNamed) {
      d.next.push_back(std::to_string(causes.size()) +
                       " pairs of mistakes give these numbers, so none is named: too few numbers, "
                       "or too like each other");
      return {};
    }
  }
  if (causes.empty() && leads.may_be_rounding) return search.rounding_causes();
  return causes;
}

void add_untried(const Search& search, const PairShape& pairs, Diagnosis& d) {
  for (const std::string& id : search.not_tried())
    d.not_tried.push_back(id + ": needs all " + std::to_string(pairs.q_len) + " x " +
                          std::to_string(pairs.kv_len) + " scores of a head for one row");
  if (search.without_gradients().empty()) return;
  std::string text = "gradients are not known of";
  for (const std::string& id : search.without_gradients()) text += " " + id;
  d.not_tried.push_back(std::move(text));
}

void take(Examined examined, const DiagnoseOptions& options, Diagnosis& d) {
  d.numbers = examined.numbers;
  d.wrong = examined.wrong;
  d.first_wrong = std::move(examined.first_wrong);
  d.worst = std::move(examined.worst);
  if (!options.decimals) d.worst_ulps = examined.worst_ulps;  // of digits: half of the last one
  d.small_rows = std::move(examined.small_rows);
  d.pattern = std::move(examined.pattern);
  d.proven = std::move(examined.proven);
  d.next = std::move(examined.next);
}

// Of numbers that are right: how far from plain arithmetic, and what they could not have shown.
void weigh_right(const Subject& subject, const Judge& judge, const std::vector<RowIndex>& rows,
                 ProbeOutlook& outlook, const std::string& command, Diagnosis& d) {
  // Plain attention errs by a few units; the tolerance, at worst, allows thousands on long rows.
  constexpr double kFarFromPlain = 32;
  d.plain_ulps = plain_ulps(subject, spread(rows, kPlainRows));
  if (d.worst_ulps > kFarFromPlain * std::max(1.0, d.plain_ulps)) {
    if (!outlook.is_probe()) d.probe = command;
    d.next.push_back(
        "rounding can do this here at worst, but plain attention of that type is far nearer: "
        "inputs with smaller scores tell a mistake from rounding" +
        (d.probe.empty() ? "" : ", " + d.probe));
  }
  for (const Made& made : invisible(subject, judge, spread(rows, kBlindRows))) {
    d.blind.push_back(named(*made.fault, made.choice).name());
    if (d.probe.empty() && outlook.shows(made)) d.probe = command;
  }
}

}  // namespace

std::string Cause::name() const {
  std::string text;
  for (const NamedMistake& mistake : mistakes) text += (text.empty() ? "" : " + ") + mistake.name();
  return text;
}

Diagnosis diagnose(const AttentionCase& attention, const Claims& claims,
                   const DiagnoseOptions& options) {
  std::vector<Problem> problems = check_diagnosis(attention, claims, options);
  if (!problems.empty()) fail(ErrorKind::option, "diagnose", std::move(problems));
  Diagnosis d;
  d.arithmetic = options.arithmetic ? *options.arithmetic : narrowest(attention, claims);
  const Subject subject(attention, d.arithmetic, claims.d_out);
  d.rows = attention.q.shape[0] * attention.q.shape[1] * attention.q.shape[2];
  if (d.rows == 0) return d;
  const std::vector<RowIndex> rows = rows_to_check(subject.right, options.most_work);
  d.rows_checked = static_cast<index_t>(rows.size());
  const Judge judge(claims, options.decimals, d.arithmetic);

  Examined examined = examine(subject, judge, rows, options);
  const std::vector<RowIndex> wrong_rows = std::move(examined.wrong_rows);
  const bool are_finite = examined.are_finite, are_nan = examined.nans == examined.numbers;
  take(std::move(examined), options, d);
  ProbeOutlook outlook(attention, claims, d.arithmetic);
  const std::string command =
      options.probe_command.empty() ? probe_command(attention) : options.probe_command;
  if (d.wrong == 0) {
    weigh_right(subject, judge, rows, outlook, command, d);
    return d;
  }
  d.verdict = DiagnosisVerdict::unexplained;
  Search search(subject, judge, rows, wrong_rows);
  const std::vector<std::string> poison =
      are_finite ? std::vector<std::string>{} : not_finite(attention);
  d.pattern.insert(d.pattern.begin(), poison.begin(), poison.end());
  Leads leads;
  leads.may_overflow = are_nan && poison.empty() && leaves_f16(attention);
  // A fault of a few rows lies within the wide bounds of narrow types too.
  leads.may_be_rounding = 2 * wrong_rows.size() >= rows.size();
  leads.tries_pairs = options.tries_pairs;
  const std::vector<Suspect> causes = find_causes(search, subject.right, leads, d);
  d.tried = search.tried();
  add_untried(search, subject.right.pairs(), d);
  if (!causes.empty()) {
    name_causes(causes, subject.right, outlook, command, d);
    return d;
  }
  for (std::string& text : relations(subject, judge, rows)) d.pattern.push_back(std::move(text));
  if (outlook.is_probe()) return d;
  d.probe = command;
  d.next.push_back("run your code on inputs made for the purpose: " + d.probe);
  return d;
}

}  // namespace glasshead
