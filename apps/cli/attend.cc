// glasshead attend: q, k, v from files -> out, lse, weights, gradients.
#include <cstdio>
#include <memory>

#include "cli/attend_outputs.h"
#include "cli/attention_args.h"
#include "cli/command.h"
#include "cli/explain.h"
#include "cli/values.h"
#include "glasshead/attention_weights.h"

namespace glasshead::cli {
namespace {

struct AttendArgs {
  AttentionArgs attention;
  std::string out, lse, row_max, row_sum, weights, top_keys, top_weights, d_out, dq, dk, dv;
  std::optional<std::string> top_k;
  bool has_backward = false, has_explain = false;
};

// Dense, writable, of the rank that the library takes.
template <int Rank>
MutableTensor<Rank> writable(FileTensor& tensor) {
  const ConstTensor<Rank> view = tensor.view<Rank>();
  return {tensor.bytes.data(), tensor.dtype, view.shape, view.strides};
}

// Everything that was asked for. A result has the rank of the file that gave the queries (of k and
// v for their gradients): leading axes of size 1 that the file did not have are left out again.
class Results {
 public:
  explicit Results(const AttendArgs& args) {
    add("-o", "out", args.out);
    add("--lse", "lse", args.lse);
    add("--row-max", "row_max", args.row_max);
    add("--row-sum", "row_sum", args.row_sum);
    add("--weights", "weights", args.weights);
    add("--top-keys", "top_keys", args.top_keys);
    add("--top-weights", "top_weights", args.top_weights);
    add("--dq", "dq", args.dq);
    add("--dk", "dk", args.dk);
    add("--dv", "dv", args.dv);
  }

  std::vector<Output>& outputs() { return outputs_; }

  // Null if it was not asked for.
  FileTensor* find(const std::string& name) {
    for (Output& output : outputs_)
      if (output.name == name) return &output.tensor;
    return nullptr;
  }

  // Type and shape of each; no memory yet. Of each row the `top` largest weights.
  void plan(const AttentionCall& call, index_t top) {
    const ConstTensor<4> q = call.q_view(), k = call.k_view(), v = call.v_view();
    // Weights and row states are kept as they are computed, not rounded to bf16 or f16.
    const DType compute = q.dtype == DType::f64 ? DType::f64 : DType::f32;
    const std::vector<index_t> rows{q.shape[0], q.shape[1], q.shape[2]};
    const auto with = [&](index_t last) {
      std::vector<index_t> shape = rows;
      shape.push_back(last);
      return shape;
    };
    const std::size_t rank = call.q.shape.size();
    set("out", q.dtype, with(v.shape[3]), rank);
    for (const char* name : {"lse", "row_max", "row_sum"})
      set(name, compute, rows, rank > 0 ? rank - 1 : 0);
    set("weights", compute, with(k.shape[2]), rank);
    set("top_keys", DType::i64, with(top), rank);
    set("top_weights", compute, with(top), rank);
    set("dq", q.dtype, call.q.shape, rank);
    set("dk", q.dtype, call.k.shape, call.k.shape.size());
    set("dv", q.dtype, call.v.shape, call.v.shape.size());
  }

  void allocate() {
    for (Output& output : outputs_)
      output.tensor = make_tensor(output.tensor.dtype, std::move(output.tensor.shape));
  }

 private:
  void add(const char* flag, const char* name, const std::string& path) {
    if (!path.empty()) outputs_.push_back({flag, name, path, {}});
  }
  void set(const char* name, DType dtype, std::vector<index_t> shape, std::size_t rank) {
    FileTensor* tensor = find(name);
    if (tensor == nullptr) return;
    while (shape.size() > rank && shape.front() == 1) shape.erase(shape.begin());
    *tensor = {dtype, std::move(shape), {}};
  }

