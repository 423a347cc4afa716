#include "cli/attention_args.h"

#include <array>
#include <memory>
#include <utility>

#include "cli/values.h"
#include "wire/broadcast.h"

namespace glasshead::cli {
namespace {

using Problems = std::vector<Problem>;

constexpr const char* kInputs = "Inputs";
constexpr const char* kMasks = "Masks (a pair is hidden if any of them hides it)";
constexpr const char* kScores = "Scores";

// A flag with one value, or with one that may be left out (`is_optional`: then it is "").
void add_text(CLI::App& command, const char* flag, Text& value, const char* type,
              const char* description, const char* group, bool is_optional = false) {
  CLI::Option* option = command.add_option_function<std::vector<std::string>>(
      flag, [&value](const std::vector<std::string>& given) {
        value = given.empty() ? std::string() : given.front();
      });
  option->description(description)->group(group)->type_name(type)->expected(is_optional ? 0 : 1, 1);
  option->multi_option_policy(CLI::MultiOptionPolicy::Throw);
  if (!is_optional) option->allow_extra_args(false);  // a stray word is named, not taken as a value
}

bool is_file(const std::string& text) {
  return text.ends_with(".npy") || text.find(".safetensors") != std::string::npos;
}

std::string stored_name(const FileTensor& tensor) {
  return std::string(tensor.stored.empty() ? name(tensor.dtype) : tensor.stored);
}

std::optional<FileTensor> load_input(const char* flag, const Text& path, Problems& problems) {
  if (path) return load_tensor(flag, *path, 4, problems);
  problems.push_back({flag, "missing; give " + std::string(flag) +
                                " FILE (.npy or .safetensors), or --qkv FILE.safetensors"});
  return std::nullopt;
}

// q, k and v from one file. False if any is missing or unfit.
bool load_qkv(const std::string& path, AttentionCall& call, Problems& problems) {
  const std::size_t before = problems.size();
  if (!path.ends_with(".safetensors")) {
    problems.push_back({"--qkv", path + ": must be a .safetensors file that holds q, k and v"});
    return false;
  }
  NamedTensors tensors;
  try {
    tensors = read_safetensors(path);
  } catch (const Error& error) {
    for (const Problem& p : error.problems())
      problems.push_back({"--qkv", p.where + ": " + p.what});
    return false;
  }
  const std::array<std::pair<const char*, FileTensor*>, 3> wanted{
      {{"q", &call.q}, {"k", &call.k}, {"v", &call.v}}};
  for (const auto& [name, target] : wanted) {
    bool is_found = false;
    for (auto& [found, tensor] : tensors) {
      if (found != name) continue;
      *target = std::move(tensor);
      is_found = true;
    }
    if (!is_found)
      problems.push_back(
          {"--qkv", path + ": holds no tensor '" + name + "'; it must hold q, k and v"});
    else if (target->shape.size() > 4)
      problems.push_back({"--qkv", path + ": " + name + " has shape " + shape_text(target->shape) +
                                       "; rank 4 or less is needed"});
  }
  return problems.size() == before;
}

bool load_inputs(const AttentionArgs& args, AttentionCall& call, Problems& problems) {
  if (args.qkv) {
    for (const auto& [flag, text] :
         {std::pair("--q", &args.q), std::pair("--k", &args.k), std::pair("--v", &args.v)})
      if (*text) problems.push_back({flag, "given beside --qkv; give one or the other"});
    return load_qkv(*args.qkv, call, problems);
  }
  std::optional<FileTensor> q = load_input("--q", args.q, problems);
  std::optional<FileTensor> k = load_input("--k", args.k, problems);
  std::optional<FileTensor> v = load_input("--v", args.v, problems);
  if (!q || !k || !v) return false;
  call.q = std::move(*q);
  call.k = std::move(*k);
  call.v = std::move(*v);
  return true;
}

Broadcast broadcast_of(const FileTensor& tensor) {
  return wire::dense_broadcast(tensor.bytes.data(), tensor.dtype, tensor.shape);
}

void read_explicit(const AttentionArgs& args, AttentionCall& call, Problems& problems) {
  if (args.mask) call.mask = load_tensor("--mask", *args.mask, 4, problems);
  if (args.mask && call.mask) {
    if (call.mask->dtype == DType::u8)
      call.options.mask = call.options.mask & Mask::allowed(broadcast_of(*call.mask));
    else
      problems.push_back({"--mask", *args.mask + ": holds " + stored_name(*call.mask) +
                                        "; a mask is booleans (true = may attend). Numbers that "
                                        "are added to the scores are a --bias"});
  }
  if (args.bias) call.bias = load_tensor("--bias", *args.bias, 4, problems);
  if (args.bias && call.bias) {
    if (call.bias->dtype != DType::u8 && call.bias->dtype != DType::i64)
      call.options.bias = call.options.bias + Bias::dense(broadcast_of(*call.bias));
    else
      problems.push_back({"--bias", *args.bias + ": holds " + stored_name(*call.bias) +
                                        "; a bias is floating-point numbers. Booleans (true = may "
                                        "attend) are a --mask"});
  }
}

// start, end or a position.
std::optional<QueryStart> parse_start(const std::string& flag, const std::string& text,
                                      Problems& problems) {
  if (text == "start") return Align::start;
  if (text == "end") return Align::end;
  if (const std::optional<index_t> position = parse_integer(text)) return *position;
  problems.push_back({flag, "found '" + text +
                                "'; start, end, or the position of query row 0 (a "
                                "whole number) is needed"});
  return std::nullopt;
}

void read_positions(const AttentionArgs& args, AttentionOptions& options, Problems& problems) {
  if (args.query_start)
    if (const auto start = parse_start("--query-start", *args.query_start, problems))
      options.query_start = *start;
  if (!args.causal) return;
  options.mask = options.mask & Mask::causal();
  if (args.causal->empty()) return;
  const auto start = parse_start("--causal", *args.causal, problems);
  if (!start) return;
  if (args.query_start && *args.query_start != *args.causal)
    problems.push_back({"--causal", "says that the queries start at '" + *args.causal +
                                        "', --query-start says '" + *args.query_start +
                                        "'; say it once"});
  options.query_start = *start;
}

void read_window(const std::string& text, AttentionOptions& options, Problems& problems) {
  const std::vector<std::string_view> sides = split_at_commas(text);
  std::array<std::optional<index_t>, 2> limits;
  bool is_good = sides.size() == 2;
  for (std::size_t side = 0; is_good && side < 2; ++side) {
    limits[side] = parse_integer(sides[side]);
    is_good = sides[side].empty() || (limits[side] && *limits[side] >= 0);
  }
  if (is_good)
    options.mask = options.mask & Mask::window(limits[0], limits[1]);
  else
    problems.push_back({"--window", "found '" + text +
                                        "'; LEFT,RIGHT is needed, each 0 or more, or left out for "
                                        "no limit on that side, as in 128,0 or 128,"});
}

struct Ids {
  index_t batch = 1;
  std::vector<index_t> values;  // [batch, length]
};

// "0,0,1,1" or a file of integers, [length] or [batch, length].
std::optional<Ids> read_ids(const std::string& flag, const std::string& text, Problems& problems) {
  if (!is_file(text)) {
    std::optional<std::vector<index_t>> list = parse_integers(flag, text, problems);
    return list ? std::optional<Ids>({1, std::move(*list)}) : std::nullopt;
  }
  const std::optional<FileTensor> file = load_tensor(flag, text, 2, problems);
  if (!file) return std::nullopt;
  Ids ids{file->shape.size() == 2 ? file->shape[0] : 1, {}};
  if (file->dtype == DType::i64) {
    const auto* first = reinterpret_cast<const index_t*>(file->bytes.data());
    ids.values.assign(first, first + file->size());
  } else if (file->dtype == DType::u8) {  // integers of one byte
    for (const std::byte id : file->bytes) ids.values.push_back(std::to_integer<index_t>(id));
  } else {
    problems.push_back(
        {flag, text + ": holds " + stored_name(*file) + "; the numbers of documents are integers"});
    return std::nullopt;
  }
  return ids;
}

void read_segments(const AttentionArgs& args, AttentionOptions& options, Problems& problems) {
  if (!args.query_segments && !args.key_segments) return;
  if (!args.query_segments || !args.key_segments) {
    problems.push_back({args.query_segments ? "--key-segments" : "--query-segments",
                        "missing; --query-segments and --key-segments go together"});
    return;
  }
  std::optional<Ids> queries = read_ids("--query-segments", *args.query_segments, problems);
  std::optional<Ids> keys = read_ids("--key-segments", *args.key_segments, problems);
  if (!queries || !keys) return;
  if (queries->batch != keys->batch) {
    problems.push_back({"--key-segments", "has " + std::to_string(keys->batch) +
                                              " rows, --query-segments has " +
                                              std::to_string(queries->batch) +
                                              "; they must have the same, or one each"});
    return;
  }
  options.mask = options.mask & Mask::segments(queries->batch, std::move(queries->values),
                                               std::move(keys->values));
}

void read_masks(const AttentionArgs& args, AttentionOptions& options, Problems& problems) {
  read_positions(args, options, problems);
  if (args.window) read_window(*args.window, options, problems);
  if (args.key_lengths)
    if (auto lengths = parse_integers("--key-lengths", *args.key_lengths, problems))
      options.mask = options.mask & Mask::key_lengths(std::move(*lengths));
  if (args.prefix)
    if (auto lengths = parse_integers("--prefix", *args.prefix, problems))
      options.mask = options.mask & Mask::prefix(std::move(*lengths));
  read_segments(args, options, problems);
}

// `heads` is 0 where q could not be read: then "auto" has no slopes yet, and nothing runs anyway.
void read_alibi(const AttentionArgs& args, index_t heads, AttentionOptions& options,
                Problems& problems) {
  Bias::AlibiForm form = Bias::AlibiForm::distance;
  if (args.alibi_form) {
    if (*args.alibi_form == "key-index")
      form = Bias::AlibiForm::key_index;
    else if (*args.alibi_form != "distance")
      problems.push_back(
          {"--alibi-form", "found '" + *args.alibi_form + "'; distance or key-index is needed"});
    if (!args.alibi) problems.push_back({"--alibi-form", "has no effect without --alibi"});
  }
  if (!args.alibi) return;
  if (args.alibi->empty() || *args.alibi == "auto") {
    if (heads > 0) options.bias = options.bias + Bias::alibi(Bias::alibi_slopes(heads), form);
  } else if (auto slopes = parse_numbers("--alibi", *args.alibi, problems)) {
    options.bias = options.bias + Bias::alibi(std::move(*slopes), form);
  }
}

void read_t5(const AttentionArgs& args, AttentionOptions& options, Problems& problems) {
  if (!args.t5) {
    if (args.t5_max_distance)
      problems.push_back({"--t5-max-distance", "has no effect without --t5"});
    if (args.is_t5_one_sided) problems.push_back({"--t5-one-sided", "has no effect without --t5"});
    return;
  }
  Bias::T5 t5;
  t5.is_bidirectional = !args.is_t5_one_sided;
  bool is_good = true;
  if (args.t5_max_distance) {
    const std::optional<index_t> distance = parse_integer(*args.t5_max_distance);
    is_good = distance.has_value();
    if (is_good)
      t5.max_distance = *distance;
    else
      problems.push_back(
          {"--t5-max-distance", "found '" + *args.t5_max_distance + "'; a whole number is needed"});
  }
  const std::optional<FileTensor> table = load_tensor("--t5", *args.t5, 2, problems);
  if (!table || !is_good) return;
  if (table->shape.size() != 2) {
    problems.push_back({"--t5", *args.t5 + ": has shape " + shape_text(table->shape) +
                                    "; a table [buckets, heads] is needed"});
    return;
  }
  t5.buckets = table->shape[0];
  t5.heads = table->shape[1];
  for (index_t n = 0; n < table->size(); ++n) t5.table.push_back(table->load(n));
  options.bias = options.bias + Bias::t5(std::move(t5));
}

void read_number(const char* flag, const Text& text, double& value, Problems& problems) {
  if (!text) return;
  if (const std::optional<double> number = parse_number(*text))
    value = *number;
  else
    problems.push_back({flag, "found '" + *text + "'; a number is needed"});
}

void read_dropout(const AttentionArgs& args, AttentionOptions& options, Problems& problems) {
  read_number("--dropout", args.dropout, options.dropout.p, problems);
  if (args.dropout && !args.seed)
    problems.push_back(
        {"--seed", "missing; --dropout needs --seed N, which decides what is dropped"});
  if (!args.seed) return;
  if (!args.dropout) problems.push_back({"--seed", "has no effect without --dropout"});
  if (const std::optional<std::uint64_t> seed = parse_seed(*args.seed))
    options.dropout.seed = *seed;
  else
    problems.push_back(
        {"--seed", "found '" + *args.seed + "'; a whole number, 0 or more, is needed"});
}

void read_scores(const AttentionArgs& args, AttentionOptions& options, Problems& problems) {
  if (args.scale) {
    options.scale = 1;
    read_number("--scale", args.scale, *options.scale, problems);
  }
  read_number("--softcap", args.softcap, options.softcap, problems);
  if (args.sinks)
    if (auto sinks = parse_numbers("--sinks", *args.sinks, problems))
      options.sinks = std::move(*sinks);
  if (args.empty_row && *args.empty_row != "zero" && *args.empty_row != "error")
    problems.push_back({"--empty-row", "found '" + *args.empty_row + "'; zero or error is needed"});
  if (args.empty_row == "error") options.empty_row = EmptyRow::error;
  read_dropout(args, options, problems);
}

void replace(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at))
    text.replace(at, from.size(), to), at += to.size();
}

