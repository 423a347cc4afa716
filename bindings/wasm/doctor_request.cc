#include "wasm/doctor_request.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "doctor/fit_claims.h"
#include "doctor/subject.h"
#include "wasm/roles.h"
#include "wire/broadcast.h"

namespace glasshead::wasm {
namespace {

constexpr index_t kMostDecimals = 17;

// The tensor of a role, or none.
const SourceTensor* in_role(const DoctorRequest& request, std::string_view role) {
  for (std::size_t n = 0; n < request.role_of.size(); ++n)
    if (request.role_of[n] == role) return &request.sources.tensors[n];
  return nullptr;
}

void read_roles(Request& request, DoctorRequest& to) {
  to.role_of.resize(to.sources.tensors.size());
  const wire::JsonValue json = request.object("roles");
  if (!json) return;
  Request fields(json, request.problems(), "roles");
  const auto count = static_cast<index_t>(to.role_of.size());
  for (const std::string_view role : roles()) {
    constexpr index_t kNone = -1;
    const std::string key(role);
    const index_t n = fields.integer(key.c_str(), kNone, kNone, count - 1);
    if (n == kNone) continue;
    std::string& known = to.role_of[static_cast<std::size_t>(n)];
    if (!known.empty())
      request.problems().push_back({"roles." + key, "the same numbers as " + known});
    known = key;
  }
  fields.refuse_others();
}

// Their numbers by name, as if they were sources in these roles.
void read_claims(Request& request, DoctorRequest& to) {
  const wire::JsonValue json = request.object("claims");
  for (wire::JsonValue field = json ? json.first() : json; field; field = field.next()) {
    const std::string role(field.key()), where = request.at("claims") + "." + role;
    if (!is_claim(role) && role != "d_out") {
      request.problems().push_back(
          {where, "is none of out, weights, scores, lse, dq, dk, dv, d_out"});
      continue;
    }
    if (in_role(to, role) != nullptr) {
      request.problems().push_back({where, "given twice"});
      continue;
    }
    std::optional<SourceTensor> given = read_numbers(field, where, request.problems());
    if (!given) continue;
    to.sources.tensors.push_back(std::move(*given));
    to.role_of.push_back(role);
  }
}

// [batch, length, heads·size] as [batch, heads, length, size], where the last axis holds `heads`
// heads of `size` numbers side by side.
ConstTensor<4> split_heads(const ConstTensor<4>& t, index_t size) {
  const index_t heads = t.shape[3] / size;
  return {t.data,
          t.dtype,
          {t.shape[1], heads, t.shape[2], size},
          {t.strides[1], size * t.strides[3], t.strides[2], t.strides[3]}};
}

class Assembler {
 public:
  Assembler(Request& request, DoctorRequest& to) : problems_(request.problems()), to_(to) {}

  void inputs() {
    const SourceTensor* found[3] = {};
    constexpr const char* kNames[] = {"q", "k", "v"};
    for (std::size_t n = 0; n < 3; ++n) {
      found[n] = numbers(kNames[n], 4);
      if (found[n] == nullptr && in_role(to_, kNames[n]) == nullptr)
        problem(kNames[n], "is missing: choose which file holds it, or a case");
    }
    if (!problems_.empty()) return;
    AttentionCase& a = to_.attention;
    a.q = found[0]->tensor.view<4>();
    a.k = found[1]->tensor.view<4>();
    a.v = found[2]->tensor.view<4>();
    if (to_.believed.heads) divide(found);
    explicit_mask();
    explicit_bias();
    if (!problems_.empty()) return;
    set_alibi(to_.believed, a.q.shape[1], problems_);
    a.options = to_.believed.options;
    a.rotary = to_.believed.rotary;
  }

  void claims() {
    const doctor::GivenClaims given{claim("out", 4), claim("weights", 4), claim("scores", 4),
                                    lse(),           claim("dq", 4),      claim("dk", 4),
                                    claim("dv", 4),  claim("d_out", 4)};
    if (!problems_.empty()) return;
    doctor::FittedClaims fitted = doctor::fit_claims(given, to_.attention, problems_);
    to_.claims = fitted.claims;
    to_.read = std::move(fitted.read);
  }

  void need_claims() {
    const bool has_claims = std::any_of(to_.role_of.begin(), to_.role_of.end(),
                                        [](const std::string& role) { return is_claim(role); });
    if (!has_claims) problem("out", "is missing: their numbers, out, weights, scores or lse");
  }

 private:
  void problem(const std::string& where, std::string what) {
    problems_.push_back({where, std::move(what)});
  }

