// Trials of the doctor: inputs drawn by number, mistakes made on them, and right attention written
// once more in the orders and types that programs use. bench/doctor runs them all, the tests a few.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "core/bias_plan.h"
#include "doctor/search.h"

namespace glasshead::doctor::trials {

struct Inputs {
  std::string name;
  ProbeShape shape;
  AttentionOptions options;
  std::optional<Rotary> rotary = {};
};

// Numbers drawn one after another.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : seed_(seed) {}
  double unit() { return uniform(seed_, n_++); }
  double normal() { return standard_normal(seed_, n_++, 1); }
  index_t from(index_t low, index_t high) {
    return low + static_cast<index_t>(unit() * static_cast<double>(high - low + 1));
  }
  bool one_in(index_t n) { return from(1, n) == 1; }

 private:
  std::uint64_t seed_, n_ = 0;
};

inline Bias random_bias(Draw& draw, index_t heads, index_t q_len, index_t kv_len) {
  auto values = std::make_shared<std::vector<double>>();
  for (index_t n = 0; n < heads * q_len * kv_len; ++n) values->push_back(draw.normal());
  const View<const double, 3> view(values->data(), {heads, q_len, kv_len});
  return Bias::dense(Broadcast(ConstTensor<3>(view), values));
}

inline Mask random_mask(Draw& draw, index_t heads, index_t q_len, index_t kv_len) {
  auto values = std::make_shared<std::vector<std::uint8_t>>();
  for (index_t n = 0; n < heads * q_len * kv_len; ++n) values->push_back(draw.unit() < 0.7 ? 1 : 0);
  const View<const std::uint8_t, 3> view(values->data(), {heads, q_len, kv_len});
  return Mask::allowed(Broadcast(ConstTensor<3>(view), values));
}

inline Mask random_lengths(Draw& draw, const ProbeShape& s) {
  std::vector<index_t> lengths;
  for (index_t b = 0; b < s.batch; ++b) lengths.push_back(draw.from(s.kv_len / 3, s.kv_len));
  return Mask::key_lengths(lengths);
}

inline Mask random_documents(Draw& draw, const ProbeShape& s) {
  std::vector<index_t> queries, keys;
  const index_t first = draw.from(1, s.kv_len), second = draw.from(1, s.kv_len);
  const auto document = [&](index_t at) { return index_t{at >= first} + index_t{at >= second}; };
  for (index_t i = 0; i < s.q_len; ++i) queries.push_back(document(s.kv_len - s.q_len + i));
  for (index_t j = 0; j < s.kv_len; ++j) keys.push_back(document(j));
  return Mask::segments(1, queries, keys);
}

