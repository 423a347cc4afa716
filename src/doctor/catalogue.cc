#include "doctor/catalogue.h"

#include <algorithm>
#include <limits>

#include "doctor/mistakes.h"

namespace glasshead::doctor {

std::vector<const Fault*> catalogue() {
  std::vector<const Fault*> all;
  for (const std::span<const Fault> part :
       {score_faults(), bias_faults(), mask_faults(), mask_part_faults(), softmax_faults(),
        layout_faults(), position_faults(), tile_faults(), gradient_faults()})
    for (const Fault& fault : part) all.push_back(&fault);
  // It shows only where hidden places hold NaN or inf, and then it is the first to think of.
  const auto at = std::find_if(all.begin(), all.end(), [](const Fault* fault) {
    return std::string_view(fault->id) == "hidden-read";
  });
  std::rotate(all.begin(), at, at + 1);
  return all;
}

const Fault* find_fault(std::string_view id) {
  for (const Fault* fault : catalogue())
    if (id == fault->id) return fault;
  return nullptr;
}

Words words_of(const Fault& fault) {
  if (fault.words.title != nullptr) return fault.words;
  const Mistake* mistake = find_mistake(fault.id);
  if (mistake == nullptr) return {"", fault.id, "", "", "", ""};
  return {mistake->parameter, mistake->title,    mistake->done,
          mistake->cause,     mistake->fix_code, mistake->fix};
}

namespace {

NamedMistake in_words(const Fault& fault, const Choice& choice, const Words& words) {
  return {fault.id, choice.text, words.title, words.done, words.cause, words.fix_code, words.fix};
}

}  // namespace

NamedMistake named(const Fault& fault, const Choice& choice) {
  return in_words(fault, choice, words_of(fault));
}

NamedMistake named(const Fault& fault, const Choice& choice, const Program& right) {
  const bool has_words = fault.with_cache.title != nullptr && query_start(right) > 0;
  return in_words(fault, choice, has_words ? fault.with_cache : words_of(fault));
}

bool has_dense_bias_in(const Program& p, double low, double high) {
  for (const Bias::Term& term : p.options.bias.terms()) {
    const auto* dense = std::get_if<Bias::Dense>(&term);
    if (dense == nullptr) continue;
    const PairShape pairs = p.pairs();
    for (index_t b = 0; b < pairs.batch; ++b)
      for (index_t h = 0; h < pairs.heads; ++h)
        for (index_t i = 0; i < pairs.q_len; ++i) {
          const BroadcastRow row = broadcast_row(dense->values, b, h, i);
          for (index_t j = 0; j < pairs.kv_len; ++j)
            if (row.load(j) >= low && row.load(j) <= high) return true;
        }
  }
  return false;
}

bool hides_by_bias(const Program& p) {
  constexpr double kHidden = -std::numeric_limits<double>::infinity();
  return has_dense_bias_in(p, kHidden, kHidden);
}

}  // namespace glasshead::doctor
