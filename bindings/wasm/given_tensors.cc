#include "wasm/given_tensors.h"

#include <cstring>
#include <utility>

#include "wasm/base64.h"
#include "wire/case.h"
#include "wire/case_reader.h"
#include "wire/pasted.h"

namespace glasshead::wasm {
namespace {

SourceTensor numbers_of(std::string name, const TraceTensor& numbers) {
  SourceTensor given;
  given.source_name = std::move(name);
  given.tensor = make_tensor(DType::f64, numbers.shape);
  if (!numbers.values.empty())
    std::memcpy(given.tensor.bytes.data(), numbers.values.data(), given.tensor.bytes.size());
  return given;
}

std::string one_line(const wire::Pasted& pasted) {
  const auto columns = static_cast<std::size_t>(pasted.tensor.shape.back());
  std::string line;
  for (std::size_t n = 0; n < pasted.texts.size(); ++n)
    line += (n == 0 ? "" : n % columns == 0 ? "; " : " ") + pasted.texts[n];
  return line;
}

std::optional<SourceTensor> pasted_numbers(std::string_view text, const std::string& name,
                                           Problems& problems) {
  const std::optional<wire::Pasted> pasted = wire::read_pasted(text, name, problems);
  if (!pasted) return std::nullopt;
  SourceTensor given = numbers_of(name, pasted->tensor);
  given.decimals = pasted->decimals;
  given.is_lists = pasted->is_lists;
  given.text = one_line(*pasted);
  given.texts = pasted->texts;
  given.row_names = pasted->row_names;
  given.column_names = pasted->column_names;
  return given;
}

class Reader {
 public:
  Reader(Sources& to, std::size_t source, std::string name)
      : to_(to), source_(source), name_(std::move(name)) {}

  void bytes(const std::string& base64) {
    const std::optional<std::vector<std::byte>> bytes = from_base64(base64);
    if (!bytes)
      trouble("file-broken", {name_, "did not arrive whole"});
    else if (ends_with(".npy"))
      npy(*bytes);
    else if (ends_with(".safetensors"))
      safetensors(*bytes);
    else if (ends_with(".npz"))
      trouble("file-broken", {name_, "an archive of arrays; save them one by one, each as a .npy"});
    else
      trouble("file-broken",
              {name_, "is neither .npy nor .safetensors nor text (.json, .csv, .txt)"});
  }

  void text(const std::string& text) {
    if (is_object(text)) {
      read_case(text);
      return;
    }
    Problems problems;
    std::optional<SourceTensor> given = pasted_numbers(text, name_, problems);
    if (!given) {
      troubles("numbers-unclear", problems);
      return;
    }
    given->source = source_;
    to_.tensors.push_back(std::move(*given));
  }

 private:
  bool ends_with(std::string_view ending) const {
    std::string lower = name_;
    for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    return lower.ends_with(ending);
  }

  static bool is_object(const std::string& text) {
    const std::size_t first = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
    return first != std::string::npos && (text[first] == '{' || text.compare(first, 2, "//") == 0 ||
                                          text.compare(first, 2, "/*") == 0);
  }

  void npy(const std::vector<std::byte>& bytes) {
    std::vector<Problem> problems;
    SourceTensor given;
    given.source = source_;
    given.source_name = name_;
    if (parse_npy(bytes, given.tensor, problems))
      to_.tensors.push_back(std::move(given));
    else
      troubles("file-broken", problems);
  }

  void safetensors(const std::vector<std::byte>& bytes) {
    std::vector<Problem> problems;
    NamedTensors tensors;
    if (!parse_safetensors(bytes, tensors, problems)) troubles("file-broken", problems);
    for (auto& [name, tensor] : tensors) {
      SourceTensor given;
      given.source = source_;
      given.source_name = name_;
      given.name = name;
      given.tensor = std::move(tensor);
      to_.tensors.push_back(std::move(given));
    }
  }

  void read_case(const std::string& text) {
    std::vector<Problem> problems;
    const std::optional<wire::Case> c = wire::parse_case(text, name_, problems);
    if (c && problems.empty())
      to_.cases.push_back({source_, name_, c->title});
    else
      troubles("case-broken", problems);
  }

  void trouble(const char* code, Problem problem) {
    to_.troubles.push_back({source_, name_, code, std::move(problem)});
  }
  void troubles(const char* code, const std::vector<Problem>& problems) {
    for (const Problem& problem : problems) trouble(code, problem);
  }

  Sources& to_;
  std::size_t source_;
  std::string name_;
};

}  // namespace

Sources read_sources(Request& request) {
  Sources sources;
  std::size_t number = 0;
  const wire::JsonValue list = request.list("sources");
  for (wire::JsonValue entry = list ? list.first() : list; entry; entry = entry.next()) {
    const std::string path = request.at("sources") + "[" + std::to_string(number) + "]";
    if (!entry.is(wire::JsonKind::object)) {
      request.problems().push_back({path, "not an object"});
      return sources;
    }
    Request fields(entry, request.problems(), path);
    Reader reader(sources, number++, fields.text("name", "pasted"));
    const std::optional<std::string> base64 = fields.text("base64"), text = fields.text("text");
    fields.refuse_others();
    if (base64.has_value() == text.has_value())
      request.problems().push_back({path, "either base64 or text is needed"});
    else if (base64)
      reader.bytes(*base64);
    else
      reader.text(*text);
  }
  return sources;
}

std::optional<SourceTensor> read_numbers(wire::JsonValue json, const std::string& where,
                                         Problems& problems) {
  if (json.is(wire::JsonKind::string)) return pasted_numbers(json.text(), where, problems);
  if (!json.is(wire::JsonKind::array)) {
    problems.push_back({where, "is neither lists of numbers nor text"});
    return std::nullopt;
  }
  const std::size_t before = problems.size();
  wire::CaseReader reader(problems);
  const std::optional<wire::GivenTensor> lists = reader.tensor(json, where, 1, 4);
  reader.finish();
  if (!lists || problems.size() > before) return std::nullopt;
  SourceTensor given = numbers_of(where, lists->tensor);
  given.is_lists = true;
  return given;
}

std::string shape_words(const std::vector<index_t>& shape) {
  std::string text;
  for (const index_t extent : shape) text += (text.empty() ? "" : "×") + std::to_string(extent);
  return text.empty() ? "one number" : text;
}

}  // namespace glasshead::wasm
