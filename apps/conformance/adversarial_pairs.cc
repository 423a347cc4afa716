// Relations between two hostile cases: each in every way it is computed, within the two tolerances,
// or bit for bit where the same bits are promised.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "conformance/adversarial.h"
#include "glasshead/error.h"

namespace glasshead::conformance {
namespace {

using nlohmann::json;

// One side of a pair.
struct Side {
  AdversarialCase c;
  Array tol_unit;
  Result result;

  double tolerance(std::size_t n) const {
    return unit_roundoff(result.y_type) * tol_unit.values[n] + tiny(result.y_type);
  }
};

struct Pair {
  Side a, b;
  std::string kind, relation;
  std::vector<index_t> permutation;
};

std::optional<Failure> unknown_relation(const Pair& pair) {
  return in_words("", "this program does not know the relation \"" + pair.relation + "\"");
}

// Y_b against `expected`, made from Y_a, whose own tolerance for entry n is allowed_a(n).
template <class Allowed>
std::optional<Failure> within(const Pair& pair, const Array& expected, Allowed allowed_a,
                              double extra = 0) {
  const Tolerance tolerance{pair.b.result.y_type, [&](std::size_t n) {
                              return allowed_a(n) + pair.b.tolerance(n) + extra;
                            }};
  return compare("Y", pair.b.result.y, expected, tolerance);
}

std::optional<Failure> check_equivariance(const Pair& pair) {
  if (pair.relation != "Y_b[:,:,i,:] = Y_a[:,:,perm[i],:]") return unknown_relation(pair);
  const Array& y = pair.a.result.y;
  const index_t rows = y.shape[2];
  const index_t width = y.shape[3];
  const auto source = [&](std::size_t n) {  // where entry n of Y_b comes from in Y_a
    const auto at = static_cast<index_t>(n);
    const index_t row = at / width % rows;
    const index_t from = pair.permutation.at(static_cast<std::size_t>(row));
    return static_cast<std::size_t>(at + (from - row) * width);
  };
  Array expected = y;
  for (std::size_t n = 0; n < expected.values.size(); ++n) expected.values[n] = y.values[source(n)];
  return within(pair, expected, [&](std::size_t n) { return pair.a.tolerance(source(n)); });
}

// Weights 2j and 2j+1 of the doubled keys add to weight j, within the tolerances of both.
std::optional<Failure> check_halved_weights(const Pair& pair) {
  const Array& doubled = pair.b.result.w;
  const Array& expected = pair.a.result.w;
  Array sums = expected;
  for (std::size_t n = 0; n < sums.values.size(); ++n) {
    sums.values[n] = doubled.values[2 * n] + doubled.values[2 * n + 1];
  }
  const std::vector<double> factors_a = row_factors(pair.a.c, pair.a.tol_unit).weights;
  const std::vector<double> factors_b = row_factors(pair.b.c, pair.b.tol_unit).weights;
  const double u = unit_roundoff(pair.a.result.state_type);
  const auto keys = static_cast<std::size_t>(expected.shape.back());
  return compare("W", sums, expected, {pair.a.result.state_type, [&](std::size_t n) {
                                         const double factor =
                                             factors_a[n / keys] + factors_b[n / keys];
                                         return u * factor * std::fabs(expected.values[n]);
                                       }});
}

std::optional<Failure> check_invariance(const Pair& pair) {
  const auto allowed = [&](std::size_t n) { return pair.a.tolerance(n); };
  const Array& expected = pair.a.result.y;
  if (pair.relation == "Y_b = Y_a") {
    // A hidden key is an exact identity, so keys appended and hidden change no bit.
    if (pair.b.c.name != "append_hidden_keys") return within(pair, expected, allowed);
    return compare("Y", pair.b.result.y, expected, exact(pair.b.result.y_type));
  }
  if (pair.relation == "Y_b = Y_a, W_b(2j)+W_b(2j+1) = W_a(j)") {
    if (auto failure = within(pair, expected, allowed)) return failure;
    return check_halved_weights(pair);
  }
  if (pair.relation == "Y_b = Y_a up to the rounding of K+c (1e-5)") {
    return within(pair, expected, allowed, 1e-5);
  }
  return unknown_relation(pair);
}

std::optional<Failure> check_affine(const Pair& pair) {
  if (pair.relation != "Y_b = 4*Y_a + 3") return unknown_relation(pair);
  Array expected = pair.a.result.y;
  for (double& y : expected.values) y = 4 * y + 3;
  return within(pair, expected, [&](std::size_t n) { return 4 * pair.a.tolerance(n); });
}

std::optional<Failure> check_negative(const Pair& pair) {
  if (pair.relation != "Y_b != Y_a") return unknown_relation(pair);
  if (within(pair, pair.a.result.y, [&](std::size_t n) { return pair.a.tolerance(n); })) return {};
  return in_words("Y", "is the same within the tolerances, must differ");
}

// Rows [begin, end) of a relation "Y_b = Y_a[:,:,begin:end,:]".
struct Rows {
  index_t begin = 0, end = 0;
};
std::optional<Rows> rows_of(const std::string& relation) {
  long long begin = 0;
  long long end = 0;
  char rest = 0;
  if (std::sscanf(relation.c_str(), "Y_b = Y_a[:,:,%lld:%lld,:%c", &begin, &end, &rest) != 3 ||
      rest != ']') {
    return std::nullopt;
  }
  return Rows{begin, end};
}

// A tensor [b, h, n, d] as rows [first, first + n) of one with `length` rows whose other rows hold
// NaN.
FileTensor placed(const FileTensor& tensor, index_t first, index_t length) {
  FileTensor result = zeros(tensor.dtype, tensor.shape);
  result.shape[2] = length;
  result.bytes.resize(static_cast<std::size_t>(result.size()) * size_of(result.dtype));
  const index_t rows = tensor.shape[2];
  const index_t width = tensor.shape[3];
  for (index_t n = 0; n < result.size(); ++n) {
    const index_t row = n / width % length - first;
    const index_t head = n / (width * length);
    const bool is_there = row >= 0 && row < rows;
    store_element(result.bytes.data(), result.dtype, n,
                  is_there ? tensor.load((head * rows + row) * width + n % width)
                           : std::numeric_limits<double>::quiet_NaN());
  }
  return result;
}

// The ring holds the last keys only. Here they are handed over at the positions they have in the
// whole sequence, with NaN where keys were dropped, and the whole's own window: the readable path
// has no ring of its own.
void place_ring(const AdversarialCase& whole, const Rows& rows, AdversarialCase& ring) {
  const index_t first = rows.end - ring.k.shape[2];
  ring.k = placed(ring.k, first, rows.end);
  ring.v = placed(ring.v, first, rows.end);
  ring.options = whole.options;
  ring.options.query_start = rows.begin;
}

std::optional<Failure> check_cache(const Pair& pair) {
  const auto rows = rows_of(pair.relation);
  if (!rows) return unknown_relation(pair);
  const DType type = pair.b.result.y_type;
  if (auto failure = compare("Y", pair.b.result.y,
                             slice(pair.a.result.y, 2, rows->begin, rows->end), exact(type))) {
    return failure;
  }
  return compare("LSE", pair.b.result.lse, slice(pair.a.result.lse, 2, rows->begin, rows->end),
                 exact(pair.b.result.state_type));
}

std::optional<Failure> check_relation(const Pair& pair) {
  if (pair.kind == "equivariance") return check_equivariance(pair);
  if (pair.kind == "invariance") return check_invariance(pair);
  if (pair.kind == "affine") return check_affine(pair);
  if (pair.kind == "negative") return check_negative(pair);
  if (pair.kind == "cache") return check_cache(pair);
  return unknown_relation(pair);
}

// From f32 to f64: the inputs widened. The stored 4V + 3 was rounded to f32, so it is made anew.
void widen(Pair& pair) {
  for (AdversarialCase* c : {&pair.a.c, &pair.b.c}) {
    c->q = converted(c->q, DType::f64);
    c->k = converted(c->k, DType::f64);
    c->v = converted(c->v, DType::f64);
  }
  if (pair.kind != "affine") return;
  for (index_t n = 0; n < pair.b.c.v.size(); ++n) {
    store_element(pair.b.c.v.bytes.data(), DType::f64, n, 4 * pair.a.c.v.load(n) + 3);
  }
}

Side load_side(const Golden& golden, const std::string& name) {
  const json& entry = entry_named(golden, name);
  return {load_case(golden, entry), widened(golden.load(entry.at("expected").at("tol_unit"))), {}};
}

}  // namespace

std::string pair_name(const json& pair) {
  return pair.at("kind").get<std::string>() + ":" + pair.at("a").get<std::string>() + ":" +
         pair.at("b").get<std::string>();
}

CaseResult run_pair(const Golden& golden, const json& entry, const Selection& selection) {
  CaseResult verdict = named(pair_name(entry));
  try {
    Pair pair{load_side(golden, entry.at("a")), load_side(golden, entry.at("b")), entry.at("kind"),
              entry.at("relation"), entry.value("perm", std::vector<index_t>{})};
    if (const auto rows = rows_of(pair.relation);
        rows && pair.kind == "cache" && pair.b.c.k.shape[2] < rows->end) {
      place_ring(pair.a.c, *rows, pair.b.c);
    }
    Pair wide = pair;
    widen(wide);
    const bool wants_weights = pair.relation.find("W_b") != std::string::npos;
    for (const Way& way : ways(selection)) {
      Pair& computed = way.arithmetic == Arithmetic::stored ? pair : wide;
      computed.a.result = run(computed.a.c, way, wants_weights);
      computed.b.result = run(computed.b.c, way, wants_weights);
      verdict.add(check_relation(computed), name(way, pair.a.c.q.dtype));
    }
  } catch (const Error& error) {
    verdict.add_refusal(error);
  }
  return verdict;
}

}  // namespace glasshead::conformance
