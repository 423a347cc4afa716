#include "doctor/search.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>

#include "base/math.h"
#include "doctor/fit.h"

namespace glasshead::doctor {
namespace {

// Rows that a suspect must pass before all are compared, and columns of out in the first of them:
// a wrong guess is off in nearly every number, so that a few end most of them.
constexpr std::size_t kScreened = 8;
constexpr index_t kFirstColumns = 8;

bool is_same(const RowIndex& a, const RowIndex& b) {
  return a.b == b.b && a.h == b.h && a.i == b.i;
}

void add_once(std::vector<std::string>& list, const std::string& id) {
  if (std::find(list.begin(), list.end(), id) == list.end()) list.push_back(id);
}

// Bits of evidence in a wrong number: the logarithm of how much further it is from the right one
// than from the suspect's, both as numbers: a suspect whose tolerance would hold any number
// explains none. A quarter of its tolerance is near; where decimals were printed, all of it.
double bits_of(const Compared& c, double right, bool is_printed) {
  constexpr double kMostBits = 20;  // f32 has 24: one number alone is not to speak for a mistake
  const double from_right = std::fabs(c.found - right);
  if (!std::isfinite(from_right)) return kMostBits;
  const double near =
      std::max(std::fabs(c.found - c.expected), (is_printed ? 1 : 0.25) * c.tolerance);
  if (!(near < from_right)) return 0;
  return std::min(math::log(from_right / near) / math::log(2), kMostBits);
}

bool is_better(const Suspect& a, const Suspect& b) {
  const bool a_fits = a.worst <= kFits, b_fits = b.worst <= kFits;
  if (a_fits != b_fits) return a_fits;
  return a_fits ? false : a.worst < b.worst;  // among those that fit the catalogue's order stands
}

}  // namespace

bool is_too_wide(const Program& program) {
  const PairShape pairs = program.pairs();
  return program.is_matrix_wide() && pairs.q_len * pairs.kv_len > kMostWidePairs;
}

std::vector<Suspect> singles(const Program& right) {
  std::vector<Suspect> all;
  for (const Fault* fault : catalogue())
    for (const Choice& choice : fault->choices(right)) {
      Suspect suspect{{{fault, choice}}, right};
      if (fault->edit(suspect.program, choice)) all.push_back(std::move(suspect));
    }
  return all;
}

Search::Search(const Subject& subject, const Judge& judge, const std::vector<RowIndex>& rows,
               const std::vector<RowIndex>& wrong)
    : subject_(subject), judge_(judge), rows_(rows), singles_(singles(subject.right)) {
  screen_ = spread(wrong, kScreened - 3);
  std::vector<RowIndex> others;
  for (const RowIndex& row : rows) {
    const bool is_taken = std::any_of(screen_.begin(), screen_.end(),
                                      [&](const RowIndex& s) { return is_same(s, row); });
    if (!is_taken) others.push_back(row);
  }
  for (const RowIndex& row : spread(others, kScreened - screen_.size())) screen_.push_back(row);
}

// The largest distance on the rows of the screen; stops above kClose. The first is looked at in a
// few columns before it is in all.
double Search::misfit_of_screen(const Program& program) {
  const auto of_row = [&](Runner& runner, const RowIndex& row) {
    return judge_.misfit(runner.row(row), row, program.may_drop, kClose);
  };
  if (program.d_v() > 2 * kFirstColumns && program.d_out == nullptr) {
    Runner narrow(program, kFirstColumns);
    const double worst = of_row(narrow, screen_.front());
    if (worst > kClose) return worst;
  }
  Runner runner(program);
  double worst = 0;
  for (const RowIndex& row : screen_) {
    worst = std::max(worst, of_row(runner, row));
    if (worst > kClose) return worst;
  }
  return worst;
}

// The same of dk and dv, for which every row is needed.
double Search::key_misfit(Runner& runner, const Program& program) {
  if (!program.has_gradients()) return 2 * kClose;
  double worst = 0;
  for (index_t b = 0; b < program.q->extent(0); ++b)
    for (index_t g = 0; g < program.kv_heads(); ++g) {
      judge_.each_key(runner.key_gradients(b, g), b, g, [&](const Compared& c, index_t) {
        worst = std::max(worst, distance(c.found, c.expected, c.tolerance));
        return worst <= kClose;
      });
      if (worst > kClose) return worst;
    }
  return worst;
}

bool Search::survives(Suspect& suspect) {
  ++tried_;
  if (is_too_wide(suspect.program)) {
    add_once(not_tried_, suspect.made.front().fault->id);
    return false;
  }
  const Claims& claims = judge_.claims();
  if ((claims.dq.data != nullptr || judge_.has_key_claims()) && !suspect.program.has_gradients()) {
    if (suspect.made.size() == 1) add_once(without_gradients_, suspect.made.front().fault->id);
    return false;
  }
  return misfit_of_screen(suspect.program) <= kClose;
}

// In how many numbers of dk and dv two programs differ.
index_t Search::key_telling(Runner& right, Runner& wrong) {
  index_t count = 0;
  for (index_t b = 0; b < subject_.q.extent(0); ++b)
    for (index_t g = 0; g < subject_.k.extent(1); ++g) {
      std::vector<Shown> of_right;
      judge_.each_key(right.key_gradients(b, g), b, g, [&](const Compared& c, index_t) {
        of_right.push_back({c.expected, c.tolerance, false});
        return true;
      });
      std::vector<Shown> of_wrong;
      judge_.each_key(wrong.key_gradients(b, g), b, g, [&](const Compared& c, index_t) {
        of_wrong.push_back({c.expected, c.tolerance, false});
        return true;
      });
      count += count_differing(of_right, of_wrong);
    }
  return count;
}

namespace {

// A suspect while all rows go by.
struct Hearing {
  explicit Hearing(Suspect* of) : suspect(of), runner(of->program) {}
  Suspect* suspect;
  Runner runner;
  bool is_alive = true;
  index_t swallowed = 0;  // wrong numbers that its tolerance would hold if they were right, too
  // Of a type's rounding: what is wrong, in its tolerances, and whether it goes with the number;
  // whether the type loses more than a rounding somewhere.
  double count = 0, left = 0, with_number = 0, numbers = 0;
  bool loses_more = false;

