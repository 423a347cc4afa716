#include "wasm/sheet_case.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "wasm/written.h"
#include "wire/case_json.h"
#include "wire/case_reader.h"
#include "wire/decimal.h"

namespace glasshead::wasm {
namespace {

using wire::JsonKind;
using wire::JsonValue;
using wire::JsonWriter;

constexpr std::array<const char*, 4> kProjected{"X", "W_Q", "W_K", "W_V"};

template <class Visit>  // visit(name, rows, columns, is_identity)
void each_matrix(const Sheet& s, const Visit& visit) {
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
                      .integer(attention.find("heads"), "attention.heads", 1, kMostSheetHeads)
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

void write_matrix(JsonWriter& json, const Matrix& m) {
  json.begin_array();
  for (index_t i = 0; i < m.rows; ++i) {
    json.begin_array();
    for (index_t j = 0; j < m.columns; ++j) json.raw(m.at(i, j));
    json.end_array();
  }
  json.end_array();
}

}  // namespace

std::string json_number(const std::string& text, double value) {
  Problems ignored;
  const std::optional<wire::JsonTree> tree = wire::JsonTree::parse(text, ignored);
  return tree && tree->root().is(JsonKind::number) ? text : wire::shortest(value);
}

Matrix resized(const Matrix& from, index_t rows, index_t columns, bool is_identity) {
  Matrix to{rows, columns, {}};
  for (index_t i = 0; i < rows; ++i)
    for (index_t j = 0; j < columns; ++j)
      to.texts.push_back(i < from.rows && j < from.columns ? from.at(i, j)
                         : is_identity && i == j           ? "1"
                                                           : "0");
  return to;
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

void read_sheet(const std::string& text, Sheet& to, Problems& problems) {
  Reader(to, problems).read(text);
}

std::string case_text(const Sheet& s) {
  return written([&](JsonWriter& json) {
    json.begin_object().key("schema").value("glasshead.case/1").key("title").value(s.title);
    json.key("tokens").values(s.tokens);
    if (!s.is_projected) json.key("keys").values(s.keys);
    if (s.is_projected) write_matrix(json.key("X"), s.matrices.at("X"));
    json.key("attention").begin_object();
    if (s.heads > 1) json.key("heads").value(s.heads);
    each_matrix(s, [&](const char* name, index_t, index_t, bool) {
      if (std::string_view(name) != "X") write_matrix(json.key(name), s.matrices.at(name));
    });
    if (!s.mask.empty()) json.key("mask").value(s.mask);
    if (!s.scale.empty()) json.key("scale").raw(s.scale);
    if (!s.empty_row.empty()) json.key("empty_row").value(s.empty_row);
    json.end_object().end_object();
  });
}

}  // namespace glasshead::wasm
