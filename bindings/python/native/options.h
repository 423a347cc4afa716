// AttentionOptions as Python gives them, one keyword after another. Masks and biases that are
// arrays are kept alive, not copied.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "glasshead/attention.h"
#include "python/native/array.h"

namespace glasshead::python {

class Options {
 public:
  Options() = default;
  Options(const Options&) = delete;  // what it holds is held once
  Options& operator=(const Options&) = delete;

  AttentionOptions values;
  std::vector<Problem> problems;  // found on the way: told with those of the call

  void problem(const std::string& where, const std::string& what);

  void causal();
  void window(std::optional<index_t> left, std::optional<index_t> right);
  void key_lengths(const std::vector<index_t>& lengths);
  void segments(index_t batch, const std::vector<index_t>& query_ids,
                const std::vector<index_t>& key_ids);
  void prefix(const std::vector<index_t>& lengths);
  void mask(nb::handle array, const std::string& where);  // booleans: True may attend
  void bias(nb::handle array, const std::string& where);  // numbers
  void attn_mask(nb::handle array);                       // either
  void alibi(const std::vector<double>& slopes, bool is_key_index);
  void t5(index_t buckets, index_t heads, const std::vector<double>& table, bool is_bidirectional,
          index_t max_distance);

 private:
  void add_mask(Array array);
  void add_bias(Array array);

  std::vector<Array> held_;
};

// Of a call without options.
const AttentionOptions& values_of(const Options* options);
std::vector<Problem> problems_of(const Options* options);

void add_options(nb::module_& module);

}  // namespace glasshead::python
