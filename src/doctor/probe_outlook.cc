#include "doctor/probe_outlook.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/checked.h"
#include "base/random.h"

namespace glasshead::doctor {
namespace {

constexpr std::uint64_t kSeeds = 64;    // of which a probe is known again; the default is 1
constexpr index_t kCompared = 8;        // of its numbers: f32 twice alike by chance, eight never
constexpr index_t kMost = 4'000'000;    // numbers of a rehearsal: half a second to draw
constexpr double kWork = 5e6;           // products and sums of its rows, as make_probe's
constexpr std::size_t kRehearsed = 64;  // rows, as many as blind spots are looked for on

double deviation(const ProbeShape& s, const AttentionOptions& options) {
  const double root = std::sqrt(static_cast<double>(s.d_k));
  const double scale = options.scale && *options.scale != 0 ? std::fabs(*options.scale) : 1 / root;
  return std::sqrt(2 / (scale * root));
}

float number(double factor, std::uint64_t seed, index_t n, std::uint64_t stream) {
  return static_cast<float>(factor * standard_normal(seed, static_cast<std::uint64_t>(n), stream));
}

Tensor<float, 4> normals(const std::array<index_t, 4>& shape, std::uint64_t seed,
                         std::uint64_t stream, double factor) {
  Tensor<float, 4> tensor(shape);
  for (index_t n = 0; n < tensor.size(); ++n) tensor.data()[n] = number(factor, seed, n, stream);
  return tensor;
}

ProbeShape shape_of(const AttentionCase& a) {
  const auto& q = a.q.shape;
  return {q[0], q[1], a.k.shape[1], q[2], a.k.shape[2], q[3], a.v.shape[3]};
}

double as_stored(float x, DType type) {
  const auto wide = static_cast<double>(x);
  if (type == DType::bf16) return widen(narrow_to_bf16(wide));
  return type == DType::f16 ? widen(narrow_to_f16(wide)) : wide;
}

bool begins_like(const ConstTensor<4>& tensor, double factor, std::uint64_t seed,
                 std::uint64_t stream) {
  for (index_t d = 0; d < std::min(kCompared, tensor.shape[3]); ++d)
    if (tensor.load(0, 0, 0, d) != as_stored(number(factor, seed, d, stream), tensor.dtype))
      return false;
  return true;
}

bool is_like_a_probe(const AttentionCase& a) {
  for (const auto& shape : {a.q.shape, a.k.shape, a.v.shape})
    if (checked_size(shape) == index_t{0}) return false;
  const ProbeShape s = shape_of(a);
  const double factor = deviation(s, a.options);
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed)
    if (begins_like(a.q, factor, seed, 0) && begins_like(a.k, factor, seed, 1) &&
        begins_like(a.v, 1, seed, 2))
      return true;
  return false;
}

bool is_small(const AttentionCase& a, const Claims& claims) {
  const auto& q = a.q.shape;
  const index_t kv_len = a.k.shape[2];
  const std::array<index_t, 4> pairs{q[0], q[1], q[2], kv_len};
  index_t all = 0;
  const auto add = [&](const std::array<index_t, 4>& shape) {
    const std::optional<index_t> size = checked_size(shape);
    all = size && *size <= kMost ? all + *size : kMost + 1 + all;
  };
  for (const auto& shape : {a.q.shape, a.k.shape, a.v.shape}) add(shape);
  if (claims.weights.data != nullptr) add(pairs);
  if (claims.scores.data != nullptr) add(pairs);
  return all <= kMost && checked_size(a.q.shape) != index_t{0} &&
         checked_size(a.k.shape) != index_t{0};
}

}  // namespace

ProbeInputs probe_inputs(const ProbeShape& s, const AttentionOptions& options, std::uint64_t seed) {
  const double factor = deviation(s, options);
  return {normals({s.batch, s.heads, s.q_len, s.d_k}, seed, 0, factor),
          normals({s.batch, s.kv_heads, s.kv_len, s.d_k}, seed, 1, factor),
          normals({s.batch, s.kv_heads, s.kv_len, s.d_v}, seed, 2, 1)};
}

