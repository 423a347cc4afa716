// How a trace is printed, and the command's other views of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "glasshead/trace.h"
#include "wire/case.h"
#include "wire/document.h"
#include "wire/document_build.h"

namespace glasshead::python {

// The command's options of these names.
struct Printing {
  int decimals = 4, width = 100;
  bool is_percent = false, is_full = false, is_nearest = false;
  bool is_ascii = false, has_math = false, is_standalone = false;
  std::vector<std::string> steps;
  std::optional<std::string> query;
  std::optional<index_t> head;
};

// Throws OptionError with everything that does not go with the case.
wire::DocumentOptions options_of(const wire::Case& c, const std::string& format,
                                 const Printing& printing);
// Every format but json.
std::string rendered(const wire::Document& document, const std::string& format,
                     const Printing& printing);

// A case with its run.
struct Shown {
  wire::Case shown;
  Trace trace;
};

// What a change of the case moved: `before` is the run without it.
std::string diff_page(const Shown& before, const Shown& after, const std::string& format,
                      const Printing& printing);
// Every number rounded before the next step uses it, beside the exact ones.
std::string by_hand_page(const Shown& run, int decimals, bool is_shifted, const std::string& format,
                         const Printing& printing);
// The case with a mistake of docs/mistakes.md made in it, "id" or "id:parameter".
std::string mistake_page(const Shown& run, const std::string& mistake, const std::string& format,
                         const Printing& printing);
std::string gradients_page(const Shown& run, const std::string& format, const Printing& printing);

}  // namespace glasshead::python
