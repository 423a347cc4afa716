// Whether the fused path computes what a trace shows: `attend` in f64 on the q, k and v of each
// attention, its result against the trace's out.
//
//   FusedCheck check(list);                       // the steps that will run
//   for (each input and step, in order) check.see(tap, value);
//   if (const std::optional<CheckLine> line = check.line()) ...
//
// Both are f64 paths that add in another order, so they are held to twice the error that the
// contract allows each against exact arithmetic: for row i and element d
//     2 u sum_j |w_ij v_jd| (max(16, 4 sqrt(kv_len)) + 4 max_j (|scale| |q_i|.|k_j| + |bias|))
// with u = 2^-53. There is no line where an attention is not the library's own, as under a mistake,
// or where the trace is too large for a check beside it.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "wire/document.h"
#include "wire/document_build.h"

namespace glasshead::wire {

class FusedCheck {
 public:
  explicit FusedCheck(std::vector<Step> list);

  // A value of the run, inputs first. Values that no check needs are not kept.
  void see(const std::string& tap, const TraceTensor& value);
  std::optional<CheckLine> line() const;

 private:
  struct Attention {
    std::size_t first = 0;  // its `scores` in the list
    std::string q, k, v, out;
  };
  void compare(const Attention& attention, const TraceTensor& out);
  bool is_library_s(const Attention& attention, index_t d_k) const;

  std::vector<Step> list_;
  std::vector<Attention> attentions_;
  std::set<std::string> needed_;
  std::map<std::string, TraceTensor> values_;
  std::size_t seen_ = 0;  // attentions compared
  bool is_left_out_ = false;
  CheckLine line_{"fused-path", "fused path agrees", true, {}};
};

// Over a whole trace.
std::optional<CheckLine> fused_check(const Trace& trace);

}  // namespace glasshead::wire