// Masks, biases, caps and positions of every kind in turn; shared heads, odd sizes, d_v != d_k.
inline Inputs random_inputs(std::uint64_t number) {
  Draw draw(1000 + number);
  Inputs in;
  ProbeShape& s = in.shape;
  s.batch = draw.from(1, 2);
  s.kv_heads = draw.from(1, 3);
  s.heads = s.kv_heads * draw.from(1, 3);
  s.q_len = draw.from(2, 20);
  s.kv_len = s.q_len + (draw.one_in(3) ? 0 : draw.from(1, 24));
  if (draw.one_in(6)) s.kv_len = draw.from(65, 150);
  s.d_k = draw.from(2, 12);
  s.d_v = draw.one_in(2) ? s.d_k : draw.from(1, 12);
  const auto start = [&] {
    if (s.q_len == s.kv_len) return QueryStart{};
    return draw.one_in(2) ? QueryStart{Align::end} : QueryStart{Align::start};
  };
  switch (number % 10) {
    case 0:
      in.name = "plain";
      break;
    case 1:
      in.name = "causal";
      in.options.mask = Mask::causal();
      in.options.query_start = start();
      break;
    case 2:
      in.name = "causal, documents";
      in.options.mask = Mask::causal() & random_documents(draw, s);
      in.options.query_start = Align::end;
      break;
    case 3:
      in.name = "causal, window";
      in.options.mask = Mask::causal() & Mask::window(draw.from(1, 8), 0);
      in.options.query_start = start();
      break;
    case 4:
      in.name = "window, lengths";
      in.options.mask = Mask::window(draw.from(2, 9), draw.from(1, 5)) & random_lengths(draw, s);
      in.options.query_start = start();
      break;
    case 5:
      in.name = "cap, bias, mask";
      in.options.softcap = 3;
      in.options.mask = random_mask(draw, s.heads, s.q_len, s.kv_len);
      in.options.bias = random_bias(draw, s.heads, s.q_len, s.kv_len);
      break;
    case 6:
      in.name = "ALiBi, causal, lengths";
      in.options.mask = Mask::causal() & random_lengths(draw, s);
      in.options.bias = Bias::alibi(Bias::alibi_slopes(s.heads));
      in.options.query_start = start();
      break;
    case 7:
      in.name = "rotary, causal";
      s.d_k = 2 * draw.from(2, 6);
      in.rotary = Rotary{draw.one_in(2), 10000, 0};
      in.options.mask = Mask::causal();
      in.options.query_start = start();
      break;
    case 8:
      in.name = "sinks, prefix, window";
      in.options.mask =
          Mask::prefix({draw.from(1, s.kv_len / 2)}) & Mask::window(draw.from(4, 20), 5);
      for (index_t h = 0; h < s.heads; ++h) in.options.sinks.push_back(draw.normal());
      in.options.query_start = start();
      break;
    default: {
      in.name = "T5, scale";
      Bias::T5 t5;
      t5.buckets = 8;
      t5.heads = s.heads;
      t5.max_distance = 16;
      for (index_t n = 0; n < t5.buckets * s.heads; ++n) t5.table.push_back(draw.normal());
      in.options.bias = Bias::t5(t5);
      in.options.query_start = start();
      in.options.scale = 0.3;
      break;
    }
  }
  in.name += " [" + std::to_string(s.batch) + ", " + std::to_string(s.heads) + "/" +
             std::to_string(s.kv_heads) + ", " + std::to_string(s.q_len) + " x " +
             std::to_string(s.kv_len) + ", " + std::to_string(s.d_k) + "/" + std::to_string(s.d_v) +
             "]";
  return in;
}

// out, weights and lse in f32, as somebody's program may have written them.
struct Written {
  Tensor<float, 4> out, weights;
  Tensor<float, 3> lse;
  explicit Written(const ProbeShape& s)
      : out({s.batch, s.heads, s.q_len, s.d_v}),
        weights({s.batch, s.heads, s.q_len, s.kv_len}),
        lse({s.batch, s.heads, s.q_len}) {}
  Claims claims(bool has_weights) const {
    Claims claims;
    claims.out = out;
    claims.lse = lse;
    if (has_weights) claims.weights = weights;
    return claims;
  }
};

// What a program of the catalogue gives, each number off by up to two roundings of f32 at the size
// of what it is a sum of.
inline Written written(const Program& program, const ProbeShape& s, Draw noise) {
  Written to(s);
  Runner runner(program);
  const auto off = [&](double x, double size) {
    if (!(std::fabs(x) < 0x1p100)) return static_cast<float>(x);  // nothing is to overflow
    return static_cast<float>(x + 0x1p-23 * (2 * noise.unit() - 1) * size);
  };
  for (index_t b = 0; b < s.batch; ++b)
    for (index_t h = 0; h < s.heads; ++h)
      for (index_t i = 0; i < s.q_len; ++i) {
        const RowNumbers& row = runner.row({b, h, i});
        for (index_t d = 0; d < s.d_v; ++d)
          to.out(b, h, i, d) = off(row.out[slot(d)], row.out_size[slot(d)]);
        for (index_t j = 0; j < s.kv_len && slot(j) < row.weights.size(); ++j)
          to.weights(b, h, i, j) = off(row.weights[slot(j)], row.weights[slot(j)]);
        to.lse(b, h, i) = off(row.lse, std::isfinite(row.lse) ? row.lse : 0);
      }
  return to;
}

// Every number of out and lse of a program, with its tolerance.
inline std::vector<Shown> all_shown(const Subject& subject, const Judge& judge,
                                    const Program& program) {
  std::vector<Shown> all;
  Runner runner(program);
  for (const RowIndex& row : rows_to_check(subject.right, 1e12))
    for (const Shown& number : shown(judge, runner.row(row), row)) all.push_back(number);
  return all;
}

