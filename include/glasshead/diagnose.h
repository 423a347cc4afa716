// The doctor: is somebody's attention right, and if not, which mistake gives exactly their numbers?
//
//   Claims claims;
//   claims.out = theirs;                                     // what their program gave
//   Diagnosis d = diagnose({q, k, v, options}, claims);
//   if (!d.is_right()) puts(diagnosis_text(d).c_str());      // "causal-corner:0: ..."
//
// A catalogue of mistakes, each a change of the inputs, the options or the arithmetic, is run on
// the same inputs. A mistake is named only when it gives every number that was given, within what
// rounding can do to these very inputs; what several mistakes explain alike is said to be so, with
// an input that tells them apart (make_probe). What none explains is located, never guessed at.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "glasshead/attention.h"

namespace glasshead {

// Rotary positions that the program under test applies to q and k itself (Su et al. 2021): pairs
// (i, i + n/2) or (2i, 2i + 1) of the first n coordinates turn by position * base^(-2i/n). Only
// for q and k given before rotation.
struct Rotary {
  bool is_adjacent = false;  // pairs (2i, 2i + 1)
  double base = 10000;
  index_t size = 0;  // coordinates that turn, even; 0: all
};

// The attention that somebody believes to compute: q [batch, heads, q_len, d_k], k [batch,
// kv_heads, kv_len, d_k], v [batch, kv_heads, kv_len, d_v]. EmptyRow::error is taken as
// EmptyRow::zero.
struct AttentionCase {
  ConstTensor<4> q, k, v;
  AttentionOptions options = {};
  std::optional<Rotary> rotary = std::nullopt;  // nullopt: q and k are used as they are
  ConstTensor<4> unprojected = {};  // what v was projected from, of v's shape; data null: unknown
};

// What their program gave. Data null: not known; at least one is needed. Any floating-point dtype.
struct Claims {
  ConstTensor<4> out;      // [batch, heads, q_len, d_v]
  ConstTensor<4> weights;  // [batch, heads, q_len, kv_len], before dropout
  ConstTensor<4> scores;   // [batch, heads, q_len, kv_len] scaled, capped, biased; hidden pairs are
                           // not judged
  ConstTensor<3> lse;      // [batch, heads, q_len]
  // Gradients of a loss with respect to q, k, v, in their shapes, and d_out = dL/dout, in out's
  // shape, which they need. Not for rotary positions that the program applies itself.
  ConstTensor<4> dq, dk, dv, d_out;
};

struct DiagnoseOptions {
  // The type their program computes in: f64, f32, bf16 or f16. nullopt: the narrowest of q and the
  // claims, so set it where numbers computed in f16 were stored wider.
  std::optional<DType> arithmetic = std::nullopt;
  std::optional<int> decimals = std::nullopt;  // the claims are decimals rounded to so many places
  bool tries_pairs = true;                     // two mistakes at once, where no single one fits
  std::vector<std::string> query_labels = {};  // what rows are called; empty: by number
  // What writes a probe of this call, as hints say it; empty: probe_command's.
  std::string probe_command = {};
  // Products and sums that one full comparison may cost (about 1e9 a second): beyond it rows are
  // sampled, and the diagnosis says so.
  double most_work = 1.5e9;
};

enum class DiagnosisVerdict : std::uint8_t {
  right,       // every number is within what rounding can do
  mistaken,    // wrong, and `causes` give every number
  unexplained  // wrong, and nothing in the catalogue gives these numbers
};

// One mistake with its parameter.
struct NamedMistake {
  std::string id;         // "window-off"
  std::string parameter;  // "1"; empty if it has none
  std::string title, done, cause, fix_code, fix;
  std::string name() const { return parameter.empty() ? id : id + ":" + parameter; }
};

// One explanation: a mistake, or two made together.
struct Cause {
  std::vector<NamedMistake> mistakes;
  double worst = 0;          // largest distance from their numbers, in tolerances: at most 1, or
                             // at most 4 where is_close
  index_t telling = 0;       // wrong numbers that it explains
  bool is_close = false;     // between 1 and 4 tolerances away: not the best, not ruled out
  std::string name() const;  // "mask-ignored + scale-missing"
};

// One number of theirs beside the right one.
struct Entry {
  std::string claim;  // "out", "weights", "scores", "lse", "dq", "dk", "dv"; empty: there is none
  std::vector<index_t> index;  // of the claim's axes
  double found = 0, right = 0, tolerance = 0;
};

// One row of a small claim: whether it is right, and what would be.
struct RowReport {
  std::string claim, row;  // "weights", "B"
  bool is_right = true;
  std::vector<double> found, right;
  std::vector<double> tolerance;  // of each: further from the right one is wrong
};

struct Diagnosis {
  DiagnosisVerdict verdict = DiagnosisVerdict::right;
  std::vector<Cause> causes;  // best first; more than one: this input can't tell them apart
  Entry first_wrong, worst;   // worst: by tolerances, of a right answer too
  double worst_ulps = 0;      // of the out numbers, in units in the last place of `arithmetic`, at
                              // the size of what each number is a sum of
  double plain_ulps = 0;      // the same of plain three-pass attention in that type
  DType arithmetic = DType::f32;
  index_t rows = 0, rows_checked = 0;  // query rows of all heads; fewer are checked of large inputs
  index_t numbers = 0, wrong = 0;      // that were compared, and are wrong
  std::vector<RowReport> small_rows;   // of claims of at most 16 rows of 16 numbers
  std::vector<std::string> read;       // claims that were read with their axes moved
  std::vector<std::string> pattern;    // where the wrong numbers are
  std::vector<std::string> proven;     // what is right about them all the same
  std::vector<std::string> next;       // what to look at or try next
  std::vector<std::string> blind;      // mistakes that this input could not have shown
  // The command that writes inputs which would tell more; empty: no probe of this call would.
  std::string probe;
  std::vector<std::string> not_tried;  // and why
  index_t tried = 0;                   // mistakes, each parameter counted, and pairs

  bool is_right() const { return verdict == DiagnosisVerdict::right; }
};

// The command line that writes a probe of this call's shapes and options. What a table says is
// called FILE there: masks and biases, many documents.
std::string probe_command(const AttentionCase& attention);

// Throws OptionError with every problem: those of `check`, claims that do not fit.
// Plain f64 and the readable path alone; deterministic. Cost: some seconds for [1, 8, 512, 64].
Diagnosis diagnose(const AttentionCase& attention, const Claims& claims,
                   const DiagnoseOptions& options = {});

std::string diagnosis_text(const Diagnosis& diagnosis);  // lines for a terminal
std::string diagnosis_json(const Diagnosis& diagnosis);  // schema "glasshead.diagnosis/1"

// Inputs that tell the catalogue's mistakes apart: standard normal numbers, k and q scaled so that
// scores spread, in f32.
struct ProbeShape {
  index_t batch = 1, heads = 1, kv_heads = 1, q_len = 12, kv_len = 20, d_k = 8, d_v = 8;
};
struct Probe {
  Tensor<float, 4> q, k, v;
  Tensor<std::uint8_t, 4>
      mask;  // [batch, heads, q_len, kv_len] 1 = may attend; empty without masks
  // Groups of two or more mistakes that give the same out and lse on these inputs: since those are
  // random, by their nature for this shape and these options. "right" among them: not visible.
  std::vector<std::vector<std::string>> alike;
  double least_distance = 0;  // of any two others, in tolerances
};
Probe make_probe(const ProbeShape& shape, const AttentionOptions& options = {},
                 std::uint64_t seed = 1, const std::optional<Rotary>& rotary = std::nullopt);

}  // namespace glasshead
