// The inputs and options of one attention call, as flags: shared by every command that takes q, k,
// v. Everything is taken as text first, so that what is wrong with any flag, file or shape can be
// said at once.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "glasshead/attention.h"
#include "glasshead/tensor_file.h"

namespace glasshead::cli {

using Text = std::optional<std::string>;  // a flag's value; nullopt: not given

struct AttentionArgs {
  Text q, k, v, qkv;
  Text mask, causal, window, key_lengths, prefix, query_segments, key_segments;
  Text bias, alibi, alibi_form, t5, t5_max_distance;
  bool is_t5_one_sided = false;
  Text scale, softcap, sinks, query_start, empty_row, dropout, seed;
};

// Declares the flags. `args` must live until the command has run.
void add_attention_flags(CLI::App& command, AttentionArgs& args);

// A call ready to be made, and the memory that it refers to.
struct AttentionCall {
  FileTensor q, k, v;
  std::optional<FileTensor> mask, bias;
  AttentionOptions options;  // its mask and bias point into the members above: don't copy a call

  AttentionCall() = default;
  AttentionCall(const AttentionCall&) = delete;
  AttentionCall& operator=(const AttentionCall&) = delete;

  ConstTensor<4> q_view() const { return q.view<4>("q"); }  // [batch, heads, q_len, d_k]
  ConstTensor<4> k_view() const { return k.view<4>("k"); }  // [batch, kv_heads, kv_len, d_k]
  ConstTensor<4> v_view() const { return v.view<4>("v"); }  // [batch, kv_heads, kv_len, d_v]
};

// Reads the files and the flags into `call` and appends everything that is wrong, what `check`
// finds included. True if nothing was.
bool load_call(const AttentionArgs& args, AttentionCall& call, std::vector<Problem>& problems);

// The file of one flag; nullopt, and why, if it cannot be read or its rank is above `max_rank`.
std::optional<FileTensor> load_tensor(const std::string& flag, const std::string& path,
                                      std::size_t max_rank, std::vector<Problem>& problems);

}  // namespace glasshead::cli
