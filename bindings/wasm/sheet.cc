// The sheet's page: a case of one attention, made and changed by hand, as a case's text again.
//
//   {"call":"sheet"}                                          a blank one
//   {"call":"sheet","case":"{...}","edit":{"set":[...]},      numbers that were typed are kept
//    "sizes":{"rows":"4"},"tokens":"A, B, C, D",
//    "kind":"X" or "qkv",
//    "paste":{"matrix":"X","at":[0,0],"sources":[...]}}        a block from a cell on; without "at"
//                                                              all of the matrix
//
// The answer is {"case":"{...}","kind":...,"tokens":...,"keys":...,"sizes":{...}}.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "wasm/believed.h"
#include "wasm/calls.h"
#include "wasm/given_tensors.h"
#include "wasm/sheet_case.h"
#include "wasm/written.h"
#include "wire/case.h"
#include "wire/case_json.h"
#include "wire/case_reader.h"
#include "wire/decimal.h"

namespace glasshead::wasm {
namespace {

using wire::JsonValue;
using wire::JsonWriter;

void set_numbers(Sheet& s, const wire::Edit& edit, Problems& problems) {
  for (const wire::Edit::Set& set : edit.set) {
    const auto found = s.matrices.find(set.matrix);
    index_t at[2] = {0, 0};
    for (std::size_t n = 0; n < 2 && n < set.at.size(); ++n)
      for (const char c : set.at[n]) at[n] = 10 * at[n] + (c - '0');
    if (found == s.matrices.end() || set.at.size() != 2 || at[0] >= found->second.rows ||
        at[1] >= found->second.columns)
      problems.push_back({"set " + set.matrix, "there is no such number"});
    else
      found->second.texts[slot(at[0] * found->second.columns + at[1])] =
          json_number(set.texts[0], set.values[0]);
  }
}

// q, k and v as X gives them, so that nothing moves; back again X is q, and nothing projects.
void change_kind(Sheet& s, bool is_projected, const wire::Case& c) {
  if (s.is_projected == is_projected) return;
  if (is_projected) {
    s.matrices = {{"X", s.matrices["q"]}};
    s.d_model = s.width;
    s.keys.clear();
  } else {
    const Trace trace = wire::run_case(c);
    for (const char* name : kDirect) {
      const TraceTensor* value = trace.find(name);
      if (value == nullptr) continue;
      Matrix m{s.rows, static_cast<index_t>(value->values.size()) / s.rows, {}};
      if (value->shape.size() > 2) m = Matrix{};  // heads apart: a sheet's q, k, v have one
      for (std::size_t n = 0; m.rows > 0 && n < value->values.size(); ++n)
        m.texts.push_back(wire::shortest(value->values[n]));
      s.matrices[name] = std::move(m);
    }
    s.heads = 1;
    s.keys = s.tokens;
  }
  s.is_projected = is_projected;
}

void read_labels(Request& request, const char* key, std::vector<std::string>& labels,
                 index_t& count) {
  const std::optional<std::string> text = request.text(key);
  if (!text) return;
  std::vector<std::string> read(1);
  for (const char c : *text)
    if (c == ',' || c == '\n' || c == '\t')
      read.emplace_back();
    else
      read.back() += c;
  for (std::string& label : read) {
    label.erase(0, std::min(label.find_first_not_of(" \r"), label.size()));
    label.erase(label.find_last_not_of(" \r") + 1);
  }
  std::erase(read, std::string());
  const auto n = static_cast<index_t>(read.size());
  if (n < 1 || n > kMostSheetExtent)
    request.problems().push_back({key, std::to_string(n) + " names; 1 to " +
                                           std::to_string(kMostSheetExtent) + " are possible"});
  else
    labels = std::move(read), count = n;
}

void read_sizes(Request& request, Sheet& s) {
  const JsonValue json = request.object("sizes");
  if (!json) return;
  Request fields(json, request.problems(), "");
  const auto size = [&](const char* key, index_t& value, index_t most) {
    value = typed_integer(fields, key, 1, most).value_or(value);
  };
  size("rows", s.rows, kMostSheetExtent);
  size("key_rows", s.key_rows, kMostSheetExtent);
  size("d_model", s.d_model, kMostSheetExtent);
  size("width", s.width, kMostSheetExtent);
  size("d_v", s.d_v, kMostSheetExtent);
  size("heads", s.heads, kMostSheetHeads);
  fields.refuse_others();
}

// The sizes that a matrix decides.
void take_sizes(Sheet& s, const std::string& name, index_t rows, index_t columns) {
  if (name == "X") s.rows = rows, s.d_model = columns;
  if (name == "W_Q" || name == "W_K") s.d_model = rows, s.width = columns;
  if (name == "W_V") s.d_model = rows, s.d_v = columns;
  if (name == "q") s.rows = rows, s.width = columns;
  if (name == "k") s.key_rows = rows, s.width = columns;
  if (name == "v") s.key_rows = rows, s.d_v = columns;
}

// A block of numbers, two axes.
struct Block {
  index_t rows = 0, columns = 0;
  std::vector<std::string> texts;  // as JSON has numbers
  std::vector<std::string> row_names;
};

std::optional<Block> block_of(const SourceTensor& given, const std::string& name,
                              Problems& problems) {
  std::vector<index_t> shape = given.tensor.shape;
  while (shape.size() > 2 && shape.front() == 1) shape.erase(shape.begin());
  while (shape.size() < 2) shape.insert(shape.begin(), 1);
  if (shape.size() != 2) {
    problems.push_back({name, "rows and columns are needed; " + given.source_name + " is " +
                                  shape_words(given.tensor.shape)});
    return std::nullopt;
  }
  Block block{shape[0], shape[1], {}, given.row_names};
  if (block.rows > kMostSheetExtent || block.columns > kMostSheetExtent)
    return block;  // refused by its size
  for (index_t n = 0; n < given.tensor.size(); ++n) {
    const double value = given.tensor.load(n);
    block.texts.push_back(given.texts.empty() ? wire::shortest(value)
                                              : json_number(given.texts[slot(n)], value));
    if (wire::finite_number(block.texts.back())) continue;
    problems.push_back({name, "row " + std::to_string(n / block.columns + 1) + ", column " +
                                  std::to_string(n % block.columns + 1) + ": " +
                                  block.texts.back() + " is not finite"});
    return std::nullopt;
  }
  return block;
}

void paste(Request& request, Sheet& s) {
  const JsonValue json = request.object("paste");
  if (!json) return;
  Problems& problems = request.problems();
  Request fields(json, problems, "");
  const std::string name = fields.text("matrix", "");
  const std::vector<index_t> at = fields.integers("at");
  const Sources read = read_sources(fields);
  fields.refuse_others();
  for (const SourceTrouble& trouble : read.troubles)
    problems.push_back({name, trouble.problem.what});
  const auto found = s.matrices.find(name);
  if (found == s.matrices.end() || (!at.empty() && at.size() != 2))
    problems.push_back({"paste", "there is no such matrix"});
  else if (problems.empty() && read.tensors.size() != 1)
    problems.push_back({name, "one matrix is needed"});
  if (!problems.empty()) return;
  const std::optional<Block> block = block_of(read.tensors[0], name, problems);
  if (!block) return;
  const index_t top = at.empty() ? 0 : at[0], left = at.empty() ? 0 : at[1];
  Matrix& m = found->second;
  const index_t rows = at.empty() ? block->rows : std::max(m.rows, top + block->rows);
  const index_t columns = at.empty() ? block->columns : std::max(m.columns, left + block->columns);
  if (rows > kMostSheetExtent || columns > kMostSheetExtent) {
    problems.push_back({name, "would be " + shape_words({rows, columns}) +
                                  "; a sheet has at most " +
                                  shape_words({kMostSheetExtent, kMostSheetExtent})});
    return;
  }
  m = resized(m, rows, columns, false);
  for (index_t i = 0; i < block->rows; ++i)
    for (index_t j = 0; j < block->columns; ++j)
      m.texts[slot((top + i) * columns + left + j)] = block->texts[slot(i * block->columns + j)];
  if (at.empty() && !block->row_names.empty()) {
    if (name == "X" || name == "q") s.tokens = block->row_names;
    if (name == "k" || name == "v") s.keys = block->row_names;
  }
  take_sizes(s, name, rows, columns);
}

// ---- the answer ----

std::string joined(const std::vector<std::string>& labels) {
  std::string text;
  for (const std::string& label : labels) text += (text.empty() ? "" : ", ") + label;
  return text;
}

void write_sheet(JsonWriter& json, const Sheet& s, const std::string& text) {
  json.begin_object().key("case").value(text);
  json.key("kind").value(s.is_projected ? "X" : "qkv");
  json.key("tokens").value(joined(s.tokens)).key("keys").value(joined(s.keys));
  json.key("sizes").begin_object();
  const auto size = [&](const char* key, index_t n) { json.key(key).value(std::to_string(n)); };
  size("rows", s.rows);
  size("key_rows", s.key_rows);
  size("d_model", s.d_model);
  size("width", s.width);
  size("d_v", s.d_v);
  size("heads", s.heads);
  json.end_object().end_object();
}

}  // namespace

std::optional<std::string> sheet(Request& request, Session&) {
  Problems& problems = request.problems();
  Sheet s;
  const std::optional<std::string> given = request.text("case");
  const std::string name = request.text("name", "sheet");
  if (given) read_sheet(*given, s, problems);
  if (!problems.empty()) return std::nullopt;
  fit(s);
  set_numbers(s, read_edit(request.object("edit"), "edit", problems), problems);
  const std::string kind = request.text("kind", s.is_projected ? "X" : "qkv");
  if (kind != "X" && kind != "qkv") problems.push_back({"kind", "is neither X nor qkv"});
  if (!problems.empty()) return std::nullopt;
  if ((kind == "X") != s.is_projected) {
    const std::optional<wire::Case> c = wire::parse_case(case_text(s), name, problems);
    if (!c) return std::nullopt;
    wire::Case lenient = *c;
    for (nn::Block& block : lenient.network.blocks)
      block.attention.options.empty_row = EmptyRow::zero;
    change_kind(s, kind == "X", lenient);
  }
  read_sizes(request, s);
  read_labels(request, "tokens", s.tokens, s.rows);
  read_labels(request, "keys", s.keys, s.key_rows);
  if (problems.empty()) fit(s);
  paste(request, s);
  request.refuse_others();
  if (!problems.empty()) return std::nullopt;
  fit(s);
  const std::string text = case_text(s);
  if (!wire::parse_case(text, name, problems)) return std::nullopt;
  return written([&](JsonWriter& json) { write_sheet(json, s, text); });
}

}  // namespace glasshead::wasm
