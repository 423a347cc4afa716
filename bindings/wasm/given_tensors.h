// What somebody drops on a page: files of tensors, pasted numbers, cases.
//
//   "sources":[{"name":"q.npy","base64":"k05VTVBZ…"},{"name":"pasted","text":"1 0 0; .5 .5 0"}]
//
// A source that can't be read is said with a code and spoils no other.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "glasshead/tensor_file.h"
#include "wasm/request.h"

namespace glasshead::wasm {

struct SourceTensor {
  std::size_t source = 0;
  std::string source_name;
  std::string name;  // in a file of several; empty otherwise
  FileTensor tensor;
  std::optional<int> decimals;     // of pasted numbers
  bool is_lists = false;           // pasted or sent numbers whose brackets say the shape
  std::string text;                // of pasted numbers, in one line: "1 0 0; .5 .5 0"
  std::vector<std::string> texts;  // of pasted numbers, one by one
  std::vector<std::string> row_names, column_names;  // likewise
};

struct SourceTrouble {
  std::size_t source = 0;
  std::string source_name;
  std::string code;  // "file-broken", "case-broken", "numbers-unclear"
  Problem problem;
};

struct SourceCase {
  std::size_t source = 0;
  std::string source_name, title;
};

struct Sources {
  std::vector<SourceTensor> tensors;  // in order; a page names them by their number
  std::vector<SourceCase> cases;
  std::vector<SourceTrouble> troubles;
};

// Asks the request for "sources".
Sources read_sources(Request& request);

// Numbers as text, or lists of lists of numbers, as exact as a file's; `where` names them in
// problems. nullopt with a problem.
std::optional<SourceTensor> read_numbers(wire::JsonValue json, const std::string& where,
                                         Problems& problems);

// "3×2".
std::string shape_words(const std::vector<index_t>& shape);

}  // namespace glasshead::wasm
