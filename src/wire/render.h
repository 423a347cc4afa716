// The printed forms of a document. Every one lays out the same strings.
//
//   std::string page = to_html(build_document(c, trace, options));
#pragma once

#include <string>
#include <string_view>

#include "wire/document.h"

namespace glasshead::wire {

struct TextOptions {
  int width = 100;  // cells; wider matrices wrap by blocks of keys
  bool is_ascii = false;
};
std::string to_text(const Document& document, const TextOptions& options = {});

struct MarkdownOptions {
  bool has_math = false;  // formulas and matrices as $$ blocks instead of tables
};
std::string to_markdown(const Document& document, const MarkdownOptions& options = {});

struct LatexOptions {
  bool is_standalone = false;  // with a preamble, ready for pdflatex
};
std::string to_latex(const Document& document, const LatexOptions& options = {});

// One page, no scripts, nothing fetched; light and dark.
std::string to_html(const Document& document);

// Every matrix as vectors, cells with the same test ids as the page; above kSvgCells rows or
// columns a matrix is one embedded PNG.
inline constexpr index_t kSvgCells = 64;
std::string to_svg(const Document& document);

// The exact numbers (shortest digits that read back the same); hidden pairs are empty fields. Where
// one matrix is shown: its rows, with the names of rows and columns. Where several are: every
// matrix there is, a line for each number, under the header "matrix,head,row,column,value", head
// empty for a plain matrix, row and column by name, or by number where they have none. RFC 4180; a
// label that a spreadsheet would take for a formula gets an apostrophe in front. Empty where
// nothing is a matrix.
std::string to_csv(const Document& document);

// Text for each form: nothing in it can end or open markup.
std::string markdown_escape(std::string_view text);
std::string latex_escape(std::string_view text);
std::string xml_escape(std::string_view text);  // HTML and SVG
std::string csv_field(std::string_view text);

// "cell-weights-2-0", "cell-weights-h1-2-0": the one place that makes test ids.
std::string cell_id(const Table& table, std::size_t row, index_t column);
std::string row_sum_id(const Table& table, std::size_t row);

}  // namespace glasshead::wire