  std::vector<Output> outputs_;
};

// `out` is null where only row states are wanted: they don't depend on v, so no column of it is
// read.
void run_forward(const AttentionCall& call, Results& results, FileTensor* out) {
  RowState rows;
  if (FileTensor* lse = results.find("lse")) rows.lse = writable<3>(*lse);
  if (FileTensor* max = results.find("row_max")) rows.max = writable<3>(*max);
  if (FileTensor* sum = results.find("row_sum")) rows.sum = writable<3>(*sum);
  const ConstTensor<4> q = call.q_view();
  ConstTensor<4> v = call.v_view();
  if (out == nullptr) v.shape[3] = 0;
  const MutableTensor<4> no_columns(nullptr, q.dtype, {q.shape[0], q.shape[1], q.shape[2], 0},
                                    {0, 0, 0, 0});
  attend(q, call.k_view(), v, out != nullptr ? writable<4>(*out) : no_columns, call.options, rows);
}

void run_weights(const AttentionCall& call, FileTensor& weights) {
  const ConstTensor<4> q = call.q_view();
  attention_weights(call.q_view(), call.k_view(), call.options, {0, q.shape[1], 0, q.shape[2]},
                    writable<4>(weights));
}

// Keys and weights come together: the one that was not asked for goes nowhere.
void run_top(const AttentionCall& call, index_t top, Results& results) {
  FileTensor* keys = results.find("top_keys");
  FileTensor* weights = results.find("top_weights");
  if (keys == nullptr && weights == nullptr) return;
  const ConstTensor<4> q = call.q_view();
  const std::vector<index_t> shape{q.shape[0], q.shape[1], q.shape[2], top};
  FileTensor unused = keys == nullptr      ? make_tensor(DType::i64, shape)
                      : weights == nullptr ? make_tensor(DType::f64, shape)
                                           : FileTensor{};
  top_weights(q, call.k_view(), {}, call.options, {0, q.shape[1], 0, q.shape[2]},
              writable<4>(keys != nullptr ? *keys : unused),
              writable<4>(weights != nullptr ? *weights : unused));
}

void run_backward(const AttentionCall& call, const FileTensor& d_out, Results& results) {
  FileTensor dq = make_tensor(call.q.dtype, call.q.shape);
  FileTensor dk = make_tensor(call.q.dtype, call.k.shape);
  FileTensor dv = make_tensor(call.q.dtype, call.v.shape);
  const auto target = [&](const char* name, FileTensor& unused) {
    FileTensor* wanted = results.find(name);
    return writable<4>(wanted != nullptr ? *wanted : unused);
  };
  attend_backward(d_out.view<4>("--d-out"), call.q_view(), call.k_view(), call.v_view(),
                  {target("dq", dq), target("dk", dk), target("dv", dv)}, call.options);
}

// The number of --top-k, 0 without; it and its files need each other.
index_t read_top(const AttendArgs& args, std::vector<Problem>& problems) {
  const bool has_file = !args.top_keys.empty() || !args.top_weights.empty();
  if (!args.top_k) {
    if (has_file)
      problems.push_back({"--top-k", "missing; --top-keys and --top-weights go with --top-k N"});
    return 0;
  }
  if (!has_file)
    problems.push_back({"--top-k", "no file for it; give --top-keys or --top-weights FILE"});
  const std::optional<index_t> top = parse_integer(*args.top_k);
  if (!top || *top < 1) {
    problems.push_back({"--top-k", *args.top_k + ": must be a whole number, at least 1"});
    return 0;
  }
  return *top;
}

std::vector<index_t> out_shape(const AttentionCall& call) {
  const ConstTensor<4> q = call.q_view();
  return {q.shape[0], q.shape[1], q.shape[2], call.v_view().shape[3]};
}

// Gradients are asked for by --backward, need --d-out, and have at least one file.
void check_backward(const AttendArgs& args, std::vector<Problem>& problems) {
  const bool has_file = !args.dq.empty() || !args.dk.empty() || !args.dv.empty();
  if (args.has_backward) {
    if (args.d_out.empty())
      problems.push_back(
          {"--d-out", "missing; --backward needs the gradient of out, --d-out FILE"});
    if (!has_file)
      problems.push_back({"--backward", "no file for a gradient; give --dq, --dk or --dv FILE"});
    return;
  }
  if (has_file || !args.d_out.empty())
    problems.push_back({"--backward", "missing; --d-out, --dq, --dk and --dv go with --backward"});
}

void check_d_out(const FileTensor& d_out, const AttentionCall& call,
                 std::vector<Problem>& problems) {
  const ConstTensor<4> view = d_out.view<4>("--d-out");
  const std::vector<index_t> found(view.shape.begin(), view.shape.end());
  const std::vector<index_t> wanted = out_shape(call);
  if (found != wanted)
    problems.push_back({"--d-out", "has shape " + shape_text(found) + "; it must have out's, " +
                                       shape_text(wanted)});
}

[[noreturn]] void refuse(std::vector<Problem> problems) {
  throw OptionError("attend", std::move(problems));
}

// Without overflow: sizes of results are products of the inputs' that no file has to hold.
double count(const std::vector<index_t>& shape) {
  double elements = 1;
  for (const index_t extent : shape) elements *= static_cast<double>(extent);
  return elements;
}

// A printed result must be small, a written one fit a file; bf16 can't be written as .npy.
void check_results(const AttentionCall& call, const std::vector<Output>& outputs,
                   std::vector<Problem>& problems) {
  for (const Output& output : outputs) {
    const FileTensor& tensor = output.tensor;
    const std::string what = output.path + ": " + output.name;
    if (output.path.ends_with(".npy") && tensor.dtype == DType::bf16)
      problems.push_back(
          {output.flag, what + " is bf16, which has no .npy type; write .safetensors"});
    if (count(tensor.shape) * static_cast<double>(size_of(tensor.dtype)) >
        static_cast<double>(kLargestFile))
      problems.push_back({output.flag, what + " " + shape_text(tensor.shape) + " of " +
                                           name(tensor.dtype) +
                                           " is larger than 64 GiB, the most "
                                           "that is written; compute it for fewer rows or heads"});
  }
  const std::vector<index_t> shape = out_shape(call);
  if (outputs.empty() && count(shape) > static_cast<double>(kMostPrinted))
    problems.push_back({"-o", "missing; out has " + number_text(count(shape), DType::f64) +
                                  " numbers, and at most " + std::to_string(kMostPrinted) +
                                  " are printed; give -o FILE"});
}

void run(const AttendArgs& args) {
  std::vector<Problem> problems;
  Results results(args);
  check_paths(results.outputs(), problems);
  check_backward(args, problems);
  const index_t top = read_top(args, problems);
  AttentionCall call;
  const bool is_loaded = load_call(args.attention, call, problems);
  std::optional<FileTensor> d_out;
  if (!args.d_out.empty()) d_out = load_tensor("--d-out", args.d_out, 4, problems);
  if (!is_loaded) refuse(std::move(problems));
  if (d_out) check_d_out(*d_out, call, problems);
  results.plan(call, top);
  check_results(call, results.outputs(), problems);
  if (!problems.empty()) refuse(std::move(problems));
  results.allocate();

  const bool is_printed = results.outputs().empty();
  FileTensor printed;
  FileTensor* out = results.find("out");
  if (is_printed) {
    std::vector<index_t> shape = out_shape(call);
    while (shape.size() > call.q.shape.size() && shape.front() == 1) shape.erase(shape.begin());
    printed = make_tensor(call.q.dtype, std::move(shape));
    out = &printed;
  }
  if (args.has_explain) std::fputs(explain(call).c_str(), stderr);
  if (out != nullptr || results.find("lse") != nullptr || results.find("row_max") != nullptr ||
      results.find("row_sum") != nullptr)
    run_forward(call, results, out);
  if (FileTensor* weights = results.find("weights")) run_weights(call, *weights);
  run_top(call, top, results);
  if (args.has_backward) run_backward(call, *d_out, results);
  if (is_printed) write_result("", rows_text("out", printed));
  write_outputs(std::move(results.outputs()));
}

void add(CLI::App& command, int&) {
  auto args = std::make_shared<AttendArgs>();
  add_attention_flags(command, args->attention);
  const char* outputs = "Outputs (.npy or .safetensors; several may share a .safetensors file)";
  const CLI::Validator named(
      [](const std::string& path) {
        return path.empty() ? std::string("is empty; a file's name is needed") : std::string();
      },
      "");
  const auto file = [&](const char* flag, std::string& path, const char* description) {
    command.add_option(flag, path, description)->type_name("FILE")->check(named)->group(outputs);
  };
  file("-o,--out", args->out,
       "Write out [batch, heads, q_len, d_v], in q's type; with no output file out is printed");
  file("--lse", args->lse,
       "Write the natural log of each row's sum of exp(score) [batch, heads, q_len]");
  file("--row-max", args->row_max, "Write each row's largest score");
  file("--row-sum", args->row_sum, "Write each row's sum of exp(score - max)");
  file("--weights", args->weights,
       "Write softmax's weights, before dropout [batch, heads, q_len, kv_len]");
  command
      .add_option("--top-k", args->top_k,
                  "Of each row the N largest weights: with --top-keys, --top-weights")
      ->type_name("N")
      ->group(outputs);
  file("--top-keys", args->top_keys,
       "Write the keys of the N largest, largest first [batch, heads, q_len, N]; -1 where a row "
       "has fewer");
  file("--top-weights", args->top_weights,
       "Write the N largest themselves; 0 where a row has fewer");
  const char* gradients = "Gradients";
  command.add_flag("--backward", args->has_backward, "Compute gradients from --d-out")
      ->group(gradients);
  const auto gradient = [&](const char* flag, std::string& path, const char* description) {
    command.add_option(flag, path, description)->type_name("FILE")->check(named)->group(gradients);
  };
  gradient("--d-out", args->d_out, "Read the gradient of a loss with respect to out");
  gradient("--dq", args->dq, "Write the gradient with respect to q, in q's type and shape");
  gradient("--dk", args->dk, "Write the gradient with respect to k");
  gradient("--dv", args->dv, "Write the gradient with respect to v");
  command.add_flag("--explain", args->has_explain,
                   "Say on stderr which kernels run and why, how the work is cut, the shapes, the "
                   "masks, and how many pairs are allowed");
  command.callback([args] { run(*args); });
}

}  // namespace

const Command kAttend{
    "attend", "Compute attention over files: q, k and v give out, lse, weights, gradients",
    "# the rows of out, printed\n"
    "glasshead attend --q q.npy --k k.npy --v v.npy\n"
    "# one file with q, k and v; causal; out, lse and weights into one file\n"
    "glasshead attend --qkv qkv.safetensors --causal -o r.safetensors --lse r.safetensors "
    "--weights r.safetensors\n"
    "# which 8 keys each row looks at most, and their weights\n"
    "glasshead attend --qkv qkv.safetensors --causal --top-k 8 --top-keys keys.npy --top-weights "
    "w.npy\n"
    "# decoding: the one new query stands at the last of the cached keys\n"
    "glasshead attend --q q.npy --k cache.safetensors:k --v cache.safetensors:v --causal=end "
    "--window 127,0 -o out.npy\n"
    "# a padded batch of two with 5 and 3 keys; says what is computed and why\n"
    "glasshead attend --q q.npy --k k.npy --v v.npy --key-lengths 5,3 --explain -o out.npy\n"
    "# gradients of q, k and v from that of out\n"
    "glasshead attend --qkv qkv.safetensors --backward --d-out d.npy --dq dq.npy --dk dk.npy --dv "
    "dv.npy\n",
    add};

}  // namespace glasshead::cli
