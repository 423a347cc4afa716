// Arithmetic as on paper: every intermediate rounded before the next step uses it, beside the exact
// numbers, with what the rounding did.
//
//   ByHand hand = run_by_hand(c, {2, false});
//   for (const std::string& line : by_hand_lines(c, hand, options)) show(line);
#pragma once

#include <string>
#include <vector>

#include "wire/document_build.h"
#include "wire/json_writer.h"

namespace glasshead::wire {

struct ByHandOptions {
  int decimals = 2;
  bool is_shifted = false;  // subtract the row maximum first; paper leaves it in
};

struct ByHand {
  Trace rounded, exact;
  int decimals = 2;
};

// Runs the case twice (rule R1: half up, ties decided at 12 significant digits). Inputs and the
// scale stay as they are. With pieces or generated tokens, the first piece.
ByHand run_by_hand(const Case& c, const ByHandOptions& options);

// Two lines for every row: "by hand   z ...", "exact     weights ...   drift ...".
std::vector<std::string> by_hand_lines(const Case& c, const ByHand& hand,
                                       const DocumentOptions& options);
Document by_hand_document(const Case& c, const ByHand& hand, const DocumentOptions& options);
void write_by_hand_json(const Case& c, const ByHand& hand, const JsonWriter::Sink& sink);

}  // namespace glasshead::wire