  // A row, of which the right program expects these numbers.
  void hear(const Judge& judge, const RowIndex& row, const std::vector<Shown>& expected) {
    double of_weights = 0;  // they add to 1: the one that says most follows from the others
    judge.each(runner.row(row), row, suspect->program.may_drop, [&](const Compared& c) {
      const double far = distance(c.found, c.expected, c.tolerance);
      suspect->worst = std::max(suspect->worst, far);
      if (suspect->worst > kClose || c.number >= expected.size()) return false;
      const Shown& right = expected[c.number];
      const double from_right = distance(c.found, right.expected, right.tolerance);
      if (!(from_right > kWrong)) return true;
      const double bits = bits_of(c, right.expected, judge.decimals().has_value());
      ++suspect->telling;
      suspect->evidence += bits;
      if (std::fabs(c.found - right.expected) <= c.tolerance) ++swallowed;
      if (right.is_weight) of_weights = std::max(of_weights, bits);
      if (suspect->is_rounding()) hear_leftover(c, right.expected);
      return true;
    });
    suspect->evidence -= of_weights;
    is_alive = suspect->worst <= kClose;
  }

 private:
  // `right`: the number without any rounding.
  void hear_leftover(const Compared& c, double right) {
    if (!std::isfinite(right)) return;
    if (!std::isfinite(c.found)) {  // beyond the type's largest number, as the suspect has it
      loses_more = loses_more || c.found == c.expected;
      return;
    }
    const double r = (c.found - right) / c.tolerance, x = right / c.tolerance;
    count += 1;
    left += r * r;
    with_number += r * x;
    numbers += x * x;
    if (distance(c.expected, right, c.tolerance) > kWrong) loses_more = true;
  }

