// The search: which mistake, made between the last right place and the first wrong one, gives their
// numbers?
#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "base/fail.h"
#include "glasshead/port.h"
#include "model/model_impl.h"
#include "port/attention_case.h"
#include "port/facts.h"
#include "port/trail.h"

namespace glasshead::port {
namespace {

// A mistake that fits has to be this much nearer than no mistake is: numbers that are only a little
// off for what rounding may do are not called by a name because of a little luck.
constexpr double kNearer = 8;
constexpr std::size_t kMostFits = 12;  // whose whole runs are looked at
constexpr std::size_t kMostFindings = 6;

struct Fit {
  const Hypothesis* hypothesis;
  std::string parameter;
  Edit edit;
  double error = 0;
  std::size_t explains = 0;
  Applied applied;
  std::string where;
};

class Search {
 public:
  Search(const Runner& runner, const Dump& dump, PortReport& report)
      : runner_(runner), dump_(dump), walker_(runner, dump), report_(report) {}

  void run() {
    Trail trail = walker_.walk({});
    report_.places = trail.places;
    while (trail.first_wrong < trail.places.size() && report_.findings.size() < kMostFindings) {
      const std::vector<Fit> fits = find(trail);
      PortFinding found = finding(trail, fits);
      std::optional<Applied> known;
      if (!fits.empty())
        known = fits.front().applied;
      else if (!found.causes.empty())
        known = attention_taken(runner_, dump_, trail.places, trail.first_wrong);
      PortFinding& kept = keep(std::move(found), dump_.all()[trail.first_wrong].piece);
      if (!known) return;
      made_.push_back(std::move(*known));
      const std::size_t before = trail.first_wrong;
      trail = walker_.walk(made_);
      if (trail.first_wrong <= before) return;
      if (fits.empty())
        for (PortCause& cause : kept.causes)
          cause.explains += static_cast<index_t>(trail.first_wrong - before);
    }
    report_.explains_everything = trail.first_wrong == trail.places.size();
  }

 private:
  // A mistake of attention that the doctor names in several layers is one finding: what each of
  // them may be of.
  PortFinding& keep(PortFinding found, std::size_t piece) {
    if (found.causes.empty() || !found.causes.front().is_doctors)
      return report_.findings.emplace_back(std::move(found));
    for (std::size_t n = 0; n < report_.findings.size(); ++n) {
      PortFinding& other = report_.findings[n];
      std::vector<PortCause> both;
      for (const PortCause& cause : other.causes)
        for (const PortCause& here : found.causes)
          if (cause.is_doctors && cause.name() == here.name()) both.push_back(cause);
      if (both.empty()) continue;
      other.causes = std::move(both);
      doctored_[n].push_back(piece);
      for (PortCause& cause : other.causes) cause.where = words(doctored_[n]);
      return other;
    }
    std::vector<std::size_t>& pieces = doctored_[report_.findings.size()];
    pieces = {piece};
    for (PortCause& cause : found.causes) cause.where = words(pieces);
    return report_.findings.emplace_back(std::move(found));
  }

  // "in layer 0 to layer 3, layer 5"
  std::string words(const std::vector<std::size_t>& pieces) const {
    std::string text;
    for (std::size_t n = 0; n < pieces.size(); ++n) {
      const bool goes_on = n > 0 && pieces[n] == pieces[n - 1] + 1;
      const bool is_last = n + 1 == pieces.size() || pieces[n + 1] != pieces[n] + 1;
      const std::string layer = name(runner_.pieces()[pieces[n]]);
      if (!goes_on)
        text += (text.empty() ? "in " : ", ") + layer;
      else if (is_last)
        text += " to " + layer;
    }
    return text;
  }

  // The parts in which the mistake must have been made.
  Walker::Stretch stretch_of(const Trail& trail) const {
    Walker::Stretch stretch;
    stretch.end = trail.first_wrong;
    stretch.last = dump_.all()[stretch.end].piece;
    if (stretch.end > 0) {
      const Dumped& right = dump_.all()[stretch.end - 1];
      const bool is_whole = right.place.place.point == model::Point::layer_out ||
                            right.place.place.point == model::Point::embedding;
      stretch.first = std::min(right.piece + (is_whole ? 1 : 0), stretch.last);
    }
    return stretch;
  }

