// Numbers as people paste them: a block of a spreadsheet, CSV, JSON or Python lists, what NumPy and
// PyTorch print, "1 0 0; .5 .5 0".
//
//   std::optional<Pasted> p = read_pasted("[[1, 0], [.5, .5]]", "weights", problems);
//   p->tensor.shape;   // 2x2
//   p->decimals;       // 1: the most digits after a point
//
// Lists behind one another are rows. Text without brackets, or with ; in them, has a row per line,
// or per ; where everything stands on one line or rows hold several words. Cells end at tabs, at ;
// or at commas and blanks. A first line and a first column of words are names. What has two
// readings, as 0,5 has, is refused with both, and so is what prints leave out. Text is hostile:
// sizes and depth are limited, nothing recurses.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "glasshead/error.h"
#include "glasshead/trace.h"

namespace glasshead::wire {

inline constexpr std::size_t kMostPastedNumbers = 100'000;
inline constexpr std::size_t kMostPastedAxes = 4;

struct Pasted {
  TraceTensor tensor;  // [rows, columns], or as deep as the lists are; [1, n] of one line
  std::vector<std::string> texts;  // one per number, as typed but for the minus sign
  bool is_lists = false;           // whose brackets say the shape
  std::optional<int> decimals;  // the most digits after a point, at most 17; nullopt: none has any
  std::vector<std::string> row_names, column_names;  // as many as there are; or none
};

// nullopt, and one problem at `where`, if the text is no such numbers.
std::optional<Pasted> read_pasted(std::string_view text, const std::string& where,
                                  std::vector<Problem>& problems);

}  // namespace glasshead::wire
