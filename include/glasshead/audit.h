// The audit: a report card for anybody's attention. A table of inputs on which implementations are
// known to go wrong (lengths beside tiles, empty rows, NaN under a mask, corners, views, large
// scores, ...) is run through a function, and each answer is judged by the doctor.
//
//   AuditReport report = audit(
//       [](const AuditCall& call, const MutableTensor<4>& out) { theirs(call.q, ..., out); },
//       {.takes = {Feature::mask, Feature::causal_end}});
//   puts(audit_text(report).c_str());
//
// An answer is judged number by number against f64. Where a call takes more than 1e8 products and
// sums (none of the table's does today) some of its rows are, and which mistake gives the wrong
// numbers is looked for up to 2e6.
//
// What a function refuses (an exception) is a row of the report, and so is what it does not offer.
// Crashes and hangs need a process in between: AuditRun hands out one call after another to a
// program that makes them elsewhere (`glasshead audit`, glasshead.audit in Python).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "glasshead/attention.h"
#include "glasshead/tensor_file.h"

namespace glasshead {

// What a function may take beside q, k and v of one type f32, with as many key/value heads as query
// heads and d_v == d_k. Inputs that need more than a function takes are "not offered".
enum class Feature : std::uint8_t {
  mask,           // booleans, true = may attend
  bias,           // numbers added to the scores, -inf hides
  causal_start,   // causal, query row 0 at key 0
  causal_end,     // causal, the last query row at the last key
  window,         // p - left <= j <= p + right
  key_lengths,    // one length for each batch entry
  scale,          // another factor than 1/sqrt(d_k)
  softcap,        //
  grouped_heads,  // fewer key/value heads than query heads
  other_d_v,      // d_v != d_k
  f64,
  bf16,
  f16,
  strides,  // q, k, v that are not dense
  threads   // their number can be set
};
const char* name(Feature feature);  // "causal-start"
std::vector<Feature> all_features();

// One call of the function. Everything it points to lives until the next one is asked for.
struct AuditCall {
  std::string input;                   // "causal/end-33x127": the row of the report
  ConstTensor<4> q, k, v;              // [batch, heads or kv_heads, length, size]
  Broadcast mask;                      // u8; data null: none
  Broadcast bias;                      // of q's type or f32; data null: none
  std::optional<Align> causal;         // stated in any case; where the lengths are equal both agree
  std::optional<Mask::Window> window;  // positions as by `causal`
  std::vector<index_t> key_lengths;    // [batch] or empty
  std::optional<double> scale;
  double softcap = 0;
  int threads = 0;           // 0: as it likes
  AttentionOptions options;  // all of these as `attend` takes them

  std::array<index_t, 4> out_shape() const {
    return {q.shape[0], q.shape[1], q.shape[2], v.shape[3]};
  }
};

// What became of a call.
enum class Answered : std::uint8_t {
  out,         // numbers, or none where there should be: then `text` says why, and it is wrong
  refused,     // an error, in `text`
  crashed,     // the process ended: `text` says how
  hung,        // it took longer than it was given
  not_offered  // the call can't be put to it: `text` says why
};
struct AuditAnswer {
  Answered kind = Answered::out;
  FileTensor out;  // [batch, heads, q_len, d_v], any floating-point type
  std::string text;
};

enum class AuditVerdict : std::uint8_t {
  right,
  varies,  // right, but other bits where the same numbers were asked for in another way: again,
           // without the other batch entries or rows, beside others, on other threads
  wrong,
  refuses,
  crashes,
  hangs,
  not_offered
};
const char* name(AuditVerdict verdict);  // "right", "not offered"

struct AuditRow {
  std::string group, input;  // "poison", "nan-in-hidden-values"
  std::string what;          // "q [1,2,7,8] k [1,2,9,8] v [1,2,9,8] f32, mask [1,1,7,9]"
  AuditVerdict verdict = AuditVerdict::right;
  std::string text;                   // why: where it is wrong, their error, what is not offered
  std::vector<std::string> mistakes;  // that give their numbers: "hidden-read:values"; one or more
  double ulps = 0;                    // largest error of out against f64, as in Diagnosis
  double plain_ulps = 0;              // that of plain three-pass attention in the same type
  std::string file, command;  // the input on disk, and the doctor's command for it; or empty
};

struct AuditReport {
  std::string subject;         // whose attention: AuditOptions::subject
  std::vector<Feature> takes;  // AuditOptions::takes
  std::uint64_t seed = 0;
  std::vector<AuditRow> rows;

  index_t count(AuditVerdict verdict) const;
  bool has_faults() const;  // a row that is wrong, crashes or hangs
  // Why nothing was audited: every row is "not offered" (their reasons, the commonest first), or
  // there is none. Empty: something was.
  std::string why_nothing() const;
};

// How far an audit is: inputs done, of all of them, and the one that is asked next.
using AuditProgress = std::function<void(index_t done, index_t inputs, const std::string& input)>;

struct AuditOptions {
  std::string subject = "attention";            // what the report calls it
  std::vector<Feature> takes = all_features();  // what it offers
  std::vector<std::string> groups = {};         // only these of audit_groups(); empty: all
  std::uint64_t seed = 1;                       // of the random numbers
  // An existing folder: the smallest failing input of each fault is written there, a .safetensors
  // file with q, k, v, mask, bias, and out as they gave it. Empty: none.
  std::string folder = {};
  AuditProgress progress = {};  // called before each input that is asked; empty: nobody looks
};

std::vector<std::string> audit_groups();  // "shapes", "heads", ...

// One call after another, for a caller that makes them in its own way:
//
//   AuditRun run(options);
//   while (const AuditCall* call = run.next()) run.answer(make(*call));
//   AuditReport report = run.report();
class AuditRun {
 public:
  explicit AuditRun(const AuditOptions& options);  // throws OptionError: an unknown group
  ~AuditRun();
  AuditRun(AuditRun&&) noexcept;
  AuditRun& operator=(AuditRun&&) noexcept;

  const AuditCall* next();          // null: that was all
  void answer(AuditAnswer answer);  // of the call that next() gave
  index_t inputs() const;           // rows that the report will have
  index_t inputs_done() const;      //
  AuditReport report() const;       // of the rows so far; writes the files (IoError)

  struct Impl;  // the library's own

 private:
  std::unique_ptr<Impl> impl_;
};

// Calls `attend` in this process: it writes `out`, of q's type and filled with NaN beforehand, or
// throws an exception. Deterministic. Takes seconds where little is wrong.
using AuditFunction = std::function<void(const AuditCall& call, const MutableTensor<4>& out)>;
AuditReport audit(const AuditFunction& attend, const AuditOptions& options = {});

std::string audit_text(const AuditReport& report);  // a table for a terminal
std::string audit_json(const AuditReport& report);  // schema "glasshead.audit/1"

// A call as a .safetensors file: tensors q, k, v, mask, bias (dense), and the rest as text in its
// metadata: causal start|end, window LEFT,RIGHT, key_lengths N,..., scale, softcap, threads. What
// is not asked for is not there.
std::vector<std::byte> audit_file(const AuditCall& call, const FileTensor* out = nullptr);

}  // namespace glasshead