  bool fits(const std::vector<PortPlace>& places, double error_before) const {
    return std::all_of(places.begin(), places.end(),
                       [](const PortPlace& place) { return place.is_right; }) &&
           places.back().error * kNearer <= error_before;
  }

  std::vector<Fit> find(const Trail& trail) {
    const Walker::Stretch stretch = stretch_of(trail);
    const double before = trail.places[trail.first_wrong].error;
    std::vector<Fit> found;
    for (const Hypothesis* hypothesis : hypotheses())
      for (const Variant& variant : variants(*hypothesis, stretch)) {
        ++report_.tried;
        std::vector<Applied> edits = made_;
        edits.push_back({variant.edit, stretch.first, stretch.last});
        const std::vector<PortPlace> places = walker_.again(trail, stretch, edits);
        if (fits(places, before))
          found.push_back(
              {hypothesis, variant.parameter, variant.edit, places.back().error, 0, {}, {}});
      }
    return ranked(std::move(found), trail, stretch);
  }

  // Of all parts of the stretch, each parameter once. An edit is made in every part that it can be
  // made in, so the first part that has it gives it.
  std::vector<Variant> variants(const Hypothesis& hypothesis,
                                const Walker::Stretch& stretch) const {
    std::vector<Variant> all;
    for (std::size_t piece = stretch.first; piece <= stretch.last; ++piece)
      runner_.look(runner_.pieces()[piece], [&](const Subject& subject) {
        for (Variant& variant : hypothesis.variants(subject))
          if (std::none_of(all.begin(), all.end(), [&](const Variant& other) {
                return other.parameter == variant.parameter;
              }))
            all.push_back(std::move(variant));
      });
    return all;
  }

  // What explains most first; then what is nearer by far; then the catalogue's order.
  std::vector<Fit> ranked(std::vector<Fit> found, const Trail& trail,
                          const Walker::Stretch& stretch) const {
    const double tolerance = trail.places[trail.first_wrong].tolerance;
    const auto is_close = [&](const Fit& fit) { return fit.error <= tolerance / 8; };
    if (found.size() > kMostFits) {
      std::vector<double> errors;
      for (const Fit& fit : found) errors.push_back(fit.error);
      std::sort(errors.begin(), errors.end());
      std::erase_if(found, [&](const Fit& fit) { return fit.error > errors[kMostFits - 1]; });
      found.resize(std::min(found.size(), kMostFits));
    }
    // Of one mistake's parameters the nearest first.
    for (std::size_t n = 1; n < found.size(); ++n)
      for (std::size_t m = n; m > 0 && found[m].hypothesis == found[m - 1].hypothesis &&
                              found[m].error < found[m - 1].error;
           --m)
        std::swap(found[m], found[m - 1]);
    for (Fit& fit : found) spread(fit, trail, stretch);
    std::vector<Fit> best;
    for (const bool closely : {true, false})
      for (const Fit& fit : found)
        if (is_close(fit) == closely) best.push_back(fit);
    std::size_t most = 0;
    for (const Fit& fit : best) most = std::max(most, fit.explains);
    std::vector<Fit> first;
    const bool has_close = std::any_of(best.begin(), best.end(), [&](const Fit& fit) {
      return fit.explains == most && is_close(fit);
    });
    for (const Fit& fit : best)
      if (fit.explains == most && (is_close(fit) || !has_close)) first.push_back(fit);
    return first;
  }

  // Made everywhere, from here on, or here alone: what explains most, the first of equal ones.
  void spread(Fit& fit, const Trail& trail, const Walker::Stretch& stretch) const {
    const std::size_t last = runner_.pieces().size() - 1;
    const Piece& first = runner_.pieces()[stretch.first];
    std::string here = "in " + name(first);
    if (stretch.first != stretch.last)
      here = "from " + name(first) + " to " + name(runner_.pieces()[stretch.last]);
    const std::pair<Applied, std::string> scopes[] = {
        {{fit.edit, 0, last}, "everywhere"},
        {{fit.edit, stretch.first, last}, "from " + name(first) + " on"},
        {{fit.edit, stretch.first, stretch.last}, here + " alone"}};
    bool is_first = true;
    for (const auto& [applied, words] : scopes) {
      std::vector<Applied> edits = made_;
      edits.push_back(applied);
      const Trail with = walker_.walk(edits);
      const std::size_t right = std::max(with.first_wrong, trail.first_wrong) - trail.first_wrong;
      if (!is_first && right <= fit.explains) continue;
      is_first = false;
      fit.explains = right;
      fit.applied = applied;
      fit.where = words;
    }
  }