// The largest distance between two programs' numbers, in both tolerances.
inline double farthest(const std::vector<Shown>& a, const std::vector<Shown>& b) {
  double most = 0;
  for (std::size_t n = 0; n < a.size(); ++n)
    most = std::max(most, distance(a[n].expected, b[n].expected, a[n].tolerance + b[n].tolerance));
  return most;
}

inline std::string name_of(const std::vector<Made>& made) {
  std::string text;
  for (const Made& one : made)
    text += (text.empty() ? "" : " + ") + named(*one.fault, one.choice).name();
  return text;
}

inline bool has(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

// The group of the probe that holds this name: what it can't be told from.
inline std::vector<std::string> group_of(const Probe& probe, const std::string& name) {
  for (const std::vector<std::string>& group : probe.alike)
    if (has(group, name)) return group;
  return {name};
}

struct Count {
  index_t made = 0;
  index_t invisible = 0;    // not named, and it was said that this input can't show it
  index_t exact = 0;        // named alone
  index_t grouped = 0;      // named among those that coincide with it here
  index_t unexplained = 0;  // "no mistake fits"
  index_t wrong = 0;        // named as something else, or called right without a word
  std::vector<std::string> misses = {};
  void miss(const std::string& text) {
    if (misses.size() < 400) misses.push_back(text);
  }
  void operator+=(const Count& other) {
    made += other.made;
    invisible += other.invisible;
    exact += other.exact;
    grouped += other.grouped;
    unexplained += other.unexplained;
    wrong += other.wrong;
    for (const std::string& text : other.misses) miss(text);
  }
};

inline std::string names(const Diagnosis& d) {
  std::string text;
  for (const Cause& cause : d.causes)
    text += (text.empty() ? "" : " | ") + cause.name() + (cause.is_close ? " (close)" : "");
  return text;
}

inline std::optional<Program> program_of(const Program& right, const Cause& cause);

// Each mistake of the catalogue for whose name `is_wanted` holds, alone on these inputs. Without
// lse, what gives the same out is alike too.
template <class IsWanted>
Count try_singles(const Inputs& in, std::uint64_t seed, bool has_lse, const IsWanted& is_wanted) {
  Count count;
  const Probe probe = make_probe(in.shape, in.options, seed, in.rotary);
  const AttentionCase attention{probe.q, probe.k, probe.v, in.options, in.rotary, {}};
  const Subject subject(attention, DType::f32);
  const std::vector<Suspect> all = singles(subject.right);
  for (std::size_t n = 0; n < all.size(); ++n) {
    const std::string wanted = name_of(all[n].made);
    if (all[n].is_rounding() || !is_wanted(wanted)) continue;
    if (!has_lse && wanted.starts_with("lse-")) continue;
    ++count.made;
    const Written theirs = written(all[n].program, in.shape, Draw(seed + 7 * n));
    Claims claims = theirs.claims(false);
    if (!has_lse) claims.lse = {};
    const Judge judge(claims, std::nullopt, DType::f32);
    const auto gives_the_same_out = [&](const Cause& cause) {
      const std::optional<Program> other = program_of(subject.right, cause);
      return !has_lse && other &&
             farthest(all_shown(subject, judge, all[n].program),
                      all_shown(subject, judge, *other)) <= kClose;
    };
    const Diagnosis d = diagnose(attention, claims, {.tries_pairs = false});
    const std::vector<std::string> group = group_of(probe, wanted);
    const auto miss = [&](const char* what) {
      count.miss(in.name + ": " + wanted + ": " + what + names(d));
    };
    const bool is_declared = has(group, "right");
    if (d.is_right()) {
      if (has(d.blind, wanted) || is_declared) {
        ++count.invisible;
      } else {
        ++count.wrong;
        miss("called right");
      }
      continue;
    }
    if (d.causes.empty()) {
      if (is_declared) {  // a number or two at the very edge
        ++count.invisible;
        continue;
      }
      ++count.unexplained;
      miss("not named");
      continue;
    }
    const bool is_named = std::any_of(d.causes.begin(), d.causes.end(),
                                      [&](const Cause& c) { return c.name() == wanted; });
    const bool is_in_group = std::all_of(d.causes.begin(), d.causes.end(), [&](const Cause& c) {
      return c.is_close || has(group, c.name()) || gives_the_same_out(c);
    });
    if (!is_named || !is_in_group) {
      ++count.wrong;
      miss("called ");
    } else {
      ++(d.causes.size() == 1 ? count.exact : count.grouped);
    }
  }
  return count;
}

// The program that a cause names; nullopt where its parameter was solved for.
inline std::optional<Program> program_of(const Program& right, const Cause& cause) {
  Program program = right;
  for (const NamedMistake& m : cause.mistakes) {
    const Fault* fault = find_fault(m.id);
    bool is_made = false;
    for (const Choice& choice : fault->choices(right))
      if (choice.text == m.parameter) {
        if (!fault->edit(program, choice)) return std::nullopt;
        is_made = true;
        break;
      }
    if (!is_made) return std::nullopt;
  }
  return program;
}

// Pairs of mistakes on one probe.
class Pairing {
 public:
  Pairing(const Inputs& in, std::uint64_t seed)
      : in_(in),
        seed_(seed),
        probe_(make_probe(in.shape, in.options, seed, in.rotary)),
        attention_{probe_.q, probe_.k, probe_.v, in.options, in.rotary, {}},
        subject_(attention_, DType::f32),
        any_(in.shape),
        claims_(any_.claims(false)),
        judge_(claims_, std::nullopt, DType::f32),
        right_(all_shown(subject_, judge_, subject_.right)) {
    for (Suspect& single : singles(subject_.right)) {
      if (single.is_rounding()) continue;
      if (farthest(right_, all_shown(subject_, judge_, single.program)) <= kClose) continue;
      singles_.push_back(std::move(single));
    }
    for (std::size_t a = 0; a < singles_.size(); ++a)
      for (std::size_t b = a + 1; b < singles_.size(); ++b)
        if (singles_[a].made.front().fault != singles_[b].made.front().fault)
          pairs_.push_back({a, b});
  }

  std::size_t size() const { return pairs_.size(); }

  // The pair of this number: made, diagnosed, and counted.
  void try_pair(std::size_t n, Count& count) const {
    const auto [a, b] = pairs_[n];
    std::vector<Made> made{singles_[a].made.front(), singles_[b].made.front()};
    Program program = singles_[a].program;
    if (!made[1].fault->edit(program, made[1].choice)) return;  // can't be made together
    ++count.made;
    const std::string wanted = name_of(made);
    const Written theirs = written(program, in_.shape, Draw(seed_ + 7 * n));
    const Diagnosis d = diagnose(attention_, theirs.claims(false));
    const std::vector<Shown> truth = all_shown(subject_, judge_, program);
    const auto miss = [&](const char* what) {
      count.miss(in_.name + ": " + wanted + ": " + what + names(d));
    };
    if (d.is_right()) {
      if (farthest(right_, truth) <= kClose) {
        ++count.invisible;
      } else {
        ++count.wrong;
        miss("called right");
      }
      return;
    }
    if (d.causes.empty()) {
      ++count.unexplained;
      miss("not named");
      return;
    }
    if (d.causes.size() == 1 && d.causes.front().name() == wanted) {
      ++count.exact;
      return;
    }
    // Every name given without reserve has to be of a program that is the same one here: its exact
    // numbers, not those of f32, are the pair's.
    for (const Cause& cause : d.causes) {
      if (cause.is_close || cause.name() == wanted) continue;
      const std::optional<Program> other = program_of(subject_.right, cause);
      const bool is_same = other ? farthest(truth, all_shown(subject_, judge_, *other)) <= kSame
                                 : cause.worst <= kFits;
      if (is_same) continue;
      ++count.wrong;
      miss("called ");
      return;
    }
    ++count.grouped;
  }

 private:
  static constexpr double kSame = 1;  // both tolerances: nobody can tell them apart in f32
  Inputs in_;
  std::uint64_t seed_;
  Probe probe_;
  AttentionCase attention_;
  Subject subject_;
  Written any_;
  Claims claims_;
  Judge judge_;
  std::vector<Shown> right_;
  std::vector<Suspect> singles_;
  std::vector<std::pair<std::size_t, std::size_t>> pairs_;
};

}  // namespace glasshead::doctor::trials
