// The catalogue of mistakes as changes of a program (program.h), for diagnosis of any tensors. An
// entry that the table of traced mistakes (mistakes.h) has too shares its words.
//
//   for (const Fault* fault : catalogue())
//     for (const Choice& choice : fault->choices(right)) {
//       Program wrong = right;
//       if (fault->edit(wrong, choice)) ...
//     }
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/program.h"

namespace glasshead::doctor {

struct Words {
  const char* parameter = nullptr;  // "K": what stands after the colon in id:K; "" if none
  const char* title = nullptr;      // "window one too wide or too narrow"
  const char* done = nullptr;       // what is done instead of the right thing
  const char* cause = nullptr;      // a line of code as people write it
  const char* fix_code = nullptr;   // the line as it should be
  const char* fix = nullptr;        // in words
};

// A parameter: a number, and as it is written behind the colon.
struct Choice {
  double value = 0;
  std::string text;
};
using Choices = std::vector<Choice>;

struct Fault {
  const char* id;
  Words words;  // no title: those of the mistake of this id in mistakes.h
  // The parameters worth trying; empty: there is nothing to get wrong here.
  Choices (*choices)(const Program& right);
  // False: it can't be made in this program.
  bool (*edit)(Program& program, const Choice& choice);
  // Rounding of a narrower type: compared by its wide bounds, so only where nothing exact fits.
  bool is_rounding = false;
  Words with_cache =
      {};  // for queries that stand behind cached keys; no title: `words` are for all
};

std::vector<const Fault*> catalogue();  // all of them, in order
const Fault* find_fault(std::string_view id);
Words words_of(const Fault& fault);
NamedMistake named(const Fault& fault, const Choice& choice);
// In the words that fit this program.
NamedMistake named(const Fault& fault, const Choice& choice, const Program& right);

// The parts of the catalogue.
std::span<const Fault> score_faults();
std::span<const Fault> bias_faults();
std::span<const Fault> mask_faults();
std::span<const Fault> mask_part_faults();
std::span<const Fault> softmax_faults();
std::span<const Fault> layout_faults();
std::span<const Fault> position_faults();
std::span<const Fault> tile_faults();
std::span<const Fault> gradient_faults();

inline Choices once(bool is_possible = true) { return is_possible ? Choices{{0, ""}} : Choices{}; }
inline bool is_square(const Program& p) { return p.q->extent(2) == p.k->extent(2); }
inline bool has_mask(const Program& p) { return !p.options.mask.parts().empty(); }
template <class Part>
bool has_part(const Program& p) {
  for (const Mask::Part& part : p.options.mask.parts())
    if (std::holds_alternative<Part>(part)) return true;
  return false;
}
inline bool has_positional_mask(const Program& p) {
  return has_part<Mask::Causal>(p) || has_part<Mask::Window>(p) || has_part<Mask::Prefix>(p);
}
template <class Part>
void erase_part(Program& p) {
  std::erase_if(p.options.mask.parts(),
                [](const Mask::Part& part) { return std::holds_alternative<Part>(part); });
}
template <class Term>
bool has_term(const Program& p) {
  for (const Bias::Term& term : p.options.bias.terms())
    if (std::holds_alternative<Term>(term)) return true;
  return false;
}
// Whether an entry of a dense bias lies in [low, high].
bool has_dense_bias_in(const Program& p, double low, double high);
bool hides_by_bias(const Program& p);  // some dense bias has an entry of -inf
// Where query row 0 stands: before it, so many keys.
inline index_t query_start(const Program& p) {
  return resolve_query_start(p.options.query_start, p.q->extent(2), p.k->extent(2));
}

}  // namespace glasshead::doctor