  PortFinding finding(const Trail& trail, const std::vector<Fit>& fits) {
    PortFinding finding;
    finding.place = trail.places[trail.first_wrong];
    if (trail.first_wrong > 0) finding.after = trail.places[trail.first_wrong - 1].name;
    for (const Fit& fit : fits) {
      const Hypothesis& h = *fit.hypothesis;
      finding.causes.push_back({h.id, fit.parameter, h.title, h.done, h.cause, h.fix, fit.error,
                                static_cast<index_t>(fit.explains), fit.where, false});
    }
    if (!fits.empty()) return finding;
    const Dumped& at = dump_.all()[trail.first_wrong];
    const FileTensor ours = walker_.numbers_at(trail, trail.first_wrong, made_);
    const Piece& piece = runner_.pieces()[at.piece];
    runner_.look(piece, [&](const Subject& subject) {
      for (const Applied& one : made_)
        if (one.edit.change && one.first <= at.piece && at.piece <= one.last)
          one.edit.change(subject);
      attention_causes(dump_, trail.places, trail.first_wrong, subject, finding, report_.tried);
    });
    if (!finding.causes.empty()) return finding;
    if (const std::optional<FileTensor> theirs = Dump::numbers(at, finding.place.layout))
      finding.facts = facts(at, ours, *theirs, finding.place.tolerance);
    return finding;
  }

  const Runner& runner_;
  const Dump& dump_;
  Walker walker_;
  PortReport& report_;
  std::vector<Applied> made_;
  std::map<std::size_t, std::vector<std::size_t>> doctored_;  // of a finding: the parts
};

void check_text(const Model& model, const PortText& text, std::vector<Problem>& problems) {
  const model::Description& d = model.impl().description;
  const auto check = [&](const char* where, const std::vector<index_t>& ids, index_t most,
                         const char* what) {
    for (std::size_t n = 0; n < ids.size(); ++n)
      if (ids[n] < 0 || ids[n] >= most) {
        problems.push_back({where, fmt::format("{} (number {}); this model's {} are 0 to {}",
                                               ids[n], n, what, most - 1)});
        return;
      }
    const auto count = static_cast<index_t>(ids.size());
    if (d.position_limit > 0 && count > d.position_limit)
      problems.push_back(
          {where, fmt::format("{} tokens; this model has {} positions", count, d.position_limit)});
  };
  if (text.ids.empty()) problems.push_back({"ids", "there are none; the text that both read"});
  check("ids", text.ids, d.vocab, "ids");
  check("decoder_ids", text.decoder_ids, d.vocab, "ids");
  if (!text.segments.empty()) {
    check("segments", text.segments, std::max<index_t>(d.embedding.token_types, 1), "types");
    if (text.segments.size() != text.ids.size())
      problems.push_back({"segments", fmt::format("{} for {} ids; one for each, or none",
                                                  text.segments.size(), text.ids.size())});
  }
  if (!text.decoder_ids.empty() && model.kind() != ModelKind::encoder_decoder)
    problems.push_back({"decoder_ids", "this model is no encoder-decoder"});
}

}  // namespace
}  // namespace glasshead::port

namespace glasshead {

bool PortReport::is_explained() const {
  return std::all_of(findings.begin(), findings.end(),
                     [](const PortFinding& finding) { return !finding.causes.empty(); });
}

PortReport diagnose_port(const Model& model, const PortText& given, const NamedTensors& activations,
                         const PortOptions& options) {
  PortText text = given;
  if (model.kind() == ModelKind::encoder_decoder && text.decoder_ids.empty())
    text.decoder_ids = {model.decoder_start()};
  std::vector<Problem> problems;
  port::check_text(model, text, problems);
  if (!problems.empty()) fail(ErrorKind::option, "diagnose_port", std::move(problems));
  const Context& context = options.context != nullptr ? *options.context : default_context();
  const port::Runner runner(model, text, context);
  const port::Dump dump(runner, model, activations, options, problems);
  if (!problems.empty()) fail(ErrorKind::format, "diagnose_port", std::move(problems));
  PortReport report;
  report.tokens = static_cast<index_t>(text.ids.size());
  report.arithmetic = dump.arithmetic();
  report.notes = dump.notes();
  port::Search(runner, dump, report).run();
  return report;
}

}  // namespace glasshead
