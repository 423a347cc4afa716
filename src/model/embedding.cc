#include "glasshead/embedding.h"

#include <algorithm>
#include <cmath>
#include <span>

#include <fmt/format.h>

#include "base/fail.h"
#include "base/float_environment.h"
#include "model/model_impl.h"

namespace glasshead {
namespace {

using Vector = std::vector<double>;

double dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (std::size_t e = 0; e < a.size(); ++e) sum += a[e] * b[e];
  return sum;
}

void need_size(const char* function, const char* where, const Vector& vector, std::size_t size) {
  if (vector.size() != size)
    fail(ErrorKind::option, function, where,
         fmt::format("has {} coordinates; must have {}", vector.size(), size));
}

// Rows of the table, one after another.
class Rows {
 public:
  explicit Rows(const Model& model)
      : table_(model.impl().weights.embedding.tokens),
        row_(static_cast<std::size_t>(model.impl().description.embedding.width)) {}

  std::size_t width() const { return row_.size(); }
  std::span<const float> at(index_t id) {
    table_.row(id, row_);
    return row_;
  }

 private:
  const nn::Linear& table_;
  std::vector<float> row_;
};

// 0 where one of the two is a vector of zeros, or holds what is not a number.
double cosine_of(double dot, double squares_a, double squares_b) {
  const double quotient = dot / (std::sqrt(squares_a) * std::sqrt(squares_b));
  return std::isfinite(quotient) ? quotient : 0;
}

}  // namespace

Vector word_vector(const Model& model, const std::vector<index_t>& ids) {
  const DefaultFloatEnvironment environment;
  std::vector<Problem> problems;
  if (ids.empty()) problems.push_back({"ids", "there is none; at least one"});
  for (const index_t id : ids)
    if (id < 0 || id >= model.vocab())
      problems.push_back(
          {"ids", fmt::format("{}; the vocabulary has the ids 0 to {}", id, model.vocab() - 1)});
  if (!problems.empty()) fail(ErrorKind::option, "word_vector", std::move(problems));
  Rows rows(model);
  Vector sum(rows.width(), 0.0);
  for (const index_t id : ids) {
    const std::span<const float> row = rows.at(id);
    for (std::size_t e = 0; e < sum.size(); ++e) sum[e] += row[e];
  }
  for (double& x : sum) x /= static_cast<double>(ids.size());
  return sum;
}

Vector sum_of(const std::vector<Term>& terms) {
  const DefaultFloatEnvironment environment;
  if (terms.empty()) fail(ErrorKind::option, "sum_of", "terms", "there is none; at least one");
  Vector sum(terms[0].vector.size(), 0.0);
  for (const Term& term : terms) {
    need_size("sum_of", "terms", term.vector, sum.size());
    for (std::size_t e = 0; e < sum.size(); ++e) sum[e] += term.factor * term.vector[e];
  }
  return sum;
}

double cosine(const Vector& a, const Vector& b) {
  const DefaultFloatEnvironment environment;
  need_size("cosine", "b", b, a.size());
  return cosine_of(dot(a, b), dot(a, a), dot(b, b));
}

double place_between(const Vector& a, const Vector& b, const Vector& x) {
  const DefaultFloatEnvironment environment;
  need_size("place_between", "b", b, a.size());
  need_size("place_between", "x", x, a.size());
  const Vector way = sum_of({{1, b}, {-1, a}}), to_x = sum_of({{1, x}, {-1, a}});
  const double squares = dot(way, way);
  if (!(squares > 0))
    fail(ErrorKind::option, "place_between", "b", "is a; there is no way from one to the other");
  return dot(to_x, way) / squares;
}

std::vector<Neighbour> nearest_tokens(const Model& model, const Vector& vector, index_t count,
                                      const std::vector<index_t>& left_out) {
  const DefaultFloatEnvironment environment;
  Rows rows(model);
  need_size("nearest_tokens", "vector", vector, rows.width());
  const double squares = dot(vector, vector);
  std::vector<Problem> problems;
  if (count < 1) problems.push_back({"count", fmt::format("{}; at least 1", count)});
  if (!(squares > 0 && std::isfinite(squares)))
    problems.push_back({"vector", "is 0 everywhere or not finite; it must point somewhere"});
  if (!problems.empty()) fail(ErrorKind::option, "nearest_tokens", std::move(problems));

  std::vector<Neighbour> all;
  for (index_t id = 0; id < model.vocab(); ++id) {
    if (std::find(left_out.begin(), left_out.end(), id) != left_out.end()) continue;
    const std::span<const float> row = rows.at(id);
    double product = 0, row_squares = 0;
    for (std::size_t e = 0; e < row.size(); ++e) {
      const double x = row[e];
      product += x * vector[e];
      row_squares += x * x;
    }
    all.push_back({id, cosine_of(product, squares, row_squares)});
  }
  const auto kept = std::min(all.size(), static_cast<std::size_t>(count));
  std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(kept), all.end(),
                    [](const Neighbour& a, const Neighbour& b) {
                      return a.cosine != b.cosine ? a.cosine > b.cosine : a.id < b.id;
                    });
  all.resize(kept);
  return all;
}

}  // namespace glasshead
