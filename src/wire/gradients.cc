#include "wire/gradients.h"

#include <fmt/format.h>

#include "wire/display.h"
#include "wire/document_tables.h"
#include "wire/jacobian.h"
#include "wire/sequence.h"

namespace glasshead::wire {
namespace {

// A traced tensor of rank 2 to 4 as [batch, heads, length, size].
View<double, 4> view_of(TraceTensor& tensor) {
  View<double, 4>::Shape shape{1, 1, 1, 1};
  const std::size_t rank = tensor.shape.size();
  for (std::size_t axis = 0; axis < rank; ++axis) shape[4 - rank + axis] = tensor.shape[axis];
  return {tensor.values.data(), shape};
}

TraceTensor zeros(const std::vector<index_t>& shape) {
  TraceTensor tensor;
  tensor.shape = shape;
  std::size_t size = 1;
  for (const index_t extent : shape) size *= static_cast<std::size_t>(extent);
  tensor.values.assign(size, 0.0);
  return tensor;
}

TraceTensor jacobian_norms(const TraceTensor& weights) {
  TraceTensor norms;
  norms.shape = weights.shape;
  norms.shape.back() = 1;
  const Matrices matrices = matrices_of(weights.shape);
  for (index_t m = 0; m < matrices.count; ++m)
    for (index_t i = 0; i < matrices.rows; ++i)
      norms.values.push_back(jacobian_norm(row_of(weights, m, i)));
  return norms;
}

const Step* find_step(const Trace& trace, const std::string& tap) {
  for (const TracedStep& traced : trace.steps)
    if (traced.step.tap == tap) return &traced.step;
  return nullptr;
}

}  // namespace

std::vector<AttentionGradients> gradients_of(const Trace& trace) {
  std::vector<AttentionGradients> all;
  for (const AttentionPart& part : attentions(trace)) {
    const Step* out_step = find_step(trace, part.prefix + "out");
    if (!out_step || !trace.find(part.prefix + "exp")) continue;  // without softmax: no Jacobian
    TraceTensor q = trace.at(part.scores->reads[0]), k = trace.at(part.scores->reads[1]);
    TraceTensor v = trace.at(out_step->reads[1]);
    TraceTensor d_out = trace.at(part.prefix + "out");
    d_out.values.assign(d_out.values.size(), 1.0);
    AttentionGradients gradients;
    gradients.prefix = part.prefix;
    gradients.dq = zeros(q.shape);
    gradients.dk = zeros(k.shape);
    gradients.dv = zeros(v.shape);
    attend_backward_transparent(
        View<const double, 4>(view_of(d_out)), View<const double, 4>(view_of(q)),
        View<const double, 4>(view_of(k)), View<const double, 4>(view_of(v)),
        {{gradients.dq.values.data(), DType::f64, view_of(gradients.dq).shape,
          view_of(gradients.dq).strides},
         {gradients.dk.values.data(), DType::f64, view_of(gradients.dk).shape,
          view_of(gradients.dk).strides},
         {gradients.dv.values.data(), DType::f64, view_of(gradients.dv).shape,
          view_of(gradients.dv).strides}},
        *part.options);
    gradients.jacobian_norms = jacobian_norms(trace.at(part.prefix + "weights"));
    all.push_back(std::move(gradients));
  }
  return all;
}

Document gradients_document(const Case& c, const Trace& trace,
                            const std::vector<AttentionGradients>& gradients,
                            const DocumentOptions& options) {
  Document document;
  document.name = escape_controls(c.name);
  document.question = escape_controls(c.title);
  document.title = document.name + " · gradients of the sum of out · f64";
  const Sequence sequence(c, trace);
  int number = 0;
  for (const AttentionGradients& one : gradients) {
    struct Part {
      const char *title, *formula, *latex;
      const TraceTensor* value;
      bool are_rows_queries;
    };
    for (const Part& part :
         {Part{"dv", "∂L/∂V = Aᵀ·∂L/∂O",
               "\\frac{\\partial L}{\\partial V}=A^{\\top}\\frac{\\partial L}{\\partial O}",
               &one.dv, false},
          Part{"dq", "∂L/∂Q = scale · ∂L/∂S · K",
               "\\frac{\\partial L}{\\partial Q}=\\text{scale}\\cdot\\frac{\\partial L}{\\partial "
               "S}K",
               &one.dq, true},
          Part{"dk", "∂L/∂K = scale · (∂L/∂S)ᵀ · Q",
               "\\frac{\\partial L}{\\partial K}=\\text{scale}\\cdot\\Bigl(\\frac{\\partial "
               "L}{\\partial S}\\Bigr)^{\\top}Q",
               &one.dk, false},
          Part{"jacobian", "‖diag(w) − w·wᵀ‖ of each row; 0: saturated, ½: the most there is",
               "\\lVert\\operatorname{diag}(w)-ww^{\\top}\\rVert", &one.jacobian_norms, true}}) {
      const std::string tap = one.prefix + "scores";
      if (part.are_rows_queries && options.query && !sequence.has_row(tap, *options.query))
        continue;
      Section section;
      section.number = ++number;
      section.title = one.prefix + part.title;
      section.formula = part.formula;
      section.latex = part.latex;
      section.shape = shape_words(part.value->shape);
      TableSource source;
      source.tap = one.prefix + part.title;
      source.value = part.value;
      source.row_labels = part.are_rows_queries ? sequence.queries(tap) : sequence.keys(tap);
      if (part.are_rows_queries) source.first_row = sequence.first_row(tap);
      source.are_rows_queries = part.are_rows_queries;
      section.tables = make_tables(source, c, options);
      document.sections.push_back(std::move(section));
    }
  }
  if (document.sections.empty())
    document.notes.emplace_back("no softmax here, so no gradients of one");
  return document;
}

void write_gradients_json(const Case& c, const std::vector<AttentionGradients>& gradients,
                          const JsonWriter::Sink& sink) {
  JsonWriter json(sink);
  json.begin_object().key("schema").value("glasshead.gradients/1").key("case").value(c.name);
  json.key("of").value("sum(out)").key("taps").begin_object();
  for (const AttentionGradients& one : gradients) {
    const std::pair<const char*, const TraceTensor*> parts[] = {
        {"dq", &one.dq}, {"dk", &one.dk}, {"dv", &one.dv}, {"jacobian_norm", &one.jacobian_norms}};
    for (const auto& [name, value] : parts) {
      json.key(one.prefix + name).begin_object();
      json.key("shape").values(std::span<const index_t>(value->shape));
      json.key("values").values(std::span<const double>(value->values)).end_object();
    }
  }
  json.end_object().end_object();
  json.flush();
}

}  // namespace glasshead::wire
