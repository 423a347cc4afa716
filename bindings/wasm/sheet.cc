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
#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wasm/believed.h"
#include "wasm/calls.h"
#include "wasm/given_tensors.h"
#include "wasm/written.h"
#include "wire/case.h"
#include "wire/case_json.h"
#include "wire/case_reader.h"
#include "wire/decimal.h"

namespace glasshead::wasm {
namespace {

using wire::JsonKind;
using wire::JsonValue;
using wire::JsonWriter;

constexpr index_t kMostExtent = 16, kMostHeads = 4;

std::size_t slot(index_t n) { return static_cast<std::size_t>(n); }

// Numbers as they are typed, row by row.
struct Matrix {
  index_t rows = 0, columns = 0;
  std::vector<std::string> texts;
  const std::string& at(index_t i, index_t j) const { return texts[slot(i * columns + j)]; }
};

// As typed where JSON has such numbers, which ".5" is none of.
std::string json_number(const std::string& text, double value) {
  Problems ignored;
  const std::optional<wire::JsonTree> tree = wire::JsonTree::parse(text, ignored);
  return tree && tree->root().is(JsonKind::number) ? text : wire::shortest(value);
}

// What was there stays; new numbers are 0, or those of the identity.
Matrix resized(const Matrix& from, index_t rows, index_t columns, bool is_identity) {
  Matrix to{rows, columns, {}};
  for (index_t i = 0; i < rows; ++i)
    for (index_t j = 0; j < columns; ++j)
      to.texts.push_back(i < from.rows && j < from.columns ? from.at(i, j)
                         : is_identity && i == j           ? "1"
                                                           : "0");
  return to;
}

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

constexpr std::array<const char*, 4> kProjected{"X", "W_Q", "W_K", "W_V"};
constexpr std::array<const char*, 3> kDirect{"q", "k", "v"};

template <class Visit>  // visit(name, rows, columns, is_identity)
void each_matrix(Sheet& s, const Visit& visit) {
  if (s.is_projected) {
    visit("X", s.rows, s.d_model, false);
    visit("W_Q", s.d_model, s.width, true);
    visit("W_K", s.d_model, s.width, true);
    visit("W_V", s.d_model, s.d_v, true);
  } else {
    visit("q", s.rows, s.width, false);
    visit("k", s.key_rows, s.width, false);
    visit("v", s.key_rows, s.d_v, false);
  }
}

// Letters, then numbers; none twice.
void fit_labels(std::vector<std::string>& labels, index_t count) {
  labels.resize(std::min(labels.size(), slot(count)));
  for (char letter = 'A'; labels.size() < slot(count); ++letter) {
    const std::string label(1, letter);
    if (std::find(labels.begin(), labels.end(), label) == labels.end()) labels.push_back(label);
  }
}

void fit(Sheet& s) {
  if (s.is_projected)
    s.key_rows = s.rows;
  else
    s.d_model = s.width;
  fit_labels(s.tokens, s.rows);
  if (!s.is_projected) fit_labels(s.keys, s.key_rows);
  std::map<std::string, Matrix> fitted;
  each_matrix(s, [&](const char* name, index_t rows, index_t columns, bool is_identity) {
    fitted[name] = resized(s.matrices[name], rows, columns, is_identity);
  });
  s.matrices = std::move(fitted);
}

// ---- from a case's text ----

class Reader {
 public:
  Reader(Sheet& to, Problems& problems) : to_(to), problems_(problems) {}

  void read(const std::string& text) {
    const std::optional<wire::JsonTree> tree = wire::JsonTree::parse(text, problems_);
    if (!tree) return;
    const JsonValue root = tree->root();
    only(root, "", {"schema", "title", "from", "tokens", "keys", "X", "attention"});
    const JsonValue attention = root.find("attention");
    only(attention, "attention.",
         {"W_Q", "W_K", "W_V", "q", "k", "v", "mask", "scale", "heads", "empty_row"});
    if (!problems_.empty()) return;
    to_.title = string(root.find("title"), "title", to_.title);
    to_.tokens = strings(root.find("tokens"));
    to_.keys = strings(root.find("keys"));
    to_.mask = string(attention.find("mask"), "attention.mask", "");
    to_.empty_row = string(attention.find("empty_row"), "attention.empty_row", "");
    if (attention.find("scale")) to_.scale = std::string(attention.find("scale").text());
    if (attention.find("heads"))
      to_.heads = wire::CaseReader(problems_)
                      .integer(attention.find("heads"), "attention.heads", 1, kMostHeads)
                      .value_or(1);
    to_.is_projected = bool(root.find("X"));
    if (to_.is_projected) matrix(root, "X");
    for (const char* name : kProjected)
      if (attention.find(name)) matrix(attention, name);
    for (const char* name : kDirect)
      if (attention.find(name)) matrix(attention, name);
    if (problems_.empty()) sizes();
  }

