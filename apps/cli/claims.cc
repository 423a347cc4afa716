#include "cli/claims.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "cli/values.h"

namespace glasshead::cli {
namespace {

bool is_file(const std::string& text) {
  return text.ends_with(".npy") || text.ends_with(".npz") ||
         text.find(".safetensors") != std::string::npos;
}

std::vector<std::string> split(const std::string& text, const char* separators) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find_first_of(separators, begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

constexpr double kMostDecimals = 17;  // as --decimals has them

// The digits after the point, fewer or more by the exponent: 2 of 1.25, 6 of 1.25e-4, 0 of 1.25e2.
int digits_after_point(const std::string& number) {
  const std::size_t exponent = std::min(number.find_first_of("eE"), number.size());
  const std::size_t point = std::min(number.find('.'), exponent);
  auto digits = static_cast<double>(exponent - std::min(point + 1, exponent));
  if (exponent < number.size()) digits -= parse_number(number.substr(exponent + 1)).value_or(0);
  return static_cast<int>(std::clamp(digits, 0.0, kMostDecimals));
}

constexpr std::size_t kMostAxes = 4;
constexpr index_t kUnknown = -1;
constexpr std::string_view kBetween = " ,\t\r\n";

// Numbers that were given as text, one after another.
struct Numbers {
  const std::string& flag;
  std::optional<int>& decimals;
  std::vector<Problem>& problems;
  std::vector<double> values;

  bool add(const std::string& word) {
    const std::optional<double> value = parse_number(word);
    if (!value) {
      problems.push_back({flag, "found '" + word +
                                    "'; a file (.npy, .safetensors) or numbers are needed, rows "
                                    "separated by ; or as lists in brackets"});
      return false;
    }
    values.push_back(*value);
    if (const int digits = digits_after_point(word); digits > 0)
      decimals = std::max(decimals.value_or(0), digits);
    return true;
  }

  std::optional<FileTensor> tensor(const std::vector<index_t>& shape) const {
    if (values.empty()) {
      problems.push_back({flag, "is empty; a file or numbers are needed"});
      return std::nullopt;
    }
    FileTensor tensor = make_tensor(DType::f64, shape);
    std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
    return tensor;
  }
};

// What stands in the brackets, where NumPy and torch write "array([...])" and "tensor([...])"
// around them; nullopt where there is something else.
std::optional<std::string> without_call(const std::string& text) {
  const std::size_t begin = text.find('['), end = text.rfind(']');
  if (end == std::string::npos) return text;
  std::string before;
  for (const char c : text.substr(0, begin))
    if (kBetween.find(c) == std::string_view::npos) before += c;
  if (before.empty()) return text;
  if (!before.ends_with("array(") && !before.ends_with("tensor(")) return text;
  const std::string list = text.substr(begin, end + 1 - begin);
  if (list.find('(') != std::string::npos) return std::nullopt;
  return list;
}

void load(const char* flag, const Text& given, std::size_t rank, std::optional<FileTensor>& to,
          std::optional<int>& decimals, std::vector<Problem>& problems) {
  if (!given) return;
  const bool is_nested = given->find('[') != std::string::npos;
  if (!is_file(*given) && is_nested && given->find(';') == std::string::npos) {
    to = parse_nested(flag, *given, decimals, problems);
    return;
  }
  if (!is_file(*given)) {
    to = parse_matrix(flag, *given, decimals, problems);
    if (to && rank == 3)  // one row of lse after another: a column
      to->shape = {to->shape[0] * to->shape[1]};
    return;
  }
  to = load_tensor(flag, *given, rank, problems);
  if (to && (to->dtype == DType::u8 || to->dtype == DType::i64)) {
    problems.push_back({flag, *given + ": holds " + std::string(to->stored) +
                                  "; floating-point numbers are needed"});
    to.reset();
  }
}

}  // namespace

void add_claim_flags(CLI::App& command, ClaimArgs& args) {
  const auto add = [&](const char* flag, Text& value, const char* description) {
    command
        .add_option_function<std::string>(
            flag, [&value](const std::string& given) { value = given; }, description)
        ->type_name("FILE|NUMBERS")
        ->group(
            "Their numbers (.npy, .safetensors, or text: \"1 0; .5 .5\", \"[[1, 0], [.5, .5]]\")");
  };
  add("--out", args.out, "Their output [batch, heads, q_len, d_v]");
  add("--weights", args.weights,
      "Their weights after softmax, before dropout [batch, heads, q_len, kv_len]");
  add("--scores", args.scores, "Their scores: scaled, capped, biased; hidden pairs are not judged");
  add("--lse", args.lse, "Their log of each row's sum of exp(score) [batch, heads, q_len]");
  add("--dq", args.dq, "Their gradient with respect to q, in its shape; needs --d-out");
  add("--dk", args.dk, "Their gradient with respect to k");
  add("--dv", args.dv, "Their gradient with respect to v");
  add("--d-out", args.d_out, "The gradient of the loss with respect to out that they came from");
}

Claims LoadedClaims::claims() const {
  Claims claims;
  if (out) claims.out = out->view<4>("--out");
  if (weights) claims.weights = weights->view<4>("--weights");
  if (scores) claims.scores = scores->view<4>("--scores");
  if (lse) claims.lse = lse->view<3>("--lse");
  if (dq) claims.dq = dq->view<4>("--dq");
  if (dk) claims.dk = dk->view<4>("--dk");
  if (dv) claims.dv = dv->view<4>("--dv");
  if (d_out) claims.d_out = d_out->view<4>("--d-out");
  return claims;
}

void load_claims(const ClaimArgs& args, LoadedClaims& to, std::vector<Problem>& problems) {
  load("--out", args.out, 4, to.out, to.decimals, problems);
  load("--weights", args.weights, 4, to.weights, to.decimals, problems);
  load("--scores", args.scores, 4, to.scores, to.decimals, problems);
  load("--lse", args.lse, 3, to.lse, to.decimals, problems);
  load("--dq", args.dq, 4, to.dq, to.decimals, problems);
  load("--dk", args.dk, 4, to.dk, to.decimals, problems);
  load("--dv", args.dv, 4, to.dv, to.decimals, problems);
  std::optional<int> as_given;  // d_out is an input: its digits say nothing of theirs
  load("--d-out", args.d_out, 4, to.d_out, as_given, problems);
  if (!args.out && !args.weights && !args.scores && !args.lse && !args.dq && !args.dk && !args.dv)
    problems.push_back({"--out",
                        "missing; give their numbers: --out, --weights, --scores, --lse, --dq, "
                        "--dk or --dv FILE, or the numbers themselves"});
}

std::optional<FileTensor> parse_matrix(const std::string& flag, const std::string& text,
                                       std::optional<int>& decimals,
                                       std::vector<Problem>& problems) {
  Numbers numbers{flag, decimals, problems, {}};
  index_t rows = 0, columns = 0;
  for (const std::string& row : split(text, ";\n")) {
    const std::vector<std::string> words = split(row, " ,\t\r[]");
    if (words.empty()) continue;
    const auto count = static_cast<index_t>(words.size());
    if (rows > 0 && count != columns) {
      problems.push_back({flag, "row " + std::to_string(rows) + " has " + std::to_string(count) +
                                    " numbers, the rows before it have " +
                                    std::to_string(columns)});
      return std::nullopt;
    }
    columns = count;
    ++rows;
    for (const std::string& word : words)
      if (!numbers.add(word)) return std::nullopt;
  }
  return numbers.tensor({rows, columns});
}

std::optional<FileTensor> parse_nested(const std::string& flag, const std::string& text,
                                       std::optional<int>& decimals,
                                       std::vector<Problem>& problems) {
  const auto refuse = [&](const std::string& what) {
    problems.push_back({flag, what + "; [[1, 0], [0.5, 0.5]] is two rows of two"});
    return std::nullopt;
  };
  const std::optional<std::string> list = without_call(text);
  if (!list) return refuse("found more than one list in brackets");
  Numbers numbers{flag, decimals, problems, {}};
  std::vector<index_t> shape, open;  // extents of the lists that were closed; of the open ones
  std::size_t depth = 0;             // at which the numbers stand; 0: not known
  for (std::size_t at = 0; at < list->size();) {
    const char c = (*list)[at];
    if (c == '[') {
      if (open.empty() && !shape.empty())  // a second list behind the first: rows of one
        return parse_nested(flag, "[" + *list + "]", decimals, problems);
      open.push_back(0);
      if (open.size() > kMostAxes) return refuse("more than 4 brackets deep");
      if (depth > 0 && open.size() > depth) return refuse("a list stands beside numbers");
      shape.resize(std::max(shape.size(), open.size()), kUnknown);
      ++at;
    } else if (c == ']') {
      if (open.empty()) return refuse("a bracket is closed that was not opened");
      index_t& extent = shape[open.size() - 1];
      if (extent != kUnknown && extent != open.back())
        return refuse("a list of " + std::to_string(open.back()) + " beside one of " +
                      std::to_string(extent));
      extent = open.back();
      open.pop_back();
      if (!open.empty()) ++open.back();
      ++at;
    } else if (kBetween.find(c) != std::string_view::npos) {
      ++at;
    } else {
      const std::size_t end = std::min(list->find_first_of("[] ,\t\r\n", at), list->size());
      if (depth == 0) depth = open.size();
      if (open.empty() || depth != open.size()) return refuse("numbers stand beside a list");
      if (!numbers.add(list->substr(at, end - at))) return std::nullopt;
      ++open.back();
      at = end;
    }
  }
  if (!open.empty()) return refuse("a bracket is not closed");
  if (depth > 0 && depth != shape.size()) return refuse("a list is empty");
  return numbers.tensor(shape);
}

}  // namespace glasshead::cli
