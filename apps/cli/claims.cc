#include "cli/claims.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "cli/values.h"
#include "wire/pasted.h"

namespace glasshead::cli {
namespace {

bool is_file(const std::string& text) {
  return text.ends_with(".npy") || text.ends_with(".npz") ||
         text.find(".safetensors") != std::string::npos;
}

// Numbers that were typed or pasted, as f64. `decimals` becomes the most that any of them has.
std::optional<FileTensor> read_numbers(const char* flag, const std::string& text, std::size_t rank,
                                       std::optional<int>& decimals,
                                       std::vector<Problem>& problems) {
  const std::optional<wire::Pasted> pasted = wire::read_pasted(text, flag, problems);
  if (!pasted) {
    problems.back().what +=
        "; a file (.npy, .safetensors) or numbers are needed, rows separated by ; or as lists in "
        "brackets";
    return std::nullopt;
  }
  FileTensor tensor = make_tensor(DType::f64, pasted->tensor.shape);
  std::memcpy(tensor.bytes.data(), pasted->tensor.values.data(), tensor.bytes.size());
  if (rank == 3 && !pasted->is_lists)  // one row of lse after another: a column
    tensor.shape = {tensor.shape[0] * tensor.shape[1]};
  if (pasted->decimals) decimals = std::max(decimals.value_or(0), *pasted->decimals);
  return tensor;
}

void load(const char* flag, const Text& given, std::size_t rank, std::optional<FileTensor>& to,
          std::optional<int>& decimals, std::vector<Problem>& problems) {
  if (!given) return;
  if (!is_file(*given)) {
    to = read_numbers(flag, *given, rank, decimals, problems);
    return;
  }
  to = load_tensor(flag, *given, rank, problems);
  if (to && (to->dtype == DType::u8 || to->dtype == DType::i64)) {
    problems.push_back({flag, *given + ": holds " + std::string(to->stored) +
                                  "; floating-point numbers are needed"});
    to.reset();
  }
}

using Shape = std::vector<index_t>;

// `shape` with leading axes of size 1 added up to `rank`, or left out down to it.
Shape with_rank(Shape shape, std::size_t rank) {
  while (shape.size() < rank) shape.insert(shape.begin(), 1);
  while (shape.size() > rank && shape.front() == 1) shape.erase(shape.begin());
  return shape;
}

class Fitting {
 public:
  Fitting(FittedClaims& to, std::vector<Problem>& problems) : to_(to), problems_(problems) {}

  // `wanted` [batch, heads, length, size]; `has_merged`: heads may stand side by side.
  ConstTensor<4> rank4(const char* flag, const std::optional<FileTensor>& given,
                       const std::array<index_t, 4>& wanted, bool has_merged) {
    if (!given) return {};
    const auto [batch, heads, length, size] = wanted;
    const Shape right(wanted.begin(), wanted.end());
    if (with_rank(given->shape, 4) == right) return given->view<4>(flag);
    const bool is_by_length = with_rank(given->shape, 4) == Shape{batch, length, heads, size};
    const Shape three = with_rank(given->shape, 3);
    const bool is_merged = has_merged && heads > 0 && three.size() == 3 && three[0] == batch &&
                           three[1] == length && three[2] % heads == 0 && three[2] / heads == size;
    if (!is_by_length && !is_merged) {
      misfit(flag, *given, right);
      return {};
    }
    say(flag, *given, is_merged ? "[batch, length, heads*size]" : "[batch, length, heads, size]");
    const index_t row = given->size() == 0 ? 0 : heads * size;  // sizes of no numbers may be any
    return {given->bytes.data(), given->dtype, wanted, {length * row, size, row, 1}};
  }

  ConstTensor<3> rank3(const char* flag, const std::optional<FileTensor>& given,
                       const std::array<index_t, 3>& wanted) {
    if (!given) return {};
    const auto [batch, heads, length] = wanted;
    const Shape right(wanted.begin(), wanted.end());
    if (with_rank(given->shape, 3) == right) return given->view<3>(flag);
    if (with_rank(given->shape, 3) != Shape{batch, length, heads}) {
      misfit(flag, *given, right);
      return {};
    }
    say(flag, *given, "[batch, length, heads]");
    return {given->bytes.data(), given->dtype, wanted, {length * heads, 1, heads}};
  }

 private:
  void misfit(const char* flag, const FileTensor& given, const Shape& right) {
    problems_.push_back({flag, "has shape " + shape_text(given.shape) + "; these inputs give " +
                                   shape_text(with_rank(right, given.shape.size()))});
  }

  void say(const char* flag, const FileTensor& given, const std::string& axes) {
    std::string name = flag + 2;
    std::replace(name.begin(), name.end(), '-', '_');
    to_.read.push_back(name + " as " + axes + ", since that is how its shape " +
                       shape_text(given.shape) + " fits");
  }

  FittedClaims& to_;
  std::vector<Problem>& problems_;
};

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

FittedClaims fit_claims(const LoadedClaims& loaded, const AttentionCase& attention,
                        std::vector<Problem>& problems) {
  const auto [batch, heads, q_len, d_k] = attention.q.shape;
  const std::array<index_t, 4> out{batch, heads, q_len, attention.v.shape[3]};
  const std::array<index_t, 4> pairs{batch, heads, q_len, attention.k.shape[2]};
  FittedClaims fitted;
  Fitting fit(fitted, problems);
  Claims& claims = fitted.claims;
  claims.out = fit.rank4("--out", loaded.out, out, true);
  claims.weights = fit.rank4("--weights", loaded.weights, pairs, false);
  claims.scores = fit.rank4("--scores", loaded.scores, pairs, false);
  claims.lse = fit.rank3("--lse", loaded.lse, {batch, heads, q_len});
  claims.dq = fit.rank4("--dq", loaded.dq, attention.q.shape, true);
  claims.dk = fit.rank4("--dk", loaded.dk, attention.k.shape, true);
  claims.dv = fit.rank4("--dv", loaded.dv, attention.v.shape, true);
  claims.d_out = fit.rank4("--d-out", loaded.d_out, out, true);
  return fitted;
}

}  // namespace glasshead::cli
