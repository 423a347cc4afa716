#include "doctor/subject.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/random.h"
#include "core/findings.h"
#include "core/scale.h"

namespace glasshead::doctor {
namespace {

ConstTensor<4> swap_axes(ConstTensor<4> tensor) {
  std::swap(tensor.shape[1], tensor.shape[2]);
  std::swap(tensor.strides[1], tensor.strides[2]);
  return tensor;
}

bool is_floating_type(DType type) { return type != DType::u8 && type != DType::i64; }

template <int Rank>
void check_claim(const char* name, const ConstTensor<Rank>& claim,
                 const std::array<index_t, ConstTensor<Rank>::kRank>& wanted,
                 std::vector<Problem>& problems) {
  if (claim.data == nullptr) return;
  if (claim.shape != wanted)
    problems.push_back({name, "has shape " + shape_text(claim.shape) + "; these inputs give " +
                                  shape_text(wanted)});
  if (!is_floating_type(claim.dtype))
    problems.push_back({name, std::string("has dtype ") + glasshead::name(claim.dtype) +
                                  "; f64, f32, bf16 or f16 is needed"});
}

void add_unique(std::vector<index_t>& list, index_t n, index_t limit) {
  if (n >= 0 && n < limit && std::find(list.begin(), list.end(), n) == list.end())
    list.push_back(n);
}

}  // namespace

Subject::Subject(const AttentionCase& attention, DType arithmetic, const ConstTensor<4>& gradient)
    : q(attention.q),
      k(attention.k),
      v(attention.v),
      swapped{Numbers(swap_axes(attention.q)), Numbers(swap_axes(attention.k)),
              Numbers(swap_axes(attention.v))} {
  if (attention.unprojected.data != nullptr) unprojected.emplace(attention.unprojected);
  if (gradient.data != nullptr) d_out.emplace(gradient);
  right.d_out = d_out ? &*d_out : nullptr;
  right.q = &q;
  right.k = &k;
  right.v = &v;
  right.unprojected = unprojected ? &*unprojected : nullptr;
  for (std::size_t n = 0; n < swapped.size(); ++n) right.swapped[n] = &swapped[n];
  right.options = attention.options;
  right.options.empty_row = EmptyRow::zero;
  right.options.dropout = {};
  right.scale = scale_of(attention.options, attention.k.shape[3]);
  right.arithmetic = arithmetic;
  right.rotary = attention.rotary;
  right.turns = &turns;
}

DType narrowest(const AttentionCase& attention, const Claims& claims) {
  DType type = attention.q.dtype;
  const auto look = [&](const auto& claim) {
    if (claim.data != nullptr && half_ulp(claim.dtype) > half_ulp(type)) type = claim.dtype;
  };
  look(claims.out);
  look(claims.weights);
  look(claims.scores);
  look(claims.dq);
  look(claims.dk);
  look(claims.dv);
  return type;
}

std::vector<RowIndex> rows_to_check(const Program& program, double most_work) {
  const PairShape pairs = program.pairs();
  const index_t batch = pairs.batch, heads = pairs.heads, q_len = pairs.q_len;
  const double all = static_cast<double>(batch * heads * q_len);
  const double row = static_cast<double>(std::max<index_t>(1, pairs.kv_len)) *
                     static_cast<double>(program.d_k() + program.d_v());
  std::vector<RowIndex> rows;
  if (all * row <= most_work) {
    for (index_t b = 0; b < batch; ++b)
      for (index_t h = 0; h < heads; ++h)
        for (index_t i = 0; i < q_len; ++i) rows.push_back({b, h, i});
    return rows;
  }
  const double most = std::max(32.0, most_work / row);
  std::vector<index_t> queries;
  for (const index_t i : {index_t{0}, q_len - 1, index_t{1}, index_t{63}, index_t{64}, index_t{127},
                          index_t{128}, q_len / 2, q_len - 65})
    add_unique(queries, i, q_len);
  for (const index_t i : queries)
    for (index_t n = 0; n < std::min<index_t>(4, batch * heads); ++n) {
      const index_t head = n * (batch * heads - 1) / 3;
      rows.push_back({head / heads, head % heads, i});
    }
  for (std::uint64_t n = 0; static_cast<double>(rows.size()) < most; ++n) {
    const auto at = static_cast<index_t>(uniform(0, n) * all);
    rows.push_back({at / q_len / heads, at / q_len % heads, at % q_len});
  }
  const auto key = [](const RowIndex& r) { return std::array<index_t, 3>{r.b, r.h, r.i}; };
  std::sort(rows.begin(), rows.end(),
            [&](const RowIndex& a, const RowIndex& b) { return key(a) < key(b); });
  rows.erase(std::unique(rows.begin(), rows.end(),
                         [&](const RowIndex& a, const RowIndex& b) { return key(a) == key(b); }),
             rows.end());
  return rows;
}

std::vector<RowIndex> spread(const std::vector<RowIndex>& rows, std::size_t count) {
  if (rows.size() <= count) return rows;
  std::vector<RowIndex> some;
  for (std::size_t n = 0; n < count; ++n) some.push_back(rows[n * (rows.size() - 1) / (count - 1)]);
  return some;
}

void check_rotary(const AttentionCase& attention, std::vector<Problem>& problems) {
  if (!attention.rotary) return;
  const index_t d_k = attention.k.shape[3];
  const index_t size = attention.rotary->size == 0 ? d_k : attention.rotary->size;
  if (size % 2 != 0 || size < 0 || size > d_k)
    problems.push_back({"rotary", "turns " + std::to_string(size) + " coordinates of " +
                                      std::to_string(d_k) +
                                      "; an even number up to that is needed"});
  if (!(attention.rotary->base > 0) || !std::isfinite(attention.rotary->base))
    problems.push_back({"rotary", "base must be a finite number above 0"});
}

std::vector<Problem> check_diagnosis(const AttentionCase& attention, const Claims& claims,
                                     const DiagnoseOptions& options) {
  AttentionOptions believed = attention.options;
  believed.empty_row = EmptyRow::zero;
  std::vector<Problem> problems = check(attention.q, attention.k, attention.v, believed);
  if (!problems.empty()) return problems;
  const auto& q = attention.q.shape;
  const index_t kv_len = attention.k.shape[2];
  if (believed.dropout.p != 0)
    problems.push_back({"dropout",
                        "what is dropped depends on their random numbers; compare "
                        "without dropout"});
  const bool has_gradients =
      claims.dq.data != nullptr || claims.dk.data != nullptr || claims.dv.data != nullptr;
  if (claims.out.data == nullptr && claims.weights.data == nullptr &&
      claims.scores.data == nullptr && claims.lse.data == nullptr && !has_gradients)
    problems.push_back(
        {"claims", "none is given; out, weights, scores, lse or a gradient is needed"});
  if (has_gradients && claims.d_out.data == nullptr)
    problems.push_back({"d_out", "missing; gradients are judged with the d_out they came from"});
  if (has_gradients && attention.rotary)
    problems.push_back({"rotary", "gradients are judged with q and k as they are after rotation"});
  check_claim<4>("out", claims.out, {q[0], q[1], q[2], attention.v.shape[3]}, problems);
  check_claim<4>("weights", claims.weights, {q[0], q[1], q[2], kv_len}, problems);
  check_claim<4>("scores", claims.scores, {q[0], q[1], q[2], kv_len}, problems);
  check_claim<3>("lse", claims.lse, {q[0], q[1], q[2]}, problems);
  check_claim<4>("dq", claims.dq, q, problems);
  check_claim<4>("dk", claims.dk, attention.k.shape, problems);
  check_claim<4>("dv", claims.dv, attention.v.shape, problems);
  check_claim<4>("d_out", claims.d_out, {q[0], q[1], q[2], attention.v.shape[3]}, problems);
  check_claim<4>("unprojected", attention.unprojected, attention.v.shape, problems);
  check_rotary(attention, problems);
  if (options.arithmetic && !is_floating_type(*options.arithmetic))
    problems.push_back({"arithmetic", "f64, f32, bf16 or f16 is needed"});
  return problems;
}

}  // namespace glasshead::doctor
