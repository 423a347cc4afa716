#include "port/attention_case.h"

#include "glasshead/diagnose.h"
#include "model/block.h"

namespace glasshead::port {
namespace {

using model::Point;

// The layer's right q, k, v, then their weights, lse and out.
struct Known {
  std::optional<FileTensor> q, k, v, weights, lse, out;
};

Known known_of(const Dump& dump, const std::vector<PortPlace>& places, std::size_t wrong) {
  Known known;
  for (std::size_t n = 0; n < dump.all().size(); ++n) {
    const Dumped& one = dump.all()[n];
    if (one.piece != dump.all()[wrong].piece) continue;
    const auto take = [&](std::optional<FileTensor>& to) {
      to = Dump::numbers(one, places[n].layout);
    };
    switch (one.place.place.point) {
      case Point::self_q:
        if (places[n].is_right) take(known.q);
        break;
      case Point::self_k:
        if (places[n].is_right) take(known.k);
        break;
      case Point::self_v:
        if (places[n].is_right) take(known.v);
        break;
      case Point::self_weights:
        take(known.weights);
        break;
      case Point::self_lse:
        take(known.lse);
        break;
      case Point::self_out:
        take(known.out);
        break;
      default:
        break;
    }
  }
  return known;
}

}  // namespace

std::optional<Applied> attention_taken(const Runner& runner, const Dump& dump,
                                       const std::vector<PortPlace>& places, std::size_t wrong) {
  const std::size_t piece = dump.all()[wrong].piece;
  Placed theirs;
  for (std::size_t n = 0; n < dump.all().size(); ++n) {
    const Dumped& one = dump.all()[n];
    const Point point = one.place.place.point;
    if (one.piece != piece ||
        (point != Point::self_weights && point != Point::self_lse && point != Point::self_out))
      continue;
    std::optional<FileTensor> numbers = Dump::numbers(one, places[n].layout);
    if (!numbers) return std::nullopt;
    const std::string name = runner.inner_name(runner.pieces()[piece], one.place.name);
    if (point == Point::self_out)
      theirs.changes.push_back(Patch{name, std::move(*numbers)});
    else
      theirs.seen.emplace_back(name, std::move(*numbers));
  }
  if (theirs.changes.empty()) return std::nullopt;
  Edit edit;
  edit.place = [theirs](const Subject&, const Numbers&) { return theirs; };
  return Applied{std::move(edit), piece, piece};
}

void attention_causes(const Dump& dump, const std::vector<PortPlace>& places, std::size_t wrong,
                      const Subject& subject, PortFinding& finding, index_t& tried) {
  const Point point = dump.all()[wrong].place.place.point;
  if (point != Point::self_weights && point != Point::self_lse && point != Point::self_out) return;
  const Known known = known_of(dump, places, wrong);
  if (!known.q || !known.k || !known.v) return;
  Claims claims;
  if (known.out) claims.out = known.out->view<4>();
  if (known.weights) claims.weights = known.weights->view<4>();
  if (known.lse) claims.lse = known.lse->view<3>();
  AttentionCase attention{known.q->view<4>(), known.k->view<4>(), known.v->view<4>()};
  attention.options = model::layer_calls(subject.stack(), subject.stack_weights()).front().self;
  DiagnoseOptions options;
  options.arithmetic = dump.arithmetic();
  const Diagnosis diagnosis = diagnose(attention, claims, options);
  tried += diagnosis.tried;
  for (const Cause& cause : diagnosis.causes) {
    PortCause& named = finding.causes.emplace_back();
    named.is_doctors = true;
    for (const NamedMistake& mistake : cause.mistakes) {
      const auto join = [&](std::string& to, const std::string& more, const char* with) {
        to += to.empty() ? more : with + more;
      };
      join(named.id, mistake.name(), " + ");
      join(named.title, mistake.title, ", and ");
      join(named.done, mistake.done, "; ");
      join(named.cause, mistake.cause, "; ");
      join(named.fix, mistake.fix_code + "   " + mistake.fix, "; ");
    }
  }
  for (const std::string& fact : diagnosis.pattern) finding.facts.push_back(fact);
}

}  // namespace glasshead::port
