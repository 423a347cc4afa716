// An exercise with blanks and its answer key. The numbers are found by search, so that they can be
// worked out by hand and every slip of the table of mistakes shows:
//
//   std::vector<Problem> problems;
//   WorksheetOptions options;
//   options.seed = 11;
//   std::optional<Worksheet> sheet = make_worksheet(options, problems);
//   std::string page = wire::to_markdown(sheet_document(*sheet));
//   std::string key = wire::to_markdown(key_document(*sheet));
//
// The same options and version give the same sheet on any machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "doctor/mistakes.h"
#include "glasshead/error.h"
#include "glasshead/trace.h"
#include "wire/case.h"
#include "wire/document.h"

namespace glasshead::doctor {

struct WorksheetOptions {
  std::uint64_t seed = 1;
  int level = 1;       // 1: one head; 2: causal and padding; 3: two heads and W_O
  index_t tokens = 3;  // 2 to 6; level 2 needs 3
  int decimals = 2;    // of the answers, 1 to 4
  // What is left blank, of: q k v scores scaled exp sum weights out, and at level 3 concat
  // projected. The rest is printed. Empty: weights and the last result.
  std::vector<std::string> blanks;
  // Scale ln 2, so that exp(s) is 2^s and every weight a fraction; the answers are whole numbers.
  bool has_fractions = false;
};

// What somebody who made one of the table's mistakes gets instead of a row of the result.
struct WrongAnswer {
  std::vector<std::string> titles;  // "mask forgotten": more than one if they give the same numbers
  std::vector<std::string> ids;
  index_t row = 0;
  std::vector<std::string> values;  // as printed
};

struct Worksheet {
  WorksheetOptions options;
  wire::Case exercise;
  Trace trace;         // exact; exp without a maximum subtracted, as on paper
  std::string result;  // the tap of the last result: "out", "projected"
  std::vector<WrongAnswer> wrong;
};

// nullopt, and why: options out of range (all of them), or no friendly numbers found for them.
// Friendly means: inputs in -2..2; d_k 1 or 4 (fractions: any), so that the scale is 1 or 1/2;
// scores at most 12 in size; no number asked for within a tenth of a unit of the last place of
// where rounding goes the other way; working by hand, every step rounded, ends within one unit of
// the exact answer; printed weights add to 1; every mistake of the table that these inputs can show
// moves a number of the result by ten units or more.
std::optional<Worksheet> make_worksheet(const WorksheetOptions& options,
                                        std::vector<Problem>& problems);

wire::Document sheet_document(const Worksheet& sheet);
wire::Document key_document(const Worksheet& sheet);
// glasshead.worksheet/1: what is given; the answers and the wrong answers with `has_answers`.
std::string worksheet_json(const Worksheet& sheet, bool has_answers);

// A column of the sheet: what it is called, and the tap that holds it.
struct Stage {
  const char* name;   // "sum"
  const char* tap;    // "row_sum"
  const char* title;  // "sum of each row"
};
// Those of this sheet, in the order of working.
std::vector<Stage> stages(const WorksheetOptions& options);
bool is_blank(const WorksheetOptions& options, const Stage& stage);

}  // namespace glasshead::doctor
