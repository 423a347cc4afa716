#include "doctor/search.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <set>

#include "base/math.h"
#include "doctor/fit.h"

namespace glasshead::doctor {
namespace {

constexpr std::size_t kScreened = 8;  // rows that a suspect must pass before all are compared

bool is_same(const RowIndex& a, const RowIndex& b) {
  return a.b == b.b && a.h == b.h && a.i == b.i;
}

// Up to `count` of a list, spread over it, its ends included.
std::vector<RowIndex> spread(const std::vector<RowIndex>& rows, std::size_t count) {
  if (rows.size() <= count) return rows;
  std::vector<RowIndex> some;
  for (std::size_t n = 0; n < count; ++n) some.push_back(rows[n * (rows.size() - 1) / (count - 1)]);
  return some;
}

void add_once(std::vector<std::string>& list, const std::string& id) {
  if (std::find(list.begin(), list.end(), id) == list.end()) list.push_back(id);
}

// Bits: each number that tells the two apart adds the logarithm of how far, in tolerances. Weights
// of a row add to 1, so the one that says most follows from the others.
double bits_apart(const std::vector<Shown>& a, const std::vector<Shown>& b) {
  constexpr double kMostBits = 20;  // of one number
  double bits = 0, most = 0;
  for (std::size_t n = 0; n < std::min(a.size(), b.size()); ++n) {
    const double far = distance(a[n].expected, b[n].expected, a[n].tolerance + b[n].tolerance);
    if (!(far > kClose)) continue;
    const double of_number =
        std::isfinite(far) ? std::min(kMostBits, math::log(far) / math::log(2)) : kMostBits;
    bits += of_number;
    if (a[n].is_weight) most = std::max(most, of_number);
  }
  return bits - most;
}

bool is_better(const Suspect& a, const Suspect& b) {
  const bool a_fits = a.worst <= kFits, b_fits = b.worst <= kFits;
  if (a_fits != b_fits) return a_fits;
  return a_fits ? false : a.worst < b.worst;  // among those that fit the catalogue's order stands
}

}  // namespace

bool is_too_wide(const Program& program) {
  const auto [batch, heads, q_len, kv_len] = program.pairs();
  return program.is_matrix_wide() && q_len * kv_len > kMostWidePairs;
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

double Search::misfit(const Program& program, const std::vector<RowIndex>& rows) {
  Runner runner(program);
  double worst = 0;
  for (const RowIndex& row : rows) {
    worst = std::max(worst, judge_.misfit(runner.row(row), row, program.may_drop, kClose));
    if (worst > kClose) return worst;
  }
  // Keys' gradients take every row: they are looked at where all rows are.
  if (&rows != &rows_ || !judge_.has_key_claims()) return worst;
  if (!program.has_gradients()) return 2 * kClose;
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
  if ((claims.dq.data != nullptr || judge_.has_key_claims()) &&
      !suspect.program.has_gradients()) {
    if (suspect.made.size() == 1) add_once(without_gradients_, suspect.made.front().fault->id);
    return false;
  }
  return misfit(suspect.program, screen_) <= kClose;
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

// Compares survivors on all rows, and counts what tells them from the right program.
std::vector<Suspect> Search::settle(std::vector<Suspect> suspects) {
  std::vector<Suspect> left;
  bool one_fits = false;
  for (Suspect& suspect : suspects) {
    suspect.worst = misfit(suspect.program, rows_);
    if (suspect.worst > kClose) continue;
    Runner right(subject_.right), wrong(suspect.program);
    for (const RowIndex& row : rows_) {
      const std::vector<Shown> theirs = shown(judge_, wrong.row(row), row);
      const std::vector<Shown> expected = shown(judge_, right.row(row), row);
      suspect.telling += count_differing(expected, theirs);
      suspect.evidence += bits_apart(expected, theirs);
    }
    if (judge_.has_key_claims()) {
      const index_t of_keys = key_telling(right, wrong);
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
  const std::vector<RowIndex> rows(
      screen_.begin(),
      screen_.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(3, screen_.size())));
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
  if (!has_scale && survivors.empty()) add_fitted(survivors, "scale-other");
  if (!has_cap && survivors.empty()) add_fitted(survivors, "softcap-other");
  return settle(std::move(survivors));
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

std::vector<std::string> invisible(const Subject& subject, const Judge& judge,
                                   const std::vector<RowIndex>& rows) {
  std::vector<std::string> names;
  const Claims& claims = judge.claims();
  if (claims.out.data == nullptr && claims.weights.data == nullptr &&
      claims.scores.data == nullptr && claims.lse.data == nullptr)
    return names;  // gradients alone: what they can't show is not looked for
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
    if (is_seen) continue;
    const Made& made = single.made.front();
    names.push_back(named(*made.fault, made.choice).name());
  }
  return names;
}

}  // namespace glasshead::doctor
