// The audit's inputs: one table of rows, each data from which q, k, v, mask, bias and options are
// made.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "glasshead/audit.h"

namespace glasshead::audits {

struct Sizes {
  index_t batch = 1, heads = 2, kv_heads = 2, q_len = 7, kv_len = 9, d_k = 8, d_v = 8;
};

// Number (b, h, l, e) of a tensor is mean + slope * l + spread * a standard normal number.
struct Filling {
  double mean = 0, slope = 0, spread = 1;
};

// Which pairs are hidden by an explicit mask.
enum class Hide : std::uint8_t {
  none,
  some,       // three of ten, by chance; never all of a row
  padding,    // the last third of the keys, less by one key for each batch entry
  left,       // the first third of the keys
  upper,      // keys after the query's row number
  first_row,  // all of query row 0
  half_rows,  // all of the later half of the rows
  last_head,  // all of the last head
  all
};

// How the mask is handed over.
enum class Form : std::uint8_t {
  boolean,
  additive,    // a bias of 0 and -inf
  biased,      // a bias of normal numbers and -inf
  lowest,      // a bias of 0 and the most negative f32, which is a number like others
  zeros_ones,  // a bias of 1 and 0: ordinary numbers
};

// How q, k, v lie in memory.
enum class Layout : std::uint8_t {
  dense,
  heads_inside,  // [batch, length, heads, size]
  columns,       // the last axis is the slowest of its matrix
  every_other,   // every second number of a longer row
  repeated,      // stride 0 over the batch
  backwards      // the length runs down
};

// What a second call asks for, whose bits must be those of the first.
enum class Relation : std::uint8_t {
  none,
  again,       // the same
  alone,       // the last batch entry by itself
  neighbours,  // other numbers in the other batch entries
  other_rows,  // other numbers in the other query rows
  few_rows,    // the middle rows by themselves
  threads      // four threads instead of one
};

struct Input {
  const char* group = "";
  std::string name = {};
  Sizes sizes = {};
  DType dtype = DType::f32;
  // Scores with a standard deviation of 2: weights neither flat nor all on one key.
  Filling q = {0, 0, 1.4142}, k = {0, 0, 1.4142}, v = {};
  Hide hide = Hide::none;
  Form form = Form::boolean;
  const char* axes = "qk";  // of mask or bias, broadcast from the right: b h q k, or 1
  std::optional<DType> bias_dtype = std::nullopt;                          // nullopt: q's
  std::optional<double> hidden_k = std::nullopt, hidden_v = std::nullopt;  // where no row looks
  std::optional<Align> causal = std::nullopt;
  std::optional<Mask::Window> window = std::nullopt;
  std::vector<index_t> key_lengths = {};
  std::optional<double> scale = std::nullopt;
  double softcap = 0;
  Layout layout = Layout::dense;
  Relation relation = Relation::none;
};

// In the order of the report; small inputs first within a group.
std::vector<Input> all_inputs();

// What an input needs beside the least.
std::vector<Feature> needs(const Input& input);

// A call with its own memory.
struct MadeCall {
  AuditCall call;
  std::vector<FileTensor> storage;
};
// The first call of an input, or (is_second) the one that its relation compares with.
MadeCall make_call(const Input& input, std::uint64_t seed, bool is_second);

// The part of out that both calls of a relation have: rows [i, i + rows) of batch entries
// [b, b + batch), where they stand in the first and in the second call.
struct Shared {
  index_t b_first = 0, b_second = 0, batch = 0;
  index_t i_first = 0, i_second = 0, rows = 0;
};
Shared shared_part(const Input& input);

std::string words(const AuditCall& call);  // AuditRow::what
// What is asked for beside tensors, as audit_file keeps it: {"causal", "end"}, {"scale", "0.1"}.
std::vector<std::pair<std::string, std::string>> metadata(const AuditCall& call);

}  // namespace glasshead::audits
