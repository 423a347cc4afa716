// A sheet: a case of one attention whose sizes can be changed, as sheet.cc does.
//
//   Sheet s;
//   read_sheet(text, s, problems);  // a case's text
//   s.rows = 4;
//   fit(s);                         // what was there stays
//   case_text(s);
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "wasm/request.h"

namespace glasshead::wasm {

inline constexpr index_t kMostSheetExtent = 16, kMostSheetHeads = 4;

inline std::size_t slot(index_t n) { return static_cast<std::size_t>(n); }

// Numbers as they are typed, row by row.
struct Matrix {
  index_t rows = 0, columns = 0;
  std::vector<std::string> texts;
  const std::string& at(index_t i, index_t j) const { return texts[slot(i * columns + j)]; }
};

struct Sheet {
  std::string title = "sheet";
  bool is_projected = true;  // X with W_Q, W_K, W_V; otherwise q, k, v
  std::vector<std::string> tokens, keys;
  index_t heads = 1;
  std::map<std::string, Matrix> matrices;
  std::string mask, scale, empty_row;  // as in the case; empty: its default
  // Of X: rows, d_model; of q and k together: width, d_v.
  index_t rows = 3, key_rows = 3, d_model = 2, width = 2, d_v = 2;
};

inline constexpr std::array<const char*, 3> kDirect{"q", "k", "v"};

// As typed where JSON has such numbers, which ".5" is none of.
std::string json_number(const std::string& text, double value);
// What was there stays; new numbers are 0, or those of the identity.
Matrix resized(const Matrix& from, index_t rows, index_t columns, bool is_identity);
// Gives labels and matrices the sheet's sizes.
void fit(Sheet& s);

// From a case's text. What a sheet can't change is a problem.
void read_sheet(const std::string& text, Sheet& to, Problems& problems);
std::string case_text(const Sheet& s);

}  // namespace glasshead::wasm