// A problem of `check` in the words of the command: flags instead of options, the type that the
// file has, and of causal masks only where one was asked for.
void say_in_flags(const AttentionArgs& args, const AttentionCall& call, Problem& problem) {
  for (const auto& [where, tensor] :
       {std::pair("q", &call.q), std::pair("k", &call.k), std::pair("v", &call.v)})
    if (problem.where == where)
      replace(problem.what, "dtype " + std::string(name(tensor->dtype)),
              "dtype " + stored_name(*tensor));
  if (problem.where != "query_start") return;
  const std::string flag = args.causal ? "--causal=" : "--query-start ";
  replace(problem.what, "Align::start", flag + "start");
  replace(problem.what, "Align::end", flag + "end");
  replace(problem.what, ". State one of them, or the position of query row 0",
          ". Give one of them, or --query-start N, the position of query row 0");
  if (args.causal || args.prefix) return;
  const std::string of_causal = ", which under a causal mask see ";
  for (std::size_t at = problem.what.find(of_causal); at != std::string::npos;
       at = problem.what.find(of_causal, at))
    problem.what.erase(at, problem.what.find(" keys", at) + 5 - at);
}

}  // namespace

void add_attention_flags(CLI::App& command, AttentionArgs& args) {
  const auto add = [&](const char* flag, Text& value, const char* type, const char* group,
                       const char* description) {
    add_text(command, flag, value, type, description, group);
  };
  add("--q", args.q, "FILE", kInputs,
      "Queries [batch, heads, q_len, d_k]; a file of rank 2 or 3 is taken as batch 1 (and 1 head)");
  add("--k", args.k, "FILE", kInputs, "Keys [batch, kv_heads, kv_len, d_k]");
  add("--v", args.v, "FILE", kInputs, "Values [batch, kv_heads, kv_len, d_v]");
  add("--qkv", args.qkv, "FILE", kInputs, "One .safetensors file with tensors q, k and v, instead");
  add("--mask", args.mask, "FILE", kMasks,
      "Booleans, true = may attend; broadcast to [batch, heads, q_len, kv_len]");
  add_text(command, "--causal", args.causal, "start|end|N",
           "A query sees no later key; the value says where query row 0 stands, needed when q_len "
           "and kv_len differ",
           kMasks, true);
  add("--window", args.window, "L,R", kMasks,
      "A query sees L earlier and R later keys and its own; leave one out for no limit: 128,");
  add("--key-lengths", args.key_lengths, "N,...", kMasks,
      "Keys that count in each batch entry (or one number for all)");
  add("--query-segments", args.query_segments, "FILE", kMasks,
      "Packed documents: each query's document, a file of integers or 0,0,1,...");
  add("--key-segments", args.key_segments, "FILE", kMasks, "The same for each key");
  add("--prefix", args.prefix, "N,...", kMasks,
      "The first N keys are seen by every query, later ones causally");
  add("--query-start", args.query_start, "start|end|N", kMasks,
      "Where query row 0 stands: at key 0 (start), where the last query meets the last key (end), "
      "or at N");
  add("--empty-row", args.empty_row, "zero|error", kMasks,
      "A query that sees no key: zeros (the default), or an error that names the rows");
  add("--scale", args.scale, "S", kScores, "Factor of q.k (default 1/sqrt(d_k))");
  add("--softcap", args.softcap, "C", kScores,
      "Scores become C tanh(score / C), before bias and masks");
  add("--bias", args.bias, "FILE", kScores,
      "Numbers added to the scores, broadcast as a mask; -inf hides the pair");
  add_text(command, "--alibi", args.alibi, "auto|SLOPES",
           "Linear bias: the paper's slopes, or one number per head", kScores, true);
  add("--alibi-form", args.alibi_form, "distance|key-index", kScores,
      "-slope*|p-j| (the default), or slope*j");
  add("--t5", args.t5, "FILE", kScores, "T5's relative bias: a table [buckets, heads]");
  add("--t5-max-distance", args.t5_max_distance, "N", kScores,
      "All greater distances share T5's last bucket (default 128)");
  command
      .add_flag("--t5-one-sided", args.is_t5_one_sided,
                "T5's decoder buckets: every bucket is for keys before the query")
      ->group(kScores);
  add("--sinks", args.sinks, "S,...", kScores,
      "One more score per head, in the softmax's sum but without a value");
  add("--dropout", args.dropout, "P", kScores, "Drop weights with this probability; needs --seed");
  add("--seed", args.seed, "N", kScores, "What is dropped depends on this number alone");
}