// A probe of these shapes, and claims of the same kinds; what they hold is not looked at.
struct ProbeOutlook::Rehearsal {
  ProbeInputs inputs;
  Tensor<float, 4> out, pairs;
  Tensor<float, 3> lse;
  Claims claims;
  AttentionCase attention;
  Subject subject;
  Judge judge;
  std::vector<RowIndex> rows;

  Rehearsal(const AttentionCase& given, const Claims& like, DType arithmetic)
      : inputs(probe_inputs(shape_of(given), given.options, 1)),
        out({given.q.shape[0], given.q.shape[1], given.q.shape[2], given.v.shape[3]}),
        lse({given.q.shape[0], given.q.shape[1], given.q.shape[2]}),
        attention{inputs.q, inputs.k, inputs.v, given.options, given.rotary, {}},
        subject(attention, arithmetic),
        judge(claims, std::nullopt, arithmetic),
        rows(spread(rows_to_check(subject.right, kWork), kRehearsed)) {
    if (like.weights.data != nullptr || like.scores.data != nullptr)
      pairs = Tensor<float, 4>(
          {given.q.shape[0], given.q.shape[1], given.q.shape[2], given.k.shape[2]});
    if (like.out.data != nullptr) claims.out = out;
    if (like.lse.data != nullptr) claims.lse = lse;
    if (like.weights.data != nullptr) claims.weights = pairs;
    if (like.scores.data != nullptr) claims.scores = pairs;
  }

  // The right program with these mistakes; nullopt where a probe can't have them.
  std::optional<Program> with(const std::vector<Made>& made) const {
    Program program = subject.right;
    for (const Made& one : made)
      if (one.fault->choices(subject.right).empty() || !one.fault->edit(program, one.choice))
        return std::nullopt;
    return program;
  }

  bool are_apart(const Program& a, const Program& b) const {
    Runner first(a), second(b);
    return std::any_of(rows.begin(), rows.end(), [&](const RowIndex& row) {
      return count_differing(shown(judge, first.row(row), row),
                             shown(judge, second.row(row), row)) > 0;
    });
  }
};

ProbeOutlook::ProbeOutlook(const AttentionCase& attention, const Claims& claims, DType arithmetic)
    : attention_(attention),
      claims_(claims),
      arithmetic_(arithmetic),
      is_probe_(is_like_a_probe(attention)) {}
ProbeOutlook::~ProbeOutlook() = default;

const ProbeOutlook::Rehearsal* ProbeOutlook::rehearsal() {
  const bool has_rows = claims_.out.data != nullptr || claims_.weights.data != nullptr ||
                        claims_.scores.data != nullptr || claims_.lse.data != nullptr;
  if (!rehearsal_ && has_rows && is_small(attention_, claims_))
    rehearsal_ = std::make_unique<Rehearsal>(attention_, claims_, arithmetic_);
  return rehearsal_.get();
}

bool ProbeOutlook::tells_apart(const std::vector<Suspect>& suspects) {
  if (is_probe_ || suspects.empty()) return false;
  const Rehearsal* probe = rehearsal();
  if (probe == nullptr) return true;
  const std::optional<Program> first = probe->with(suspects.front().made);
  return std::any_of(suspects.begin() + 1, suspects.end(), [&](const Suspect& suspect) {
    const std::optional<Program> other = probe->with(suspect.made);
    return first && other && probe->are_apart(*first, *other);
  });
}

bool ProbeOutlook::shows(const Made& made) {
  if (is_probe_) return false;
  const Rehearsal* probe = rehearsal();
  if (probe == nullptr) return true;
  const std::optional<Program> wrong = probe->with({made});
  return wrong && probe->are_apart(probe->subject.right, *wrong);
}

}  // namespace glasshead::doctor
