#include "cli/claims.h"

#include <algorithm>
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

doctor::GivenClaims LoadedClaims::given() const {
  const auto at = [](const std::optional<FileTensor>& tensor) {
    return tensor ? &*tensor : nullptr;
  };
  return {at(out), at(weights), at(scores), at(lse), at(dq), at(dk), at(dv), at(d_out)};
}

}  // namespace glasshead::cli
