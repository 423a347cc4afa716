// The hostile cases, their pairs and the giants (golden/README.md, "adversarial").
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "conformance/golden.h"
#include "conformance/report.h"
#include "glasshead/attention.h"

namespace glasshead::conformance {

enum class Arithmetic {
  stored,  // attend on the inputs as they are: f32 or f16
  f64,     // attend on the inputs widened
  trace    // the steps of the readable path
};
// How a case is computed.
struct Way {
  const Engine* engine;
  Arithmetic arithmetic;
};
// Every case is run in all of them: each engine stored and in f64, and the steps beside the
// readable path.
std::vector<Way> ways(const Selection& selection);

struct AdversarialCase {
  std::string name;
  FileTensor q, k, v;
  std::shared_ptr<const FileTensor> mask;  // what options.mask or options.bias look at
  AttentionOptions options;
};

// Throws Error for what the library's own types can't hold (a mask of rank 5).
AdversarialCase load_case(const Golden& golden, const nlohmann::json& entry);

struct Result {
  Array y, lse, row_max;
  Array w;                        // empty unless asked for
  DType y_type = DType::f32;      // what y was rounded to
  DType state_type = DType::f32;  // what lse and w were rounded to: the compute type
};

Result run(const AdversarialCase& c, const Way& way, bool wants_weights);
std::string name(const Way& way, DType stored);  // "avx2 f32", "transparent f64", "steps"

// u and tiny of the README's tolerance, by the type a result was rounded to.
double unit_roundoff(DType type);
double tiny(DType type);

// What the README's tolerance says of each row beside Y. It gives tol_unit for Y:
// sum_j |w_j v_jd| * (max(16, 4 sqrt(n)) + 4E).
struct RowFactors {
  // The second factor, with E 0 where scores are exact by construction: tol_unit divided by the
  // sum, which is made with |V| in f64. A weight is the output for a one-hot V: u * w * factor.
  std::vector<double> weights;
  // The same with E always there. The log of the sum has as absolute error what the sum has as
  // relative error, and one rounding of its own: u * (factor + |LSE|).
  std::vector<double> lse;
};
RowFactors row_factors(const AdversarialCase& c, const Array& tol_unit);

FolderReport run_adversarial(const Golden& golden, const Selection& selection);

// Parts of it, in files of their own.
CaseResult run_case(const Golden& golden, const nlohmann::json& entry, const Selection& selection);
CaseResult run_pair(const Golden& golden, const nlohmann::json& pair, const Selection& selection);
CaseResult run_giant(const nlohmann::json& giant, const Selection& selection);
std::string pair_name(const nlohmann::json& pair);  // "cache:a:b"
const nlohmann::json& entry_named(const Golden& golden, const std::string& name);

// The exact demands in words ("Y == V bit for bit"). A demand that isn't known is a failure.
std::optional<Failure> check_demand(const std::string& demand, const AdversarialCase& c,
                                    const Result& result);

}  // namespace glasshead::conformance
