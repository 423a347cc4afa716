#include "python/native/trace_case.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <variant>

#include "wire/given.h"
#include "wire/lesson.h"

namespace glasshead::python {
namespace {

// A trace keeps every matrix of scores and weights whole.
constexpr index_t kMostScores = index_t{1} << 24;

EmptyRow empty_row_of(const std::string& text, std::vector<Problem>& problems) {
  if (text == "zero") return EmptyRow::zero;
  if (text != "error")
    problems.push_back({"empty_row", "\"" + text + "\" is neither \"zero\" nor \"error\""});
  return EmptyRow::error;
}

wire::Edit edit_of(const CaseEdit& given, std::vector<Problem>& problems) {
  wire::Edit edit;
  for (const std::string& text : given.set)
    if (std::optional<wire::Edit::Set> set = wire::parse_set(text, problems))
      edit.set.push_back(std::move(*set));
  edit.hide = given.hide;
  edit.mask = given.mask;
  edit.scale = given.scale;
  if (given.empty_row) edit.empty_row = empty_row_of(*given.empty_row, problems);
  return edit;
}

// All elements in row-major order, and where the copy begins.
template <class T>
Broadcast copy_of(const Broadcast& from, DType type) {
  const auto values = std::make_shared<std::vector<T>>();
  std::array<index_t, 4> shape{1, 1, 1, 1}, strides{0, 0, 0, 0}, at{};
  const auto added = static_cast<std::size_t>(4 - from.rank);
  for (std::size_t axis = added; axis < 4; ++axis) {
    shape[axis] = from.shape[axis - added];
    strides[axis] = from.strides[axis - added];
  }
  for (at[0] = 0; at[0] < shape[0]; ++at[0])
    for (at[1] = 0; at[1] < shape[1]; ++at[1])
      for (at[2] = 0; at[2] < shape[2]; ++at[2])
        for (at[3] = 0; at[3] < shape[3]; ++at[3]) {
          const index_t offset =
              at[0] * strides[0] + at[1] * strides[1] + at[2] * strides[2] + at[3] * strides[3];
          values->push_back(static_cast<T>(load_element(from.data, from.dtype, offset)));
        }
  Broadcast copy;
  copy.data = values->data();
  copy.dtype = type;
  copy.rank = 4;
  copy.shape = shape;
  copy.strides = row_major(shape);
  copy.owner = values;
  return copy;
}

// The options with arrays of their own.
AttentionOptions owned(AttentionOptions options) {
  for (Mask::Part& part : options.mask.parts())
    if (auto* shown = std::get_if<Mask::Explicit>(&part))
      shown->allowed = copy_of<std::uint8_t>(shown->allowed, DType::u8);
  for (Bias::Term& term : options.bias.terms())
    if (auto* dense = std::get_if<Bias::Dense>(&term))
      dense->values = copy_of<double>(dense->values, DType::f64);
  return options;
}

// [heads, rows, columns], or [rows, columns] of a single head.
TraceTensor tensor_of(const ConstTensor<4>& from, bool has_heads) {
  TraceTensor tensor;
  tensor.shape = {from.shape[2], from.shape[3]};
  if (has_heads) tensor.shape.insert(tensor.shape.begin(), from.shape[1]);
  for (index_t h = 0; h < from.shape[1]; ++h)
    for (index_t i = 0; i < from.shape[2]; ++i)
      for (index_t d = 0; d < from.shape[3]; ++d) tensor.values.push_back(from.load(0, h, i, d));
  return tensor;
}

std::vector<std::string> labels_of(const std::vector<std::string>& given, index_t rows,
                                   const char* where, std::vector<Problem>& problems) {
  if (!given.empty()) {
    if (static_cast<index_t>(given.size()) != rows)
      problems.push_back({where, std::to_string(given.size()) + " labels where there are " +
                                     std::to_string(rows) + " rows"});
    return given;
  }
  std::vector<std::string> labels;
  for (index_t n = 0; n < rows; ++n) labels.push_back(std::to_string(n));
  return labels;
}

void check_size(const ConstTensor<4>& q, const ConstTensor<4>& k, const ConstTensor<4>& v,
                std::vector<Problem>& problems) {
  if (q.shape[0] != 1)
    problems.push_back({"q", "axis batch has " + std::to_string(q.shape[0]) +
                                 "; a trace shows one sequence: q[b], k[b], v[b]"});
  for (const index_t extent : {q.shape[1], q.shape[2], k.shape[2], v.shape[3]})
    if (extent == 0) {
      problems.push_back({"q", "no heads, queries, keys or components: there is nothing to show"});
      return;
    }
  if (q.shape[1] > kMostScores / k.shape[2] / q.shape[2])
    problems.push_back({"q", std::to_string(q.shape[1]) + " heads x " + std::to_string(q.shape[2]) +
                                 " queries x " + std::to_string(k.shape[2]) +
                                 " keys are more than " + std::to_string(kMostScores) +
                                 " scores, the most that a trace keeps"});
}

}  // namespace

ShownCase read_case(const std::string& text, const std::string& name, const CaseEdit& given) {
  std::vector<Problem> problems;
  const std::optional<wire::Case> original = wire::parse_case(text, name, problems);
  if (!original) throw FormatError(name + ".json", std::move(problems));
  const wire::Edit edit = edit_of(given, problems);
  std::optional<wire::Case> c = original;
  if (problems.empty() && !edit.is_empty()) c = wire::edit_case(*original, edit, problems);
  if (problems.empty() && c) problems = wire::empty_row_problems(*c);
  refuse_if_any("trace", std::move(problems));
  std::vector<Problem> unsaid;  // what the page can't show is the page's to refuse
  std::string start = wire::page_address(*original, *c, edit, {}, unsaid);
  if (!unsaid.empty()) start.clear();
  return {std::move(*c), text, std::move(start)};
}

wire::Case case_of(const CaseArrays& arrays, const AttentionOptions& options,
                   const std::string& name, const std::string& title,
                   std::vector<Problem> problems) {
  if (!arrays.q.is_there() || !arrays.k.is_there() || !arrays.v.is_there())
    refuse_if_any("trace", std::move(problems));
  const ConstTensor<4> q = arrays.q.tensor<4>(), k = arrays.k.tensor<4>(), v = arrays.v.tensor<4>();
  AttentionOptions lenient = options;
  lenient.empty_row = EmptyRow::zero;  // rows with no key are named by their labels below
  for (Problem& found : check(q, k, v, lenient)) problems.push_back(std::move(found));
  check_size(q, k, v, problems);
  wire::Case c;
  c.name = name;
  c.title = title;
  c.query_labels = labels_of(arrays.query_labels, q.shape[2], "query_labels", problems);
  c.key_labels = labels_of(arrays.key_labels, k.shape[2], "key_labels", problems);
  refuse_if_any("trace", std::move(problems));

  const bool has_heads = q.shape[1] > 1;
  c.inputs = {{"q", tensor_of(q, has_heads)},
              {"k", tensor_of(k, has_heads)},
              {"v", tensor_of(v, has_heads)}};
  c.paths = {{"q", "q"}, {"k", "k"}, {"v", "v"}};
  c.network.blocks.resize(1);
  nn::Attention& attention = c.network.blocks[0].attention;
  attention.heads = q.shape[1];
  attention.kv_heads = k.shape[1];
  attention.given_q = "q";
  attention.given_k = "k";
  attention.given_v = "v";
  attention.options = owned(options);
  refuse_if_any("trace", wire::empty_row_problems(c));
  return c;
}

}  // namespace glasshead::python
