// Mistakes in what is added to the scores.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "base/math.h"
#include "core/bias_plan.h"
#include "doctor/catalogue.h"

namespace glasshead::doctor {
namespace {

bool has_bias(const Program& p) { return !p.options.bias.terms().empty(); }

bool edit_alibi(Program& p, void (*change)(Bias::Alibi&)) {
  bool is_found = false;
  for (Bias::Term& term : p.options.bias.terms())
    if (auto* alibi = std::get_if<Bias::Alibi>(&term)) {
      change(*alibi);
      is_found = true;
    }
  return is_found;
}

constexpr double kLowest = -3.4e38;  // f32's lowest, -3.4028e38, or nearly

bool has_lowest(const Program& p) {
  return has_dense_bias_in(p, -std::numeric_limits<double>::max(), kLowest);
}

double power_of_two(double x) { return math::pow(2, x); }

const Fault kFaults[] = {
    {"bias-missing",
     {"", "bias forgotten", "nothing is added to the scores", "weights = softmax(scores)",
      "weights = softmax(scores + bias)", "add the bias after scale and cap"},
     [](const Program& p) { return once(has_bias(p)); },
     [](Program& p, const Choice&) {
       p.options.bias = {};
       return true;
     }},
    {"bias-scaled",
     {"", "bias added before the scale", "the bias is multiplied by the scale with the product",
      "s = (q @ k.T + bias) * scale", "s = q @ k.T * scale + bias", "scale, then add"},
     [](const Program& p) { return once(has_bias(p) && p.scale != 1); },
     [](Program& p, const Choice&) {
       p.bias_factor *= p.scale;
       return true;
     }},
    {"bias-sign",
     {"", "bias subtracted", "the bias has the other sign", "s = scores - bias",
      "s = scores + bias", "a bias is added; ALiBi's is negative for far keys"},
     [](const Program& p) { return once(has_bias(p)); },
     [](Program& p, const Choice&) {
       p.bias_factor = -p.bias_factor;
       return true;
     }},
    {"bias-shifted",
     {"K", "bias of another position", "key j gets the bias of key j + K",
      "s = scores + bias[:, :q_len]  # in decode: rows of the start", "s = scores + bias[position]",
      "take the rows by position, not by index in the call"},
     [](const Program& p) {
       Choices shifts;
       if (!has_bias(p)) return shifts;
       for (const index_t k :
            {index_t{1}, index_t{-1}, index_t{2}, index_t{-2}, query_start(p), -query_start(p)}) {
         const bool is_new = std::none_of(shifts.begin(), shifts.end(), [&](const Choice& c) {
           return c.value == static_cast<double>(k);
         });
         if (k != 0 && is_new) shifts.push_back({static_cast<double>(k), std::to_string(k)});
       }
       return shifts;
     },
     [](Program& p, const Choice& choice) {
       p.bias_shift = static_cast<index_t>(choice.value);
       return has_bias(p);
     }},
    {"bias-transposed",
     {"", "bias transposed", "pair (i, j) gets the bias of (j, i)", "s = scores + bias.T",
      "s = scores + bias", "rows are queries, columns are keys"},
     [](const Program& p) { return once(has_bias(p) && is_square(p)); },
     [](Program& p, const Choice&) {
       p.is_bias_transposed = true;
       return has_bias(p);
     }},
    {"bias-first-head",
     {"", "bias of the first head for all", "every head gets the bias of head 0",
      "s = scores + bias[:, :1]", "s = scores + bias", "each head has its own"},
     [](const Program& p) { return once(has_bias(p) && p.q->extent(1) > 1); },
     [](Program& p, const Choice&) {
       p.is_bias_of_first_head = true;
       return has_bias(p);
     }},
    {"alibi-slopes",
     {"RULE", "ALiBi's slopes by another rule", "the slopes of the heads follow another sequence",
      "slopes = 2 ** (-8 * arange(heads) / heads)",
      "slopes = 2 ** (-8 * (arange(heads) + 1) / heads)",
      "the paper's slopes start at 2^(-8/heads); for other than powers of two it interleaves two"},
     [](const Program& p) {
       if (!has_term<Bias::Alibi>(p)) return Choices{};
       return Choices{{0, "from-one"}, {1, "halving"}, {2, "reversed"}, {3, "not-interleaved"}};
     },
     [](Program& p, const Choice& choice) {
       const auto rule = static_cast<int>(choice.value);
       const std::vector<double> before = [&] {
         for (const Bias::Term& term : p.options.bias.terms())
           if (const auto* alibi = std::get_if<Bias::Alibi>(&term)) return alibi->slopes;
         return std::vector<double>{};
       }();
       std::vector<double> slopes = before;
       const auto heads = static_cast<double>(slopes.size());
       for (std::size_t h = 0; h < slopes.size(); ++h) {
         const auto n = static_cast<double>(h);
         if (rule == 0) slopes[h] = power_of_two(-8 * n / heads);
         if (rule == 1) slopes[h] = power_of_two(-(n + 1));
         if (rule == 2) slopes[h] = before[before.size() - 1 - h];
         if (rule == 3) slopes[h] = power_of_two(-8 * (n + 1) / heads);
       }
       if (slopes == before) return false;
       for (Bias::Term& term : p.options.bias.terms())
         if (auto* alibi = std::get_if<Bias::Alibi>(&term)) alibi->slopes = slopes;
       return true;
     }},
    {"alibi-form",
     {"", "ALiBi by key index for distance, or the reverse",
      "slope * j is added where -slope * |p - j| is meant, or the other way round",
      "bias = slopes * arange(kv_len)", "bias = -slopes * abs(positions - arange(kv_len))",
      "the two agree only under a causal mask"},
     [](const Program& p) { return once(has_term<Bias::Alibi>(p)); },
     [](Program& p, const Choice&) {
       return edit_alibi(p, [](Bias::Alibi& alibi) {
         alibi.form = alibi.form == Bias::AlibiForm::distance ? Bias::AlibiForm::key_index
                                                              : Bias::AlibiForm::distance;
       });
     }},
    {"t5-direction",
     {"", "T5's buckets for the other direction",
      "encoder buckets are used in a decoder, or the other way round",
      "bucket(relative, bidirectional=True)", "bucket(relative, bidirectional=is_encoder)",
      "decoders give all buckets to earlier keys"},
     [](const Program& p) { return once(has_term<Bias::T5>(p)); },
     [](Program& p, const Choice&) {
       bool is_found = false;
       for (Bias::Term& term : p.options.bias.terms())
         if (auto* t5 = std::get_if<Bias::T5>(&term)) {
           if (!t5->is_bidirectional && t5->buckets % 2 != 0) return false;
           t5->is_bidirectional = !t5->is_bidirectional;
           is_found = true;
         }
       return is_found;
     }},
    {"lowest-as-hidden",
     {"", "the lowest float taken for -inf",
      "keys with the type's lowest number to add are left out; a row of them is empty, not uniform",
      "if (mask[j] <= lowest) continue;", "s = s + mask", "finite numbers are added, -inf hides"},
     [](const Program& p) { return once(has_lowest(p)); },
     [](Program& p, const Choice&) {
       p.hidden_from = kLowest;
       return has_lowest(p);
     }},
    {"mask-as-boolean",
     {"RULE", "additive mask read as booleans",
      "the numbers meant to be added are read as true and false: nonzero keeps, or nonzero hides",
      "s = s.masked_fill(bias == 0, -inf)", "s = s + bias", "numbers are added, booleans select"},
     [](const Program& p) {
       if (!has_term<Bias::Dense>(p)) return Choices{};
       return Choices{{1, "nonzero-keeps"}, {0, "nonzero-hides"}};
     },
     [](Program& p, const Choice& choice) {
       if (!has_term<Bias::Dense>(p)) return false;
       const auto plan = std::make_shared<BiasPlan>(p.options, p.pairs());
       const bool keeps = choice.value != 0;
       p.options.bias = {};
       p.pair_edits.push_back([plan, keeps](const Pairs& before) -> Pairs {
         return [plan, keeps, before](index_t b, index_t h, index_t i, index_t j) {
           return before(b, h, i, j) && (plan->at<double>(b, h, i, j) != 0) == keeps;
         };
       });
       return true;
     }},
};

}  // namespace

std::span<const Fault> bias_faults() { return kFaults; }

}  // namespace glasshead::doctor