 private:
  void only(JsonValue object, const std::string& path,
            std::initializer_list<std::string_view> known) {
    if (!object) return;
    for (JsonValue field = object.first(); field; field = field.next())
      if (std::find(known.begin(), known.end(), field.key()) == known.end())
        problems_.push_back({path + std::string(field.key()),
                             "a sheet has no such field, so its sizes can't be changed here; its "
                             "numbers can"});
  }

  std::string string(JsonValue value, const char* path, const std::string& otherwise) {
    if (!value) return otherwise;
    if (value.is(JsonKind::string)) return std::string(value.text());
    problems_.push_back({path, "more than a sheet can change; its numbers can be"});
    return otherwise;
  }

  std::vector<std::string> strings(JsonValue list) {
    std::vector<std::string> texts;
    if (!list) return texts;
    for (JsonValue entry = list.first(); entry; entry = entry.next())
      texts.emplace_back(entry.text());
    return texts;
  }

  void matrix(JsonValue object, const char* name) {
    Matrix m;
    for (JsonValue row = object.find(name).first(); row; row = row.next()) {
      ++m.rows;
      for (JsonValue entry = row.first(); entry; entry = entry.next()) {
        if (!entry.is(JsonKind::number)) {
          problems_.push_back({name, "a sheet's matrices have two axes"});
          return;
        }
        m.texts.emplace_back(entry.text());
      }
    }
    m.columns = m.rows > 0 ? static_cast<index_t>(m.texts.size()) / m.rows : 0;
    to_.matrices[name] = std::move(m);
  }

  void sizes() {
    const auto known = [&](const char* name) -> const Matrix* {
      const auto found = to_.matrices.find(name);
      return found == to_.matrices.end() ? nullptr : &found->second;
    };
    if (const Matrix* x = known(to_.is_projected ? "X" : "q")) {
      to_.rows = to_.key_rows = x->rows;
      to_.d_model = to_.width = to_.d_v = x->columns;
    }
    if (const Matrix* w = known(to_.is_projected ? "W_Q" : "q")) to_.width = w->columns;
    if (const Matrix* v = known(to_.is_projected ? "W_V" : "v")) to_.d_v = v->columns;
    if (const Matrix* k = known("k")) to_.key_rows = k->rows;
  }

  Sheet& to_;
  Problems& problems_;
};

// ---- changes ----

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
  if (n < 1 || n > kMostExtent)
    request.problems().push_back(
        {key, std::to_string(n) + " names; 1 to " + std::to_string(kMostExtent) + " are possible"});
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
  size("rows", s.rows, kMostExtent);
  size("key_rows", s.key_rows, kMostExtent);
  size("d_model", s.d_model, kMostExtent);
  size("width", s.width, kMostExtent);
  size("d_v", s.d_v, kMostExtent);
  size("heads", s.heads, kMostHeads);
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
  if (block.rows > kMostExtent || block.columns > kMostExtent) return block;  // refused by its size
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
  if (rows > kMostExtent || columns > kMostExtent) {
    problems.push_back({name, "would be " + shape_words({rows, columns}) +
                                  "; a sheet has at most " +
                                  shape_words({kMostExtent, kMostExtent})});
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

void write_matrix(JsonWriter& json, const Matrix& m) {
  json.begin_array();
  for (index_t i = 0; i < m.rows; ++i) {
    json.begin_array();
    for (index_t j = 0; j < m.columns; ++j) json.raw(m.at(i, j));
    json.end_array();
  }
  json.end_array();
}

std::string case_text(Sheet& s) {
  return written([&](JsonWriter& json) {
    json.begin_object().key("schema").value("glasshead.case/1").key("title").value(s.title);
    json.key("tokens").values(s.tokens);
    if (!s.is_projected) json.key("keys").values(s.keys);
    if (s.is_projected) write_matrix(json.key("X"), s.matrices["X"]);
    json.key("attention").begin_object();
    if (s.heads > 1) json.key("heads").value(s.heads);
    each_matrix(s, [&](const char* name, index_t, index_t, bool) {
      if (std::string_view(name) != "X") write_matrix(json.key(name), s.matrices[name]);
    });
    if (!s.mask.empty()) json.key("mask").value(s.mask);
    if (!s.scale.empty()) json.key("scale").raw(s.scale);
    if (!s.empty_row.empty()) json.key("empty_row").value(s.empty_row);
    json.end_object().end_object();
  });
}

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
  if (given) Reader(s, problems).read(*given);
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
