#include "doctor/fit_claims.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "core/findings.h"

namespace glasshead::doctor {
namespace {

using Shape = std::vector<index_t>;

// `shape` with leading axes of size 1 added up to `rank`, or left out down to it.
Shape with_rank(Shape shape, std::size_t rank) {
  while (shape.size() < rank) shape.insert(shape.begin(), 1);
  while (shape.size() > rank && shape.front() == 1) shape.erase(shape.begin());
  return shape;
}

template <std::size_t Rank>
std::array<index_t, Rank> dense_strides(const std::array<index_t, Rank>& shape) {
  std::array<index_t, Rank> strides{};
  index_t stride = 1;
  for (std::size_t axis = Rank; axis-- > 0; stride *= shape[axis]) strides[axis] = stride;
  return strides;
}

class Fitting {
 public:
  Fitting(FittedClaims& to, std::vector<Problem>& problems) : to_(to), problems_(problems) {}

  // `wanted` [batch, heads, length, size]; `has_merged`: heads may stand side by side.
  ConstTensor<4> rank4(const char* name, const FileTensor* given,
                       const std::array<index_t, 4>& wanted, bool has_merged) {
    if (given == nullptr) return {};
    const auto [batch, heads, length, size] = wanted;
    const Shape right(wanted.begin(), wanted.end()), found = with_rank(given->shape, 4);
    if (found == right) return {given->bytes.data(), given->dtype, wanted, dense_strides(wanted)};
    const bool is_by_length = found == Shape{batch, length, heads, size};
    const Shape three = with_rank(given->shape, 3);
    const bool is_merged = has_merged && heads > 0 && three.size() == 3 && three[0] == batch &&
                           three[1] == length && three[2] % heads == 0 && three[2] / heads == size;
    if (!is_by_length && !is_merged) {
      misfit(name, *given, right);
      return {};
    }
    say(name, *given, is_merged ? "[batch, length, heads*size]" : "[batch, length, heads, size]");
    const index_t row = given->bytes.empty() ? 0 : heads * size;  // sizes of no numbers may be any
    return {given->bytes.data(), given->dtype, wanted, {length * row, size, row, 1}};
  }

  ConstTensor<3> rank3(const char* name, const FileTensor* given,
                       const std::array<index_t, 3>& wanted) {
    if (given == nullptr) return {};
    const auto [batch, heads, length] = wanted;
    const Shape right(wanted.begin(), wanted.end()), found = with_rank(given->shape, 3);
    if (found == right) return {given->bytes.data(), given->dtype, wanted, dense_strides(wanted)};
    if (found != Shape{batch, length, heads}) {
      misfit(name, *given, right);
      return {};
    }
    say(name, *given, "[batch, length, heads]");
    return {given->bytes.data(), given->dtype, wanted, {length * heads, 1, heads}};
  }

 private:
  void misfit(const char* name, const FileTensor& given, const Shape& right) {
    problems_.push_back({name, "has shape " + shape_text(given.shape) + "; these inputs give " +
                                   shape_text(with_rank(right, given.shape.size()))});
  }

  void say(const char* name, const FileTensor& given, const std::string& axes) {
    to_.read.push_back(std::string(name) + " as " + axes + ", since that is how its shape " +
                       shape_text(given.shape) + " fits");
  }

  FittedClaims& to_;
  std::vector<Problem>& problems_;
};

}  // namespace

FittedClaims fit_claims(const GivenClaims& given, const AttentionCase& attention,
                        std::vector<Problem>& problems) {
  const auto [batch, heads, q_len, d_k] = attention.q.shape;
  const std::array<index_t, 4> out{batch, heads, q_len, attention.v.shape[3]};
  const std::array<index_t, 4> pairs{batch, heads, q_len, attention.k.shape[2]};
  FittedClaims fitted;
  Fitting fit(fitted, problems);
  Claims& claims = fitted.claims;
  claims.out = fit.rank4("out", given.out, out, true);
  claims.weights = fit.rank4("weights", given.weights, pairs, false);
  claims.scores = fit.rank4("scores", given.scores, pairs, false);
  claims.lse = fit.rank3("lse", given.lse, {batch, heads, q_len});
  claims.dq = fit.rank4("dq", given.dq, attention.q.shape, true);
  claims.dk = fit.rank4("dk", given.dk, attention.k.shape, true);
  claims.dv = fit.rank4("dv", given.dv, attention.v.shape, true);
  claims.d_out = fit.rank4("d_out", given.d_out, out, true);
  return fitted;
}

}  // namespace glasshead::doctor