  // Floating-point numbers of a role, of at most so many axes.
  const SourceTensor* numbers(const char* role, std::size_t most_axes) {
    const SourceTensor* given = in_role(to_, role);
    if (given == nullptr) return nullptr;
    const FileTensor& tensor = given->tensor;
    if (tensor.dtype == DType::u8 || tensor.dtype == DType::i64)
      problem(role, given->source_name + " holds " + std::string(tensor.stored) +
                        "; floating-point numbers are needed");
    else if (tensor.shape.size() > most_axes)
      problem(role, given->source_name + " has shape " + shape_words(tensor.shape) + "; " +
                        std::to_string(most_axes) + " axes or fewer are needed");
    else
      return given;
    return nullptr;
  }

  // q, k and v with all heads side by side.
  void divide(const SourceTensor* const (&given)[3]) {
    const index_t heads = *to_.believed.heads;
    AttentionCase& a = to_.attention;
    if (given[0]->tensor.shape.size() > 3) {
      if (a.q.shape[1] != heads)
        problem("heads", "q has " + std::to_string(a.q.shape[1]) + " heads of its own");
      return;
    }
    if (a.q.shape[3] % heads != 0) {
      problem("heads", "q is " + std::to_string(a.q.shape[3]) + " wide, no multiple of " +
                           std::to_string(heads));
      return;
    }
    const index_t size = a.q.shape[3] / heads;
    if (size == 0 || a.k.shape[3] % size != 0 || a.k.shape[3] == 0 ||
        a.v.shape[3] % (a.k.shape[3] / size) != 0) {
      problem("heads", "q has heads of " + std::to_string(size) + " numbers, and k and v, " +
                           std::to_string(a.k.shape[3]) + " and " + std::to_string(a.v.shape[3]) +
                           " wide, hold no such heads");
      return;
    }
    const index_t value_size = a.v.shape[3] / (a.k.shape[3] / size);
    a.q = split_heads(a.q, size);
    a.k = split_heads(a.k, size);
    a.v = split_heads(a.v, value_size);
  }

  const FileTensor* claim(const char* role, std::size_t most_axes) {
    const SourceTensor* given = numbers(role, most_axes);
    return given == nullptr ? nullptr : &given->tensor;
  }

  // Pasted numbers may stand in a column.
  const FileTensor* lse() {
    for (std::size_t n = 0; n < to_.role_of.size(); ++n) {
      SourceTensor& given = to_.sources.tensors[n];
      if (to_.role_of[n] == "lse" && !given.text.empty() && !given.is_lists)
        given.tensor.shape = {given.tensor.size()};
    }
    return claim("lse", 3);
  }

  template <class Use>
  void pairs(const char* role, bool is_right_type, const char* needed, const Use& use) {
    const SourceTensor* given = in_role(to_, role);
    if (given == nullptr) return;
    if (!is_right_type)
      problem(role, given->source_name + " holds " +
                        std::string(given->tensor.stored.empty() ? name(given->tensor.dtype)
                                                                 : given->tensor.stored) +
                        "; " + needed);
    else if (given->tensor.shape.size() > 4)
      problem(role, given->source_name + " has more than 4 axes");
    else
      use(given->tensor);
  }

  static Broadcast broadcast(const FileTensor& tensor) {
    return wire::dense_broadcast(tensor.bytes.data(), tensor.dtype, tensor.shape);
  }

  void explicit_mask() {
    const SourceTensor* given = in_role(to_, "mask");
    pairs("mask", given != nullptr && given->tensor.dtype == DType::u8,
          "a mask is booleans, true = may attend; numbers that are added to scores are a bias",
          [&](const FileTensor& t) {
            to_.believed.options.mask = to_.believed.options.mask & Mask::allowed(broadcast(t));
          });
  }

  void explicit_bias() {
    const SourceTensor* given = in_role(to_, "bias");
    pairs("bias",
          given != nullptr && given->tensor.dtype != DType::u8 && given->tensor.dtype != DType::i64,
          "a bias is floating-point numbers; booleans, true = may attend, are a mask",
          [&](const FileTensor& t) {
            to_.believed.options.bias = to_.believed.options.bias + Bias::dense(broadcast(t));
          });
  }

