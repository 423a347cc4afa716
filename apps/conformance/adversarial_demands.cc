// The exact demands that some cases add in words.
#include <map>

#include "conformance/adversarial.h"

namespace glasshead::conformance {
namespace {

Array heads_repeated(const Array& v, index_t times) {
  Array result{v.shape, {}};
  result.shape[1] = v.shape[1] * times;
  const index_t rows = v.shape[2] * v.shape[3];
  for (index_t head = 0; head < v.shape[0] * v.shape[1]; ++head) {
    const auto first = v.values.begin() + head * rows;
    for (index_t n = 0; n < times; ++n) {
      result.values.insert(result.values.end(), first, first + rows);
    }
  }
  return result;
}

using Demand = std::optional<Failure> (*)(const Array& v, const Result& result);

std::optional<Failure> y_equals(const Array& y, const Array& expected, DType type) {
  return compare("Y", y, expected, exact(type));
}

std::optional<Failure> first_row_sees_itself(const Array&, const Result& result) {
  const Array row = slice(result.w, 2, 0, 1);
  Array expected{row.shape, std::vector<double>(row.values.size(), 0)};
  const auto keys = static_cast<std::size_t>(row.shape[3]);
  for (std::size_t n = 0; n < expected.values.size(); n += keys) expected.values[n] = 1;
  return compare("W", row, expected, exact(result.state_type));
}

const std::map<std::string, Demand>& demands() {
  static const std::map<std::string, Demand> table{
      {"Y == V bit for bit",
       [](const Array& v, const Result& r) { return y_equals(r.y, v, r.y_type); }},
      {"Y[:,:,0,:] == V[:,:,0,:] bit for bit",
       [](const Array& v, const Result& r) {
         return y_equals(slice(r.y, 2, 0, 1), slice(v, 2, 0, 1), r.y_type);
       }},
      {"Y == V[...,299,:] bit for bit",
       [](const Array& v, const Result& r) {
         return y_equals(r.y, slice(v, 2, 299, 300), r.y_type);
       }},
      {"Y[:,h] == V[:,h//3] bit for bit",
       [](const Array& v, const Result& r) {
         return y_equals(r.y, heads_repeated(v, 3), r.y_type);
       }},
      {"W[:,:,0,:] == (1,0,...,0) exactly", first_row_sees_itself},
      // Named an ideal: the tolerance is what is required.
      {"column 0 == 1 exactly is the ideal",
       [](const Array&, const Result&) -> std::optional<Failure> { return std::nullopt; }},
  };
  return table;
}

}  // namespace

std::optional<Failure> check_demand(const std::string& demand, const AdversarialCase& c,
                                    const Result& result) {
  const auto found = demands().find(demand);
  if (found != demands().end()) return found->second(widened(c.v), result);
  return in_words("", "this program does not know the demand \"" + demand + "\"");
}

}  // namespace glasshead::conformance
