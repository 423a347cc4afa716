// diagnose: judge first, then search the catalogue, then say what is known.
#include "glasshead/diagnose.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/fail.h"
#include "base/math.h"
#include "doctor/examine.h"
#include "doctor/relation.h"
#include "doctor/search.h"

namespace glasshead {

using namespace doctor;

namespace {

constexpr std::size_t kBlindRows = 64;   // rows on which an unseen mistake must stay unseen
constexpr std::size_t kPlainRows = 256;  // rows that plain arithmetic is measured on
constexpr std::size_t kMostNamed = 6;    // more pairs than this that fit are none worth naming

std::vector<RowIndex> some_of(const std::vector<RowIndex>& rows, std::size_t count) {
  if (rows.size() <= count) return rows;
  std::vector<RowIndex> some;
  for (std::size_t n = 0; n < count; ++n) some.push_back(rows[n * (rows.size() - 1) / (count - 1)]);
  return some;
}

Cause cause_of(const Suspect& suspect) {
  Cause cause;
  for (const Made& made : suspect.made) cause.mistakes.push_back(named(*made.fault, made.choice));
  cause.worst = suspect.worst;
  cause.telling = suspect.telling;
  cause.is_close = suspect.worst > kFits;
  return cause;
}

void name_causes(const std::vector<Suspect>& suspects, Diagnosis& d) {
  for (const Suspect& suspect : suspects) d.causes.push_back(cause_of(suspect));
  d.verdict = DiagnosisVerdict::mistaken;
  d.pattern.clear();  // follows from the cause
  d.next.clear();
  if (d.causes.size() > 1)
    d.next.emplace_back(
        "this input can't tell these apart: run your code on inputs that can, "
        "glasshead doctor --probe DIR with your shapes");
  else if (d.causes.front().telling < 2)
    d.next.emplace_back(
        "a single number speaks for it: make sure with glasshead doctor --probe DIR");
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

bool is_rounding_everywhere(const Examined& examined, const std::vector<RowIndex>& rows) {
  // A fault of a few rows lies within the wide bounds of narrow types too.
  return 2 * examined.wrong_rows.size() >= rows.size();
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
void leave_out_overflow(std::vector<Suspect>& causes, Diagnosis& d) {
  d.pattern.emplace_back("every number is NaN, and f16 can't hold all that is computed here");
  const auto overflows = [](const Suspect& suspect) {
    return std::string_view(suspect.made.front().fault->id) == "softmax-unshifted";
  };
  const auto first = std::find_if(causes.begin(), causes.end(), overflows);
  if (first == causes.end()) return;
  d.next.push_back(cause_of(*first).name() +
                   " would give that here, and so would f16 before the softmax");
  std::erase_if(causes, overflows);
}

void find_causes(Search& search, const Examined& examined, const std::vector<RowIndex>& rows,
                 const DiagnoseOptions& options, bool may_overflow, Diagnosis& d) {
  std::vector<Suspect> causes = search.single_causes();
  if (may_overflow) {
    leave_out_overflow(causes, d);
    if (causes.empty()) return;
  }
  if (!causes.empty() && !is_single_evidence(causes.front(), search)) {
    d.next.push_back(
        cause_of(causes.front()).name() +
        " would give these numbers too, but they are so few digits that some mistake "
        "fits them by chance: no verdict; make sure with glasshead doctor --probe DIR");
    return;
  }
  if (causes.empty() && options.tries_pairs) {
    causes = search.pair_causes();
    if (!causes.empty() && !is_evidence(causes.front(), search.tried())) causes.clear();
    if (causes.size() > kMostNamed) {
      d.next.push_back(std::to_string(causes.size()) +
                       " pairs of mistakes give these numbers, so none is named: too few numbers, "
                       "or too like each other; use glasshead doctor --probe DIR");
      causes.clear();
      return;
    }
  }
  if (causes.empty() && is_rounding_everywhere(examined, rows)) causes = search.rounding_causes();
  if (!causes.empty()) name_causes(causes, d);
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
  const auto [batch, heads, q_len, kv_len] = subject.right.pairs();
  d.rows = batch * heads * q_len;
  if (d.rows == 0) return d;
  const std::vector<RowIndex> rows = rows_to_check(subject.right, options.most_work);
  d.rows_checked = static_cast<index_t>(rows.size());
  const Judge judge(claims, options.decimals, d.arithmetic);

  Examined examined = examine(subject, judge, rows, options);
  d.numbers = examined.numbers;
  d.wrong = examined.wrong;
  d.first_wrong = std::move(examined.first_wrong);
  d.worst = std::move(examined.worst);
  if (!options.decimals) d.worst_ulps = examined.worst_ulps;  // of digits: half of the last one
  d.small_rows = std::move(examined.small_rows);
  d.pattern = std::move(examined.pattern);
  d.proven = std::move(examined.proven);
  d.next = std::move(examined.next);
  if (examined.wrong == 0) {
    d.plain_ulps = plain_ulps(subject, some_of(rows, kPlainRows));
    constexpr double kFarFromPlain = 32;
    if (d.worst_ulps > kFarFromPlain * std::max(1.0, d.plain_ulps))
      d.next.emplace_back(
          "rounding can do this here at worst, but plain attention of that type is far nearer: "
          "inputs with smaller scores tell a mistake from rounding, glasshead doctor --probe DIR");
    d.blind = invisible(subject, judge, some_of(rows, kBlindRows));
    return d;
  }
  d.verdict = DiagnosisVerdict::unexplained;
  Search search(subject, judge, rows, examined.wrong_rows);
  const std::vector<std::string> poison =
      examined.are_finite ? std::vector<std::string>{} : not_finite(attention);
  d.pattern.insert(d.pattern.begin(), poison.begin(), poison.end());
  const bool may_overflow =
      examined.nans == examined.numbers && poison.empty() && leaves_f16(attention);
  find_causes(search, examined, rows, options, may_overflow, d);
  d.tried = search.tried();
  for (const std::string& id : search.not_tried())
    d.not_tried.push_back(id + ": needs all " + std::to_string(q_len) + " x " +
                          std::to_string(kv_len) + " scores of a head for one row");
  if (!search.without_gradients().empty()) {
    std::string text = "gradients are not known of";
    for (const std::string& id : search.without_gradients()) text += " " + id;
    d.not_tried.push_back(std::move(text));
  }
  if (d.verdict != DiagnosisVerdict::unexplained) return d;
  for (std::string& text : relations(subject, judge, rows)) d.pattern.push_back(std::move(text));
  d.next.emplace_back(
      "run your code on inputs made for the purpose: glasshead doctor --probe DIR "
      "with your shapes");
  return d;
}

}  // namespace glasshead
