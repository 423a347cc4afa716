// The doctor's page: what was dropped, which is which, the verdict, and a probe.
#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "doctor/judge.h"
#include "doctor/subject.h"
#include "wasm/base64.h"
#include "wasm/calls.h"
#include "wasm/doctor_request.h"
#include "wasm/roles.h"
#include "wasm/written.h"
#include "wire/case_reader.h"
#include "wire/decimal.h"

namespace glasshead::wasm {
namespace {

using wire::JsonWriter;

void write_sources(JsonWriter& json, const Sources& sources,
                   const std::vector<std::string>& role_of, const std::vector<std::string>& hints) {
  json.begin_object().key("tensors").begin_array();
  for (std::size_t n = 0; n < sources.tensors.size(); ++n) {
    const SourceTensor& given = sources.tensors[n];
    json.begin_object()
        .key("source")
        .value(given.source)
        .key("source_name")
        .value(given.source_name);
    json.key("name").value(given.name).key("shape").value(shape_words(given.tensor.shape));
    json.key("type").value(given.tensor.stored.empty() ? std::string_view(name(given.tensor.dtype))
                                                       : given.tensor.stored);
    json.key("role").value(role_of[n]).key("hint").value(hints[n]);
    json.key("text").value(given.text);
    json.key("decimals").value(given.decimals ? std::to_string(*given.decimals) : std::string());
    json.end_object();
  }
  json.end_array().key("cases").begin_array();
  for (const SourceCase& c : sources.cases) {
    json.begin_object().key("source").value(c.source).key("source_name").value(c.source_name);
    json.key("title").value(c.title).end_object();
  }
  json.end_array().key("troubles").begin_array();
  for (const SourceTrouble& trouble : sources.troubles) {
    json.begin_object().key("source").value(trouble.source);
    json.key("source_name").value(trouble.source_name).key("code").value(trouble.code);
    const bool is_place = trouble.problem.where != trouble.source_name;
    json.key("what").value((is_place ? trouble.problem.where + ": " : std::string()) +
                           trouble.problem.what);
    json.end_object();
  }
  json.end_array().end_object();
}

constexpr int kShownDecimals = 4;

// A number of theirs and the right one, as the texts that a table shows.
void write_cell(JsonWriter& json, double found, double right, double tolerance) {
  const bool is_wrong = doctor::distance(found, right, tolerance) > doctor::kWrong;
  json.begin_object().key("found").value(wire::significant(found, kShownDecimals + 3));
  json.key("exact").value(wire::shortest(found));
  json.key("right").value(wire::fixed(right, kShownDecimals));
  json.key("wrong").value(is_wrong).end_object();
}

// The small claims as tables; columns are named where each of a row's numbers was judged.
void write_tables(JsonWriter& json, const Diagnosis& d, const DoctorRequest& request) {
  json.begin_array();
  for (std::size_t first = 0; first < d.small_rows.size();) {
    const std::string& claim = d.small_rows[first].claim;
    json.begin_object().key("claim").value(claim).key("columns").begin_array();
    const std::size_t count = d.small_rows[first].found.size();
    const bool is_pairs = claim == "weights" || claim == "scores";
    for (std::size_t j = 0; j < count; ++j)
      json.value(is_pairs && count == request.key_labels.size() ? request.key_labels[j]
                                                                : std::to_string(j));
    json.end_array().key("rows").begin_array();
    for (; first < d.small_rows.size() && d.small_rows[first].claim == claim; ++first) {
      const RowReport& row = d.small_rows[first];
      json.begin_object().key("label").value(row.row).key("right").value(row.is_right);
      json.key("cells").begin_array();
      for (std::size_t n = 0; n < row.found.size(); ++n)
        write_cell(json, row.found[n], row.right[n], row.tolerance[n]);
      json.end_array().end_object();
    }
    json.end_array().end_object();
  }
  json.end_array();
}

// The lines of the terminal's text, each a label and what it says.
void write_lines(JsonWriter& json, std::string_view text) {
  constexpr std::size_t kLabel = 10;
  json.begin_array();
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    std::string_view label = line.substr(0, std::min(kLabel, line.size()));
    while (label.ends_with(' ')) label.remove_suffix(1);
    json.begin_object().key("label").value(label);
    json.key("text").value(line.size() > kLabel ? line.substr(kLabel) : std::string_view());
    json.end_object();
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  json.end_array();
}

// A page makes its probes itself: no command for that in its lines.
Diagnosis with_page_words(Diagnosis d) {
  if (d.probe.empty()) return d;
  const std::string words = "a probe (the panel of that name makes one)";
  for (std::string& fact : d.next)
    if (const std::size_t at = fact.find(d.probe); at != std::string::npos)
      fact.replace(at, d.probe.size(), words);
  d.probe = words;
  return d;
}

void write_shape(JsonWriter& json, const AttentionCase& a) {
  const auto field = [&](const char* key, index_t n) { json.key(key).value(std::to_string(n)); };
  json.begin_object();
  field("batch", a.q.shape[0]);
  field("heads", a.q.shape[1]);
  field("kv_heads", a.k.shape[1]);
  field("q_len", a.q.shape[2]);
  field("kv_len", a.k.shape[2]);
  field("d_k", a.q.shape[3]);
  field("d_v", a.v.shape[3]);
  json.end_object();
}

std::string start_of_command(const DoctorRequest& request, const std::string& name) {
  return request.subject ? command_line("glasshead doctor", {name}) : "glasshead doctor";
}

}  // namespace

std::optional<std::string> sources(Request& request, Session&) {
  const std::optional<wire::Case> c = read_case(request);
  const Sources read = read_sources(request);
  request.refuse_others();
  if (!request.problems().empty()) return std::nullopt;
  std::optional<doctor::CaseSubject> subject;
  Problems ignored;  // what is wrong with the case is said when it is asked about
  if (c) subject = doctor::case_subject(*c, ignored);
  std::optional<AttentionCase> known;
  if (subject) known = subject->attention();
  const std::vector<std::string> role_of = guess_roles(read.tensors, known);
  const std::vector<std::string> hints = shape_hints(read.tensors, role_of, known);
  return written([&](JsonWriter& json) { write_sources(json, read, role_of, hints); });
}

std::optional<std::string> diagnose(Request& request, Session&) {
  const std::string format = request.text("format", "json"), name = request.text("name", "case");
  if (format != "json" && format != "text" && format != "page")
    request.problems().push_back({"format", "is none of json text page"});
  DoctorRequest given;
  read_doctor_request(request, given);
  if (!request.problems().empty()) return std::nullopt;
  Diagnosis d = glasshead::diagnose(given.attention, given.claims, given.options);
  d.read = std::move(given.read);
  if (format == "json") return diagnosis_json(d) + "\n";
  if (format == "text") return diagnosis_text(d);
  return written([&](JsonWriter& json) {
    json.begin_object().key("diagnosis").raw(diagnosis_json(d)).key("lines");
    write_lines(json, diagnosis_text(with_page_words(d)));
    json.key("tables");
    write_tables(json, d, given);
    json.key("shape");
    write_shape(json, given.attention);
    // Heads that lie side by side are put apart by the page alone.
    json.key("command").value(given.believed.heads
                                  ? std::string()
                                  : command_line(start_of_command(given, name), given.flags));
    json.end_object();
  });
}

namespace {

template <class T>
FileTensor file_of(const Tensor<T, 4>& tensor) {
  FileTensor file = make_tensor(dtype_of<T>(), {tensor.shape().begin(), tensor.shape().end()});
  std::memcpy(file.bytes.data(), tensor.data(), file.bytes.size());
  return file;
}

// A page's own limits, so that it answers in seconds; the command has none.
constexpr index_t kMostHeads = 64, kMostLength = 512, kMostSize = 256;
constexpr index_t kMostNumbers = index_t{1} << 21;  // of q, k and v together

ProbeShape read_shape(Request& request) {
  ProbeShape shape;
  const auto size = [&](const char* key, index_t otherwise, index_t most) {
    return typed_integer(request, key, 1, most).value_or(otherwise);
  };
  shape.batch = size("batch", 1, kMostHeads);
  shape.heads = size("heads", 1, kMostHeads);
  shape.kv_heads = size("kv_heads", shape.heads, kMostHeads);
  shape.q_len = size("q_len", shape.q_len, kMostLength);
  shape.kv_len = size("kv_len", shape.kv_len, kMostLength);
  shape.d_k = size("d_k", shape.d_k, kMostSize);
  shape.d_v = size("d_v", shape.d_k, kMostSize);
  const index_t numbers = shape.batch * (shape.heads * shape.q_len * shape.d_k +
                                         shape.kv_heads * shape.kv_len * (shape.d_k + shape.d_v));
  if (numbers > kMostNumbers)
    request.problems().push_back(
        {"shape", std::to_string(numbers) + " numbers; at most " + std::to_string(kMostNumbers) +
                      " here. The command makes larger ones: glasshead doctor --probe DIR"});
  return shape;
}

// The options of a case as flags: its mask is in the probe's own file.
void add_flags(const AttentionOptions& options, bool has_mask, std::vector<std::string>& words) {
  const auto flag = [&](const char* name, std::string value) {
    words.emplace_back(name);
    words.push_back(std::move(value));
  };
  if (has_mask) flag("--mask", "probe.safetensors:allowed");
  if (options.scale) flag("--scale", wire::shortest(*options.scale));
  if (options.softcap != 0) flag("--softcap", wire::shortest(options.softcap));
}

void check_probe(const ProbeShape& shape, const Believed& believed, Problems& problems) {
  const Tensor<float, 4> q({shape.batch, shape.heads, shape.q_len, shape.d_k}),
      k({shape.batch, shape.kv_heads, shape.kv_len, shape.d_k}),
      v({shape.batch, shape.kv_heads, shape.kv_len, shape.d_v});
  problems = check(q, k, v, believed.options);
  doctor::check_rotary({q, k, v, believed.options, believed.rotary, {}}, problems);
}

}  // namespace

std::optional<std::string> probe(Request& request, Session&) {
  Problems& problems = request.problems();
  ProbeShape shape;
  if (const wire::JsonValue json = request.object("shape")) {
    Request fields(json, problems, "");
    shape = read_shape(fields);
    fields.refuse_others();
  }
  const std::optional<wire::Case> c = read_case(request);
  Believed believed = read_believed(request);
  const index_t seed = typed_integer(request, "seed", 0, wire::kMostExtent).value_or(1);
  request.refuse_others();
  std::optional<doctor::CaseSubject> subject;
  if (c && problems.empty()) subject = doctor::case_subject(*c, problems);
  if (!problems.empty()) return std::nullopt;
  if (subject) believed.options = subject->options;
  set_alibi(believed, shape.heads, problems);
  if (problems.empty()) check_probe(shape, believed, problems);
  if (!problems.empty()) return std::nullopt;
  const Probe made =
      make_probe(shape, believed.options, static_cast<std::uint64_t>(seed), believed.rotary);
  NamedTensors tensors;
  tensors.emplace_back("q", file_of(made.q));
  tensors.emplace_back("k", file_of(made.k));
  tensors.emplace_back("v", file_of(made.v));
  if (made.mask.size() > 0) tensors.emplace_back("allowed", file_of(made.mask));
  std::vector<std::string> words{"--qkv", "probe.safetensors", "--out", "theirs.npy"};
  words.insert(words.end(), believed.flags.begin(), believed.flags.end());
  if (subject) add_flags(believed.options, made.mask.size() > 0, words);
  return written([&](JsonWriter& json) {
    json.begin_object().key("file").value(to_base64(safetensors_bytes(tensors)));
    json.key("has_mask").value(made.mask.size() > 0).key("alike").begin_array();
    for (const std::vector<std::string>& group : made.alike) json.values(group);
    json.end_array().key("least_distance").value(wire::significant(made.least_distance, 2));
    json.key("command").value(command_line("glasshead doctor", words)).end_object();
  });
}

}  // namespace glasshead::wasm
