// The random inputs of a probe (make_probe), and what such a probe would tell beside the inputs at
// hand: nobody is to be sent for what can't be had.
//
//   ProbeOutlook outlook(attention, claims, DType::f32);
//   if (outlook.tells_apart(suspects)) ...                 // "run your code on a probe"
#pragma once

#include <memory>
#include <vector>

#include "doctor/search.h"

namespace glasshead::doctor {

struct ProbeInputs {
  Tensor<float, 4> q, k, v;
};
// Scores with a standard deviation of about 2: weights neither flat nor all on one key, so that
// every key still counts.
ProbeInputs probe_inputs(const ProbeShape& shape, const AttentionOptions& options,
                         std::uint64_t seed);

class ProbeOutlook {
 public:
  // They must outlive it. Claims of out, weights, scores and lse are those that a probe is thought
  // to be answered with; of gradients nothing is known, and all is hoped for.
  ProbeOutlook(const AttentionCase& attention, const Claims& claims, DType arithmetic);
  ~ProbeOutlook();
  ProbeOutlook(const ProbeOutlook&) = delete;
  ProbeOutlook& operator=(const ProbeOutlook&) = delete;

  // The inputs are those of a probe already, of one of the first few seeds.
  bool is_probe() const { return is_probe_; }
  // Whether some of the suspects would give other numbers than the first.
  bool tells_apart(const std::vector<Suspect>& suspects);
  // Whether this mistake would be seen.
  bool shows(const Made& made);

 private:
  struct Rehearsal;
  const Rehearsal* rehearsal();  // null: not to be had

  const AttentionCase& attention_;
  const Claims& claims_;
  DType arithmetic_;
  bool is_probe_ = false;
  std::unique_ptr<Rehearsal> rehearsal_;
};

}  // namespace glasshead::doctor
