#include "wire/code.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include <fmt/format.h>

#include "wire/decimal.h"
#include "wire/display.h"
#include "wire/document_build.h"
#include "wire/document_tables.h"

namespace glasshead::wire {
namespace {

// What all three languages are made from.
struct Source {
  std::string title;                         // "three-tokens: ..."
  const TraceTensor *q, *k, *v;              // [heads, length, size], heads may be missing
  std::vector<std::vector<char>> hidden;     // [heads * q_len][kv_len]; empty: nothing is hidden
  index_t heads = 1, q_len = 0, kv_len = 0;  // of the queries
  std::string scale;
};

std::string numbers(std::span<const double> row, const char* open, const char* close) {
  std::string text = open;
  for (std::size_t n = 0; n < row.size(); ++n) text += (n == 0 ? "" : ", ") + shortest(row[n]);
  return text + close;
}

// [[[1, 0], [0, 1]]], a matrix a line.
std::string nested(const TraceTensor& value) {
  const Matrices matrices = matrices_of(value.shape);
  std::string text = "[";
  for (index_t m = 0; m < matrices.count; ++m) {
    text += m == 0 ? "[" : ",\n     [";
    for (index_t i = 0; i < matrices.rows; ++i)
      text += (i == 0 ? "" : ", ") + numbers(row_of(value, m, i), "[", "]");
    text += "]";
  }
  return text + "]";
}

std::string nested_allowed(const Source& source, const char* no, const char* yes) {
  std::string text = "[";
  for (index_t h = 0; h < source.heads; ++h) {
    text += h == 0 ? "[" : ",\n     [";
    for (index_t i = 0; i < source.q_len; ++i) {
      text += i == 0 ? "[" : ", [";
      const std::vector<char>& row = source.hidden[static_cast<std::size_t>(h * source.q_len + i)];
      for (std::size_t j = 0; j < row.size(); ++j)
        text += std::string(j == 0 ? "" : ", ") + (row[j] != 0 ? no : yes);
      text += "]";
    }
    text += "]";
  }
  return text + "]";
}

index_t group(const Source& source) { return source.heads / matrices_of(source.k->shape).count; }

std::string numpy(const Source& source) {
  std::string code = "# " + source.title + "\nimport numpy as np\n\n";
  code += "q = np.array(" + nested(*source.q) + ", dtype=float)  # [heads, q_len, d_k]\n";
  code += "k = np.array(" + nested(*source.k) + ", dtype=float)\n";
  code += "v = np.array(" + nested(*source.v) + ", dtype=float)\n";
  if (group(source) > 1)
    code +=
        fmt::format("k, v = np.repeat(k, {0}, axis=0), np.repeat(v, {0}, axis=0)\n", group(source));
  code += "\nscores = q @ k.swapaxes(-1, -2) * " + source.scale + "\n";
  if (!source.hidden.empty())
    code += "allowed = np.array(" + nested_allowed(source, "0", "1") + ", dtype=bool)\n" +
            "scores = np.where(allowed, scores, -np.inf)\n";
  return code +
         "e = np.exp(scores - scores.max(axis=-1, keepdims=True))\n"
         "weights = e / e.sum(axis=-1, keepdims=True)\n"
         "out = weights @ v\n"
         "for row in out.reshape(-1, out.shape[-1]):\n"
         "    print(*row)\n";
}

std::string pytorch(const Source& source) {
  std::string code = "# " + source.title + "\nimport torch\nimport torch.nn.functional as F\n\n";
  code +=
      "q = torch.tensor(" + nested(*source.q) + ", dtype=torch.float64)  # [heads, q_len, d_k]\n";
  code += "k = torch.tensor(" + nested(*source.k) + ", dtype=torch.float64)\n";
  code += "v = torch.tensor(" + nested(*source.v) + ", dtype=torch.float64)\n";
  if (group(source) > 1)
    code += fmt::format("k, v = k.repeat_interleave({0}, 0), v.repeat_interleave({0}, 0)\n",
                        group(source));
  if (!source.hidden.empty())
    code += "allowed = torch.tensor(" + nested_allowed(source, "False", "True") + ")\n";
  code += std::string("\nout = F.scaled_dot_product_attention(q, k, v") +
          (source.hidden.empty() ? "" : ", attn_mask=allowed") + ", scale=" + source.scale + ")\n";
  return code +
         "for row in out.reshape(-1, out.shape[-1]):\n"
         "    print(*row.tolist())\n";
}

std::string cpp_tensor(const char* name, const TraceTensor& value) {
  const Matrices matrices = matrices_of(value.shape);
  const std::string code =
      fmt::format("  const double {}_numbers[] = ", name) + numbers(value.values, "{", "};\n");
  return code + fmt::format(
                    "  const ConstTensor<4> {0}{{{0}_numbers, DType::f64, {{1, {1}, {2}, "
                    "{3}}}, row_major<4>({{1, {1}, {2}, {3}}})}};\n",
                    name, matrices.count, matrices.rows, matrices.columns);
}

std::string cpp(const Source& source) {
  std::string code = "// " + source.title +
                     "\n#include <cstdio>\n#include <cstdint>\n\n#include "
                     "\"glasshead/attention.h\"\n\nint main() {\n  using namespace glasshead;\n";
  code += cpp_tensor("q", *source.q) + cpp_tensor("k", *source.k) + cpp_tensor("v", *source.v);
  code += "  AttentionOptions options;\n  options.scale = " + source.scale + ";\n";
  if (!source.hidden.empty()) {
    code += "  const std::uint8_t allowed[] = {";
    for (std::size_t n = 0; n < source.hidden.size(); ++n)
      for (std::size_t j = 0; j < source.hidden[n].size(); ++j)
        code += std::string(n + j == 0 ? "" : ", ") + (source.hidden[n][j] != 0 ? "0" : "1");
    code += fmt::format(
        "}};\n  options.mask = Mask::allowed(ConstTensor<4>{{allowed, DType::u8, "
        "{{1, {0}, {1}, {2}}}, row_major<4>({{1, {0}, {1}, {2}}})}});\n",
        source.heads, source.q_len, source.kv_len);
  }
  const index_t d_v = matrices_of(source.v->shape).columns;
  code +=
      fmt::format("  Tensor<double, 4> out({{1, {}, {}, {}}});\n", source.heads, source.q_len, d_v);
  code += "  attend(q, k, v, out, options);\n";
  return code + fmt::format(
                    "  for (index_t n = 0; n < {}; ++n)\n    std::printf(\"%.17g%c\", "
                    "out.data()[n], n % {} == {} ? '\\n' : ' ');\n}}\n",
                    source.heads * source.q_len * d_v, d_v, d_v - 1);
}

// Why the attention can't be written down with scale and mask alone; empty when it can.
std::string beyond(const Case& c, const AttentionPart& part) {
  const AttentionOptions& options = *part.options;
  if (!c.has_softmax) return "there is no softmax";
  if (options.softcap > 0) return "its scores are capped";
  if (!options.bias.terms().empty()) return "it has a bias";
  if (!options.sinks.empty()) return "it has sinks";
  if (options.dropout.p > 0) return "it has dropout";
  if (part.shape.batch > 1) return "it has several texts";
  return {};
}

std::optional<Source> source_of(const Case& c, const Trace& trace, std::vector<Problem>& problems) {
  const std::vector<AttentionPart> parts = attentions(trace);
  if (parts.empty() || !parts[0].plan || parts[0].scores->reads.size() != 2) {
    problems.push_back({"code", "the case has no attention of q, k and v"});
    return std::nullopt;
  }
  const AttentionPart& part = parts[0];
  Source source;
  source.q = trace.find(part.scores->reads[0]);
  source.k = trace.find(part.scores->reads[1]);
  source.v = nullptr;
  for (const TracedStep& step : trace.steps)
    if (leaf_of(step.step.tap) == "out" && prefix_of(step.step.tap) == part.prefix &&
        step.step.reads.size() > 1)
      source.v = trace.find(step.step.reads[1]);
  const std::string why_not = beyond(c, part);
  if (!why_not.empty() || !source.q || !source.k || !source.v) {
    problems.push_back({"code", "the program is written for scale and mask alone; " + why_not});
    return std::nullopt;
  }
  source.title =
      escape_controls(c.name) + ": the attention that Glasshead traces, from its q, k and v";
  source.heads = part.shape.heads;
  source.q_len = part.shape.q_len;
  source.kv_len = part.shape.kv_len;
  source.scale = shortest(part.scale);
  bool hides = false;
  for (index_t h = 0; h < source.heads; ++h)
    for (index_t i = 0; i < source.q_len; ++i) {
      source.hidden.push_back(hidden_row(*part.plan, 0, h, i));
      const std::vector<char>& row = source.hidden.back();
      const auto count = static_cast<std::size_t>(std::count(row.begin(), row.end(), 1));
      hides = hides || count > 0;
      if (count < row.size()) continue;
      problems.push_back({"code", fmt::format("row {} has no allowed key", i)});
      return std::nullopt;
    }
  if (!hides) source.hidden.clear();
  return source;
}

}  // namespace

std::optional<std::string> attention_code(const Case& c, const Trace& trace,
                                          std::string_view language,
                                          std::vector<Problem>& problems) {
  const std::optional<Source> source = source_of(c, trace, problems);
  if (!source) return std::nullopt;
  if (language == "numpy") return numpy(*source);
  if (language == "pytorch") return pytorch(*source);
  if (language == "cpp") return cpp(*source);
  problems.push_back({"language", "\"" + escape_controls(std::string(language)) +
                                      "\" is none of numpy pytorch cpp"});
  return std::nullopt;
}

}  // namespace glasshead::wire