 public:
  // A program of numbers so large that its rounding would explain nearly anything.
  bool explains_anything() const {
    return !suspect->is_rounding() && 2 * swallowed > suspect->telling;
  }

  // Roundings are as large as their type makes them and point anywhere. What is much smaller is
  // another type's, and what goes with the number itself is a factor.
  bool looks_like_rounding() const {
    constexpr double kFewest = 16, kSmallest = 0.01, kMostAlike = 0.5;
    if (loses_more) return true;
    return count >= kFewest && left >= kSmallest * kSmallest * count &&
           std::fabs(with_number) <= kMostAlike * std::sqrt(left * numbers);
  }
};

}  // namespace

// Compares survivors on all rows, and counts what tells them from the right program.
std::vector<Suspect> Search::settle(std::vector<Suspect> suspects) {
  std::vector<std::unique_ptr<Hearing>> hearings;
  for (Suspect& suspect : suspects) hearings.push_back(std::make_unique<Hearing>(&suspect));
  Runner right(subject_.right);
  for (const RowIndex& row : rows_) {
    std::vector<Shown> expected;
    for (const auto& hearing : hearings) {
      if (!hearing->is_alive) continue;
      if (expected.empty()) expected = shown(judge_, right.row(row), row);
      hearing->hear(judge_, row, expected);
    }
  }
  std::vector<Suspect> left;
  bool one_fits = false;
  for (const auto& hearing : hearings) {
    Suspect& suspect = *hearing->suspect;
    if (!hearing->is_alive) continue;
    if (suspect.is_rounding() && !hearing->looks_like_rounding()) continue;
    if (hearing->explains_anything()) continue;
    if (judge_.has_key_claims()) {
      suspect.worst = std::max(suspect.worst, key_misfit(hearing->runner, suspect.program));
      if (suspect.worst > kClose) continue;
      const index_t of_keys = key_telling(right, hearing->runner);
      suspect.telling += of_keys;
      suspect.evidence += 2 * static_cast<double>(of_keys);  // more than four tolerances each
    }
    one_fits = one_fits || suspect.worst <= kFits;
    left.push_back(std::move(suspect));
  }
  if (!one_fits) return {};
  // Insertion keeps the catalogue's order among equals, on every standard library.
  std::vector<Suspect> sorted;
  for (Suspect& suspect : left) {
    auto at = sorted.begin();
    while (at != sorted.end() && !is_better(suspect, *at)) ++at;
    sorted.insert(at, std::move(suspect));
  }
  return sorted;
}

void Search::add_fitted(std::vector<Suspect>& suspects, const char* id) {
  const Fault* fault = find_fault(id);
  const bool is_scale = std::string_view(id) == "scale-other";
  const double known = is_scale ? subject_.right.scale : subject_.right.options.softcap;
  const auto make = [&](double value) {
    Program program = subject_.right;
    (is_scale ? program.scale : program.options.softcap) = value;
    return program;
  };
  std::vector<RowIndex> rows = screen_;
  if (rows.size() > 3) rows.resize(3);
  const std::optional<double> value = fit_number(judge_, rows, make, known, is_scale);
  if (!value || *value == known) return;
  Suspect suspect{{{fault, {*value, number_name(*value)}}}, make(*value)};
  if (survives(suspect)) suspects.push_back(std::move(suspect));
}

std::vector<Suspect> Search::single_causes() {
  std::vector<Suspect> survivors;
  bool has_scale = false, has_cap = false;
  for (Suspect& single : singles_) {
    if (single.is_rounding() || !survives(single)) continue;
    const std::string_view id = single.made.front().fault->id;
    has_scale = has_scale || id.starts_with("scale-");
    has_cap = has_cap || id.starts_with("softcap-");
    survivors.push_back(single);
  }
  std::vector<Suspect> causes = settle(std::move(survivors));
  if (!causes.empty()) return causes;
  std::vector<Suspect> fitted;
  if (!has_scale) add_fitted(fitted, "scale-other");
  if (!has_cap && fitted.empty()) add_fitted(fitted, "softcap-other");
  return settle(std::move(fitted));
}

std::vector<Suspect> Search::pair_causes() {
  // What changes nothing here alone is left out: with it the pair would be a single mistake.
  std::vector<const Suspect*> visible;
  for (const Suspect& single : singles_) {
    if (single.is_rounding() || is_too_wide(single.program)) continue;
    if (single.program.is_matrix_wide() &&
        single.program.pairs().q_len * single.program.pairs().kv_len > kMostWidePairs / 64)
      continue;
    Runner right(subject_.right), wrong(single.program);
    for (const RowIndex& row : screen_) {
      if (count_differing(shown(judge_, right.row(row), row), shown(judge_, wrong.row(row), row)) ==
          0)
        continue;
      visible.push_back(&single);
      break;
    }
  }
  std::vector<Suspect> survivors;
  for (std::size_t a = 0; a < visible.size(); ++a)
    for (std::size_t b = a + 1; b < visible.size(); ++b) {
      const Made& first = visible[a]->made.front();
      const Made& second = visible[b]->made.front();
      if (first.fault == second.fault) continue;
      Suspect pair{{first, second}, visible[a]->program};
      if (!second.fault->edit(pair.program, second.choice)) continue;
      if (survives(pair)) survivors.push_back(std::move(pair));
    }
  std::vector<Suspect> causes = settle(std::move(survivors));
  constexpr index_t kEvidence = 4;  // numbers: with fewer, some pair of thousands fits by chance
  std::erase_if(causes, [](const Suspect& c) { return c.telling < kEvidence; });
  return causes;
}

std::vector<Suspect> Search::rounding_causes() {
  std::vector<Suspect> survivors;
  for (Suspect& single : singles_) {
    if (!single.is_rounding() || !survives(single)) continue;
    survivors.push_back(single);
  }
  std::vector<Suspect> causes = settle(std::move(survivors));
  if (causes.size() > 1) causes.resize(1);  // wider bounds hold all that narrower ones do
  return causes;
}

index_t Search::rivals(const Suspect& suspect) const {
  const index_t most = 2 * suspect.telling + 2;
  Runner right(subject_.right);
  std::vector<std::vector<Shown>> expected;
  for (const RowIndex& row : rows_) expected.push_back(shown(judge_, right.row(row), row));
  index_t count = 0;
  for (const Suspect& single : singles_) {
    if (single.is_rounding() || is_too_wide(single.program)) continue;
    Runner wrong(single.program);
    index_t differing = 0;
    for (std::size_t n = 0; n < rows_.size() && differing <= most; ++n)
      differing += count_differing(expected[n], shown(judge_, wrong.row(rows_[n]), rows_[n]));
    if (differing <= most) ++count;
  }
  return std::max<index_t>(1, count);
}

std::vector<Made> invisible(const Subject& subject, const Judge& judge,
                            const std::vector<RowIndex>& rows) {
  std::vector<Made> unseen;
  const Claims& claims = judge.claims();
  if (claims.out.data == nullptr && claims.weights.data == nullptr &&
      claims.scores.data == nullptr && claims.lse.data == nullptr)
    return unseen;  // gradients alone: what they can't show is not looked for
  std::vector<std::vector<Shown>> right_rows;
  Runner right(subject.right);
  for (const RowIndex& row : rows) right_rows.push_back(shown(judge, right.row(row), row));
  const bool has_lse = judge.claims().lse.data != nullptr;
  for (const Suspect& single : singles(subject.right)) {
    const std::string_view id = single.made.front().fault->id;
    if (single.is_rounding() || (id.starts_with("lse-") && !has_lse) || id.starts_with("gradient-"))
      continue;
    if (is_too_wide(single.program)) continue;
    Runner wrong(single.program);
    bool is_seen = false;
    for (std::size_t n = 0; n < rows.size() && !is_seen; ++n)
      is_seen = count_differing(right_rows[n], shown(judge, wrong.row(rows[n]), rows[n])) > 0;
    if (!is_seen) unseen.push_back(single.made.front());
  }
  return unseen;
}

}  // namespace glasshead::doctor
