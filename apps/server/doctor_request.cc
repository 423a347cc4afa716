#include "server/doctor_request.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string_view>

#include "doctor/case_subject.h"
#include "glasshead/diagnose.h"
#include "glasshead/tensor_file.h"
#include "wire/case.h"
#include "wire/pasted.h"

namespace glasshead::server {
namespace {

using Json = nlohmann::json;
using Problems = std::vector<Problem>;

constexpr int kMostDecimals = 17;

FileTensor f64_tensor(std::vector<index_t> shape, const std::vector<double>& values) {
  FileTensor tensor = make_tensor(DType::f64, std::move(shape));
  if (!values.empty()) std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return tensor;
}

// Lists of lists of numbers, as deep as they are.
class Numbers {
 public:
  Numbers(const std::string& where, Problems& problems) : where_(where), problems_(problems) {}

  std::optional<FileTensor> read(const Json& json) {
    constexpr std::size_t kMostAxes = 4;
    for (const Json* level = &json; level->is_array(); level = &level->front()) {
      if (level->empty()) return refuse("a list in it is empty");
      shape_.push_back(static_cast<index_t>(level->size()));
      if (shape_.size() > kMostAxes) return refuse("lists stand more than 4 deep in it");
    }
    if (!add(json, 0)) return std::nullopt;
    return f64_tensor(shape_, values_);
  }

 private:
  std::optional<FileTensor> refuse(const std::string& what) {
    problems_.push_back({where_, what});
    return std::nullopt;
  }

  bool add(const Json& json, std::size_t axis) {
    if (axis == shape_.size()) {
      if (json.is_number()) {
        values_.push_back(json.get<double>());
        return true;
      }
      refuse(json.is_array()
                 ? "its lists are of different depths"
                 : "found " + std::string(json.type_name()) + " where a number is needed");
      return false;
    }
    if (!json.is_array() || static_cast<index_t>(json.size()) != shape_[axis]) {
      refuse("its lists are of different lengths");
      return false;
    }
    return std::all_of(json.begin(), json.end(),
                       [&](const Json& entry) { return add(entry, axis + 1); });
  }

  const std::string& where_;
  Problems& problems_;
  std::vector<index_t> shape_;
  std::vector<double> values_;
};

// One claim, with the digits that a text has. `is_lse`: typed in rows, one number after another may
// stand in a column.
std::optional<FileTensor> read_claim(const Json& json, const std::string& where, bool is_lse,
                                     std::optional<int>& decimals, Problems& problems) {
  if (json.is_array()) return Numbers(where, problems).read(json);
  if (!json.is_string()) {
    problems.push_back({where, "is neither lists of numbers nor text"});
    return std::nullopt;
  }
  const auto pasted = wire::read_pasted(json.get<std::string>(), where, problems);
  if (!pasted) return std::nullopt;
  if (pasted->decimals) decimals = std::max(decimals.value_or(0), *pasted->decimals);
  std::vector<index_t> shape = pasted->tensor.shape;
  if (is_lse && !pasted->is_lists) shape = {shape[0] * shape[1]};
  return f64_tensor(std::move(shape), pasted->tensor.values);
}

class DoctorRequest {
 public:
  DoctorRequest(const Json& json, Problems& problems) : json_(json), problems_(problems) {}

  std::string answer() {
    const std::string name = text("name", "case"), source = text("case", "");
    const std::string format = text("format", "json"), dtype = text("dtype", "");
    read_claims();
    const DiagnoseOptions given = options(dtype);
    if (format != "json" && format != "text") problem("format", "is neither json nor text");
    refuse_others();
    if (!problems_.empty()) return {};
    const std::optional<wire::Case> c = wire::parse_case(source, name, problems_);
    if (!c) return {};
    const std::optional<doctor::CaseSubject> subject = doctor::case_subject(*c, problems_);
    if (!subject || !problems_.empty()) return {};
    DiagnoseOptions all = given;
    all.query_labels = subject->query_labels;
    const Diagnosis diagnosis = diagnose(subject->attention(), claims(), all);
    return format == "json" ? diagnosis_json(diagnosis) + "\n" : diagnosis_text(diagnosis);
  }

 private:
  void problem(std::string where, std::string what) {
    problems_.push_back({std::move(where), std::move(what)});
  }

  const Json* find(const char* key) {
    asked_.emplace_back(key);
    const auto found = json_.find(key);
    return found == json_.end() ? nullptr : &*found;
  }

  std::string text(const char* key, const char* otherwise) {
    const Json* found = find(key);
    if (found == nullptr) return otherwise;
    if (found->is_string()) return found->get<std::string>();
    problem(key, "not a text");
    return otherwise;
  }

  void read_claims() {
    const Json* found = find("claims");
    if (found == nullptr || !found->is_object() || found->empty()) {
      problem("claims", "missing; their numbers are needed: out, weights, scores or lse");
      return;
    }
    for (const auto& [key, value] : found->items()) {
      const auto known = std::find(kClaims.begin(), kClaims.end(), key);
      if (known == kClaims.end()) {
        problem("claims." + key, "is none of out, weights, scores, lse");
        continue;
      }
      std::optional<FileTensor>& claim = given_[static_cast<std::size_t>(known - kClaims.begin())];
      claim = read_claim(value, "claims." + key, key == "lse", decimals_, problems_);
    }
  }

  DiagnoseOptions options(const std::string& dtype) {
    DiagnoseOptions options;
    options.decimals = decimals_;
    if (const Json* found = find("decimals")) {
      const bool is_right =
          found->is_number_unsigned() && found->get<std::uint64_t>() <= kMostDecimals;
      if (is_right)
        options.decimals = found->get<int>();
      else
        problem("decimals", "is no whole number from 0 to 17");
    }
    if (const Json* found = find("pairs")) {
      if (found->is_boolean())
        options.tries_pairs = found->get<bool>();
      else
        problem("pairs", "is neither true nor false");
    }
    for (const DType type : {DType::f64, DType::f32, DType::bf16, DType::f16})
      if (dtype == glasshead::name(type)) options.arithmetic = type;
    if (!dtype.empty() && !options.arithmetic) problem("dtype", "is none of f64, f32, bf16, f16");
    return options;
  }

  void refuse_others() {
    for (const auto& [key, value] : json_.items())
      if (std::find(asked_.begin(), asked_.end(), key) == asked_.end())
        problem(key, "no such field in this call");
  }

  Claims claims() const {
    Claims claims;
    if (given_[0]) claims.out = given_[0]->view<4>("claims.out");
    if (given_[1]) claims.weights = given_[1]->view<4>("claims.weights");
    if (given_[2]) claims.scores = given_[2]->view<4>("claims.scores");
    if (given_[3]) claims.lse = given_[3]->view<3>("claims.lse");
    return claims;
  }

  static constexpr std::array<std::string_view, 4> kClaims{"out", "weights", "scores", "lse"};
  const Json& json_;
  Problems& problems_;
  std::vector<std::string> asked_;
  std::array<std::optional<FileTensor>, 4> given_;
  std::optional<int> decimals_;
};

}  // namespace

std::string answer_doctor(const Json& request, Problems& problems) {
  return DoctorRequest(request, problems).answer();
}

}  // namespace glasshead::server
