// The table of mistakes: what people get wrong when they write attention, each as an edit of the
// list of steps, so that its numbers can be computed, shown beside the right ones and recognised.
// `trace --mistake`, worksheets, docs/mistakes.md and the doctor all read this one table.
//
//   std::vector<Problem> problems;
//   std::optional<MistakenRun> run = run_mistake("mask-after", c, problems);
//   run->wrong.at("weights");                     // rows that add to less than 1
//   run->right.at("weights");
//
// A new mistake is a row of kMistakes (mistakes.cc); what it does to the steps is a function beside
// the others (mistakes_edits.h), and an operation of its own where no edit of numbers will do
// (mistakes_ops.h).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "doctor/site.h"
#include "glasshead/error.h"
#include "glasshead/trace.h"
#include "wire/case.h"

namespace glasshead::doctor {

// Whether a mistake can be made on given inputs.
enum class Fit {
  runs,   // it gives numbers
  stops,  // the wrong program stops: the shapes do not fit together. That is its outcome
  absent  // there is nothing to get wrong (no mask to forget, no W_V to skip)
};
struct Verdict {
  Fit fit = Fit::runs;
  std::string why;  // empty when it runs
};

// Another entry whose numbers are the same, and when. id "right": the right answer itself, that is,
// what hides the mistake.
struct Coincidence {
  const char* id = nullptr;
  const char* when = nullptr;
};

struct Mistake {
  const char* id;                 // "mask-after"
  const char* title;              // "masked after softmax"
  const char* golden;             // its key in golden/seeds; "" if none
  const char* parameter;          // "S": what stands after the colon in id:S; "" if none
  const char* default_parameter;  // taken when the parameter is left out
  const char* done;               // what is done instead of the right thing
  const char* tell_tale;          // what to look for in the numbers
  const char* cause;              // a line of code as people write it
  const char* fix_code;           // the line as it should be
  const char* fix;                // in words
  Coincidence coincides[4];
  Verdict (*fits)(const Site& site, std::string_view parameter);
  // Why this input's structure cannot show the mistake, whatever its numbers; empty when it can.
  std::string (*hides)(const Site& site, double parameter);
  void (*edit)(StepList& list, const Site& site, double parameter);

  std::span<const Coincidence> coincidences() const;
};

std::span<const Mistake> mistakes();                    // in the order of the documentation
std::string id_with_parameter(const Mistake& mistake);  // "mask-finite:V"
const Mistake* find_mistake(std::string_view id);
std::string mistake_ids();  // "scores-transposed, ..., scale-other:S, ...": for help and messages

// A mistake chosen by "id" or "id:parameter".
struct ChosenMistake {
  const Mistake* mistake = nullptr;
  std::string parameter;     // as given, or the default; empty when there is none
  std::string name() const;  // "scale-other:0.5"
};
std::optional<ChosenMistake> choose_mistake(std::string_view text, std::vector<Problem>& problems);

// The list with the mistake made in every attention it holds, ready for run_steps. `right` is a run
// of the unedited list. nullopt with a problem: the mistake cannot be made here; `stops` says that
// it is because the wrong program would stop.
struct AppliedMistake {
  StepList steps;
  std::string hidden_because;  // why this input cannot show it; empty when it can
};
std::optional<AppliedMistake> apply_mistake(const ChosenMistake& chosen, const StepList& steps,
                                            const Trace& right, std::vector<Problem>& problems,
                                            Fit* fit = nullptr);

struct MistakenRun {
  ChosenMistake chosen;
  Fit fit = Fit::runs;
  std::string stops_because;   // fit is `stops`: `wrong` is empty
  std::string hidden_because;  // why this input cannot show it; empty when it can
  Trace right, wrong;
};
// Runs the case right and wrong. nullopt: unknown id, bad parameter, or nothing to get wrong here.
std::optional<MistakenRun> run_mistake(std::string_view text, const wire::Case& c,
                                       std::vector<Problem>& problems);

// The weights that multiply the values in the first attention of a run, whatever the mistake calls
// them, and the result.
const TraceTensor& weights_used(const Trace& trace);
const TraceTensor& attention_out(const Trace& trace);

}  // namespace glasshead::doctor
