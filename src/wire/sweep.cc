#include "wire/sweep.h"

#include <cmath>

#include <fmt/format.h>

#include "base/math.h"
#include "base/random.h"
#include "wire/jacobian.h"
#include "wire/print.h"

namespace glasshead::wire {
namespace {

constexpr index_t kMostCoordinates = 4096;

// q·k_j for one draw.
std::vector<double> scores_of(const SweepOptions& options, index_t d_k, index_t draw) {
  const auto size = static_cast<std::uint64_t>(d_k);
  const auto vectors = static_cast<std::uint64_t>(options.keys + 1);
  // Every head size draws from its own stream: point d_k does not depend on which others are asked.
  const std::uint64_t stream = size, first = static_cast<std::uint64_t>(draw) * vectors * size;
  std::vector<double> q;
  for (std::uint64_t d = 0; d < size; ++d)
    q.push_back(standard_normal(options.seed, first + d, stream));
  std::vector<double> scores;
  for (std::uint64_t j = 1; j < vectors; ++j) {
    double sum = 0;
    for (std::uint64_t d = 0; d < size; ++d)
      sum += q[static_cast<std::size_t>(d)] *
             standard_normal(options.seed, first + j * size + d, stream);
    scores.push_back(sum);
  }
  return scores;
}

// Adds one draw's numbers; `spread` collects squares.
void add_draw(SweepSide& side, const std::vector<double>& scores, double scale) {
  double max = -HUGE_VAL;
  for (const double s : scores) max = s * scale > max ? s * scale : max;
  std::vector<double> weights;
  double sum = 0, squares = 0;
  for (const double s : scores) {
    weights.push_back(math::exp(s * scale - max));
    sum += weights.back();
    squares += s * scale * s * scale;
  }
  double largest = 0, entropy = 0;
  for (double& w : weights) {
    w /= sum;
    largest = w > largest ? w : largest;
    if (w > 0) entropy -= w * math::log(w);
  }
  side.spread += squares / static_cast<double>(scores.size());
  side.largest += largest;
  side.entropy += entropy;
  side.jacobian += jacobian_norm(weights);
}

void finish(SweepSide& side, index_t draws) {
  const auto n = static_cast<double>(draws);
  side.spread = std::sqrt(side.spread / n);
  side.largest /= n;
  side.entropy /= n;
  side.jacobian /= n;
}

std::optional<index_t> read_count(std::string_view text) {
  if (text.empty() || text.size() > 6) return std::nullopt;
  index_t n = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    n = n * 10 + (c - '0');
  }
  return n >= 1 && n <= kMostCoordinates ? std::optional(n) : std::nullopt;
}

}  // namespace

std::optional<SweepOptions> parse_sweep(std::string_view text, std::vector<Problem>& problems) {
  constexpr std::string_view kName = "d_k=";
  SweepOptions options;
  std::optional<index_t> first, last;
  if (text.substr(0, kName.size()) == kName) {
    const std::string_view range = text.substr(kName.size());
    const std::size_t dots = range.find("..");
    first = read_count(range.substr(0, dots));
    last = dots == std::string_view::npos ? first : read_count(range.substr(dots + 2));
  }
  if (!first || !last || *first > *last) {
    problems.push_back(
        {"--sweep", fmt::format("\"{}\" is no range; right would be d_k=1..512, each "
                                "from 1 to {}",
                                text, kMostCoordinates)});
    return std::nullopt;
  }
  for (index_t d = *first; d < *last; d *= 2) options.d_k.push_back(d);
  options.d_k.push_back(*last);
  return options;
}

std::vector<SweepPoint> run_sweep(const SweepOptions& options) {
  std::vector<SweepPoint> points;
  for (const index_t d_k : options.d_k) {
    SweepPoint point;
    point.d_k = d_k;
    for (index_t draw = 0; draw < options.draws; ++draw) {
      const std::vector<double> scores = scores_of(options, d_k, draw);
      add_draw(point.unscaled, scores, 1);
      add_draw(point.scaled, scores, 1.0 / std::sqrt(static_cast<double>(d_k)));
    }
    finish(point.unscaled, options.draws);
    finish(point.scaled, options.draws);
    points.push_back(point);
  }
  return points;
}

Document sweep_document(const SweepOptions& options, const std::vector<SweepPoint>& points,
                        int decimals) {
  Document document;
  document.name = "sweep";
  document.question = "What head size does to softmax, and what dividing by √d_k does about it";
  document.title = fmt::format(
      "q and {} keys of standard normal coordinates · means of {} draws · "
      "seed {}",
      options.keys, options.draws, options.seed);
  for (const bool is_scaled : {false, true}) {
    Section section;
    section.title = is_scaled ? "scaled" : "unscaled";
    section.formula = is_scaled ? "Z = S / √d_k" : "Z = S";
    section.latex = is_scaled ? "Z=S/\\sqrt{d_k}" : "Z=S";
    Table table;
    table.tap = section.title;
    table.column_labels = {"std", "largest", "entropy", "‖J‖"};
    for (const SweepPoint& point : points) {
      const SweepSide& side = is_scaled ? point.scaled : point.unscaled;
      table.row_index.push_back(point.d_k);
      table.row_labels.push_back(fmt::format("d_k {}", point.d_k));
      std::vector<Cell> cells;
      for (const double x : {side.spread, side.largest, side.entropy, side.jacobian}) {
        Cell cell;
        cell.exact = x;
        cell.text = print_number(x, decimals);
        cells.push_back(std::move(cell));
      }
      table.rows.push_back(std::move(cells));
    }
    table.shape = {static_cast<index_t>(points.size()), 4};
    section.tables.push_back(std::move(table));
    document.sections.push_back(std::move(section));
  }
  document.footnotes.emplace_back(
      "std: spread of the scores · largest: the largest weight · entropy: of the weights, in nats "
      "· "
      "‖J‖: Frobenius norm of diag(w) − w·wᵀ, at most ½; near 0 nothing can be learned");
  return document;
}

void write_sweep_json(const SweepOptions& options, const std::vector<SweepPoint>& points,
                      const JsonWriter::Sink& sink) {
  JsonWriter json(sink);
  json.begin_object().key("schema").value("glasshead.sweep/1").key("keys").value(options.keys);
  json.key("draws").value(options.draws).key("seed").value(static_cast<index_t>(options.seed));
  json.key("points").begin_array();
  for (const SweepPoint& point : points) {
    json.begin_object().key("d_k").value(point.d_k);
    for (const bool is_scaled : {false, true}) {
      const SweepSide& side = is_scaled ? point.scaled : point.unscaled;
      json.key(is_scaled ? "scaled" : "unscaled").begin_object();
      json.key("std").value(side.spread).key("largest").value(side.largest);
      json.key("entropy").value(side.entropy).key("jacobian_norm").value(side.jacobian);
      json.end_object();
    }
    json.end_object();
  }
  json.end_array().end_object();
  json.flush();
}

}  // namespace glasshead::wire