std::optional<FileTensor> load_tensor(const std::string& flag, const std::string& path,
                                      std::size_t max_rank, Problems& problems) {
  try {
    FileTensor tensor = read_tensor(path);
    if (tensor.shape.size() <= max_rank) return tensor;
    problems.push_back({flag, path + ": has shape " + shape_text(tensor.shape) + "; rank " +
                                  std::to_string(max_rank) + " or less is needed"});
  } catch (const Error& error) {
    for (const Problem& p : error.problems()) problems.push_back({flag, p.where + ": " + p.what});
  }
  return std::nullopt;
}

bool load_call(const AttentionArgs& args, AttentionCall& call, Problems& problems) {
  const std::size_t before = problems.size();
  const bool has_inputs = load_inputs(args, call, problems);
  read_explicit(args, call, problems);
  read_masks(args, call.options, problems);
  read_alibi(args, has_inputs ? call.q_view().shape[1] : 0, call.options, problems);
  read_t5(args, call.options, problems);
  read_scores(args, call.options, problems);
  if (has_inputs) {
    for (Problem& problem : check(call.q_view(), call.k_view(), call.v_view(), call.options)) {
      say_in_flags(args, call, problem);
      problems.push_back(std::move(problem));
    }
  }
  return problems.size() == before;
}

}  // namespace glasshead::cli