  Problems& problems_;
  DoctorRequest& to_;
};

// The command's flags for the tensors; pasted numbers stand in the command itself.
std::vector<std::string> tensor_flags(const DoctorRequest& request) {
  std::vector<std::string> flags;
  for (const std::string_view role : roles()) {
    const SourceTensor* given = in_role(request, role);
    if (given == nullptr) continue;
    constexpr std::size_t kLongest = 400;
    const std::string file =
        given->name.empty() ? given->source_name : given->source_name + ":" + given->name;
    const bool is_text = !given->text.empty() && is_claim(role) && given->text.size() <= kLongest;
    const bool is_file = given->text.empty() && !given->is_lists;
    flags.push_back("--" + (role == "d_out" ? std::string("d-out") : std::string(role)));
    flags.push_back(is_text ? given->text : is_file ? file : std::string(role) + ".npy");
  }
  return flags;
}

void read_options(Request& request, DoctorRequest& to) {
  const std::string dtype = request.text("dtype", ""), pairs = request.typed("pairs");
  const std::optional<index_t> decimals = typed_integer(request, "decimals", 0, kMostDecimals);
  for (const DType type : {DType::f64, DType::f32, DType::bf16, DType::f16})
    if (dtype == name(type)) to.options.arithmetic = type;
  if (!dtype.empty() && !to.options.arithmetic)
    request.problems().push_back({"dtype", "is none of f64 f32 bf16 f16"});
  const bool has_no_pairs = pairs == "no" || pairs == "false";
  if (!has_no_pairs && !pairs.empty() && pairs != "yes" && pairs != "true")
    request.problems().push_back({"pairs", "is neither yes nor no"});
  to.options.tries_pairs = !has_no_pairs;
  for (std::size_t n = 0; n < to.role_of.size(); ++n)
    if (is_claim(to.role_of[n]) && to.sources.tensors[n].decimals)
      to.options.decimals =
          std::max(to.options.decimals.value_or(0), *to.sources.tensors[n].decimals);
  if (decimals) to.options.decimals = static_cast<int>(*decimals);
  const auto flag = [&](const char* name, std::string value) {
    to.flags.emplace_back(name);
    to.flags.push_back(std::move(value));
  };
  if (decimals) flag("--decimals", std::to_string(*decimals));
  if (!dtype.empty()) flag("--dtype", dtype);
  if (!to.options.tries_pairs) to.flags.emplace_back("--no-pairs");
}

void use_case(Request& request, const wire::Case& c, DoctorRequest& to) {
  for (const char* role : {"q", "k", "v", "mask", "bias"})
    if (in_role(to, role) != nullptr)
      request.problems().push_back({role, "given beside a case, which has its own"});
  if (!to.believed.flags.empty() || to.believed.heads)
    request.problems().push_back({"options", "given beside a case, which has its own"});
  to.subject = doctor::case_subject(c, request.problems());
  if (!to.subject) return;
  to.attention = to.subject->attention();
  to.options.query_labels = to.subject->query_labels;
  to.key_labels = c.key_labels;
}

}  // namespace

std::optional<wire::Case> read_case(Request& request) {
  const std::optional<std::string> text = request.text("case");
  const std::string name = request.text("name", "case");
  if (!text || text->empty()) return std::nullopt;
  return wire::parse_case(*text, name, request.problems());
}

void read_doctor_request(Request& request, DoctorRequest& to) {
  const std::optional<wire::Case> c = read_case(request);
  to.sources = read_sources(request);
  for (const SourceTrouble& trouble : to.sources.troubles)
    request.problems().push_back({trouble.source_name, trouble.problem.what});
  read_roles(request, to);
  read_claims(request, to);
  to.believed = read_believed(request);
  read_options(request, to);
  request.refuse_others();
  if (!request.problems().empty()) return;
  Assembler assemble(request, to);
  if (c)
    use_case(request, *c, to);
  else
    assemble.inputs();
  assemble.need_claims();
  if (!request.problems().empty()) return;
  assemble.claims();
  std::vector<std::string> flags = tensor_flags(to);
  flags.insert(flags.end(), to.believed.flags.begin(), to.believed.flags.end());
  flags.insert(flags.end(), to.flags.begin(), to.flags.end());
  to.flags = std::move(flags);
  if (!request.problems().empty()) return;
  request.problems() = doctor::check_diagnosis(to.attention, to.claims, to.options);
}

std::string command_line(const std::string& start, const std::vector<std::string>& words) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=./:,+";
  std::string line = start;
  for (const std::string& word : words) {
    line += ' ';
    if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
      line += word;
      continue;
    }
    line += '\'';
    for (const char c : word) line += c == '\'' ? std::string("'\\''") : std::string(1, c);
    line += '\'';
  }
  return line;
}

}  // namespace glasshead::wasm
