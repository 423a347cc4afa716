// glasshead doctor: q, k, v and somebody's output -> right, or which mistake it is.
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

#include "cli/attention_args.h"
#include "cli/claims.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/doctor_port.h"
#include "cli/temporary_folder.h"
#include "cli/trace_files.h"
#include "cli/values.h"
#include "doctor/case_subject.h"
#include "glasshead/diagnose.h"
#include "wire/decimal.h"

namespace glasshead::cli {
namespace {

constexpr const char* kWholeModels = "Whole models";

struct DoctorArgs {
  AttentionArgs attention;
  ClaimArgs claims;
  std::string case_name, dtype, probe;
  Text decimals, rope_base, rope_size;
  std::string rope_pairing;
  bool is_json = false, has_no_pairs = false;
  ProbeShape shape;
  bool has_d_v = false, has_kv_heads = false, has_kv_len = false;
  PortArgs port;
  Text tokens, prompt;
};

// The type that another's word for it means; "" if none. "torch.float16" is f16.
std::string dtype_meant(const std::string& text) {
  std::string word = text.substr(text.rfind('.') + 1);
  for (char& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  constexpr std::pair<std::string_view, const char*> kOthers[] = {
      {"half", "f16"},    {"float16", "f16"}, {"fp16", "f16"},     {"single", "f32"},
      {"float", "f32"},   {"float32", "f32"}, {"fp32", "f32"},     {"double", "f64"},
      {"float64", "f64"}, {"fp64", "f64"},    {"bfloat16", "bf16"}};
  for (const auto& [theirs, ours] : kOthers)
    if (word == theirs) return ours;
  return nearest(word, {"f64", "f32", "bf16", "f16"});
}

std::optional<DType> read_dtype(const std::string& text, std::vector<Problem>& problems) {
  if (text.empty()) return std::nullopt;
  const std::optional<DType> type = dtype_named(text);
  if (type && *type != DType::u8 && *type != DType::i64) return type;
  const std::string meant = dtype_meant(text);
  problems.push_back({"--dtype", "found '" + text + "'; f64, f32, bf16 or f16 is needed" +
                                     (meant.empty() ? "" : "; did you mean " + meant + "?")});
  return std::nullopt;
}

// As a shell takes it for one word.
std::string shell_word(const std::string& text) {
  const bool is_plain = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("-_./,:+=@%").find(c) != std::string_view::npos;
  });
  if (is_plain) return text;
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

// " --causal=end --rope halves": the masks, scores and positions that were asked for, as given.
std::string call_flags(const CLI::App& command) {
  std::string text;
  for (const CLI::Option* option : command.get_options()) {
    const std::string flag = option->get_name(), group = option->get_group();
    const bool is_of_call =
        group.starts_with("Masks") || group == "Scores" || flag.starts_with("--rope");
    if (!is_of_call || option->count() == 0 || flag == "--seed") continue;
    text += " " + flag;
    if (option->get_items_expected_max() == 0) continue;
    const std::string value = option->results().empty() ? "" : option->results().front();
    if (value.empty()) continue;
    const bool is_joined = option->get_items_expected_min() == 0 || value.starts_with('-');
    text += (is_joined ? "=" : " ") + shell_word(value);
  }
  return text;
}

std::optional<Rotary> read_rotary(const DoctorArgs& args, std::vector<Problem>& problems) {
  if (args.rope_pairing.empty()) {
    if (args.rope_base || args.rope_size)
      problems.push_back({"--rope",
                          "missing; --rope-base and --rope-size go with --rope "
                          "halves|adjacent"});
    return std::nullopt;
  }
  Rotary rotary;
  rotary.is_adjacent = args.rope_pairing == "adjacent";
  if (args.rope_base) {
    const std::optional<double> base = parse_number(*args.rope_base);
    if (base && *base > 0)
      rotary.base = *base;
    else
      problems.push_back(
          {"--rope-base", "found '" + *args.rope_base + "'; a number above 0 is needed"});
  }
  if (args.rope_size) {
    const std::optional<index_t> size = parse_integer(*args.rope_size);
    if (size && *size > 0)
      rotary.size = *size;
    else
      problems.push_back(
          {"--rope-size", "found '" + *args.rope_size + "'; a whole number is needed"});
  }
  return rotary;
}

std::optional<int> read_decimals(const Text& text, std::vector<Problem>& problems) {
  if (!text) return std::nullopt;
  const std::optional<index_t> decimals = parse_integer(*text);
  if (decimals && *decimals >= 0 && *decimals <= 17) return static_cast<int>(*decimals);
  problems.push_back({"--decimals", "found '" + *text + "'; a whole number, 0 to 17, is needed"});
  return std::nullopt;
}

[[noreturn]] void refuse(std::vector<Problem> problems) {
  throw OptionError("doctor", std::move(problems));
}

DiagnoseOptions read_options(const DoctorArgs& args, const LoadedClaims& claims,
                             std::vector<Problem>& problems) {
  DiagnoseOptions options;
  options.arithmetic = read_dtype(args.dtype, problems);
  options.decimals = read_decimals(args.decimals, problems);
  if (!args.decimals) options.decimals = claims.decimals;
  options.tries_pairs = !args.has_no_pairs;
  return options;
}

// What the library refuses, in the words of the command.
[[noreturn]] void refuse_in_flags(std::vector<Problem> problems) {
  for (Problem& problem : problems) {
    problem.where = problem.where == "rotary" ? "--rope" : "--" + problem.where;
    std::replace(problem.where.begin(), problem.where.end(), '_', '-');
  }
  refuse(std::move(problems));
}

Diagnosis diagnosed(const AttentionCase& attention, const LoadedClaims& loaded,
                    const DiagnoseOptions& options) {
  std::vector<Problem> misfits;
  doctor::FittedClaims fitted = doctor::fit_claims(loaded.given(), attention, misfits);
  if (!misfits.empty()) refuse_in_flags(std::move(misfits));
  try {
    Diagnosis diagnosis = diagnose(attention, fitted.claims, options);
    diagnosis.read = std::move(fitted.read);
    return diagnosis;
  } catch (const OptionError& error) {
    refuse_in_flags(error.problems());
  }
}

int report(const Diagnosis& diagnosis, bool is_json) {
  write_result("", is_json ? diagnosis_json(diagnosis) + "\n" : diagnosis_text(diagnosis));
  return diagnosis.is_right() ? 0 : 1;
}

int run_case(const DoctorArgs& args) {
  std::vector<Problem> problems;
  LoadedClaims claims;
  load_claims(args.claims, claims, problems);
  DiagnoseOptions options = read_options(args, claims, problems);
  const wire::Case c = load_case(args.case_name, "doctor");
  const std::optional<doctor::CaseSubject> subject = doctor::case_subject(c, problems);
  if (!problems.empty() || !subject) refuse(std::move(problems));
  options.query_labels = subject->query_labels;
  return report(diagnosed(subject->attention(), claims, options), args.is_json);
}

int run_files(const CLI::App& command, const DoctorArgs& args) {
  std::vector<Problem> problems;
  LoadedClaims claims;
  load_claims(args.claims, claims, problems);
  DiagnoseOptions options = read_options(args, claims, problems);
  const std::optional<Rotary> rotary = read_rotary(args, problems);
  AttentionCall call;
  load_call(args.attention, call, problems);
  if (!problems.empty()) refuse(std::move(problems));
  const AttentionCase attention{call.q_view(), call.k_view(), call.v_view(),
                                call.options,  rotary,        {}};
  options.probe_command =
      probe_command({attention.q, attention.k, attention.v}) + call_flags(command);
  return report(diagnosed(attention, claims, options), args.is_json);
}

template <class T>
void write_npy_file(const std::filesystem::path& path, const Tensor<T, 4>& tensor) {
  FileTensor file = make_tensor(dtype_of<T>(), {tensor.shape().begin(), tensor.shape().end()});
  std::memcpy(file.bytes.data(), tensor.data(), file.bytes.size());
  write_for("doctor", "--probe", [&] { write_npy(path.string(), file); });
}

// `flags`: the options that the probe was made with.
std::string probe_text(const Probe& probe, const std::string& folder, const std::string& flags) {
  std::string text = "wrote q.npy, k.npy, v.npy";
  if (probe.mask.size() > 0) text += ", mask.npy (the pairs that may attend)";
  text += " to " + folder + "\n";
  for (const std::vector<std::string>& group : probe.alike) {
    text += group.front() == "right" ? "can't be seen in this shape: " : "alike in this shape: ";
    const std::size_t first = group.front() == "right" ? 1 : 0;
    for (std::size_t n = first; n < group.size(); ++n) text += (n > first ? ", " : "") + group[n];
    text += "\n";
  }
  text += "all others are at least " + wire::significant(probe.least_distance, 2) +
          " tolerances apart\n";
  text += "run your code on them, then: glasshead doctor";
  for (const char* name : {"q", "k", "v"})
    text += std::string(" --") + name + " " + shell_word(folder + "/" + name + ".npy");
  return text + flags + " --out theirs.npy\n";
}

void write_probe(const std::filesystem::path& folder, const Probe& probe) {
  write_npy_file(folder / "q.npy", probe.q);
  write_npy_file(folder / "k.npy", probe.k);
  write_npy_file(folder / "v.npy", probe.v);
  if (probe.mask.size() > 0) write_npy_file(folder / "mask.npy", probe.mask);
}

// The options, read against files of the probe's shapes that last as long as the reading.
void load_call_of_shape(DoctorArgs& args, AttentionCall& call, std::vector<Problem>& problems) {
  const ProbeShape& shape = args.shape;
  const TemporaryFolder folder("doctor");
  Probe empty;
  empty.q = Tensor<float, 4>({shape.batch, shape.heads, shape.q_len, shape.d_k});
  empty.k = Tensor<float, 4>({shape.batch, shape.kv_heads, shape.kv_len, shape.d_k});
  empty.v = Tensor<float, 4>({shape.batch, shape.kv_heads, shape.kv_len, shape.d_v});
  write_probe(folder.path(), empty);
  args.attention.q = folder.file("q.npy");
  args.attention.k = folder.file("k.npy");
  args.attention.v = folder.file("v.npy");
  load_call(args.attention, call, problems);
}

int run_probe(const CLI::App& command, DoctorArgs& args) {
  ProbeShape& shape = args.shape;
  if (!args.has_kv_heads) shape.kv_heads = shape.heads;
  if (!args.has_d_v) shape.d_v = shape.d_k;
  std::vector<Problem> problems;
  std::uint64_t seed = 1;
  if (args.attention.seed) {
    const std::optional<std::uint64_t> given = parse_seed(*args.attention.seed);
    if (given)
      seed = *given;
    else
      problems.push_back(
          {"--seed", "found '" + *args.attention.seed + "'; a whole number is needed"});
    args.attention.seed.reset();  // here it is the probe's
  }
  for (const auto& [flag, text] :
       {std::pair("--q", &args.attention.q), std::pair("--k", &args.attention.k),
        std::pair("--v", &args.attention.v), std::pair("--qkv", &args.attention.qkv)})
    if (*text) problems.push_back({flag, "given beside --probe, which makes q, k and v"});
  const std::optional<Rotary> rotary = read_rotary(args, problems);
  constexpr index_t kMost = index_t{1} << 20;  // of one axis
  for (const auto& [flag, n] :
       {std::pair("--batch", shape.batch), std::pair("--heads", shape.heads),
        std::pair("--kv-heads", shape.kv_heads), std::pair("--q-len", shape.q_len),
        std::pair("--kv-len", shape.kv_len), std::pair("--d-k", shape.d_k),
        std::pair("--d-v", shape.d_v)})
    if (n < 1 || n > kMost)
      problems.push_back(
          {flag, std::to_string(n) + "; 1 to " + std::to_string(kMost) + " is needed"});
  if (!problems.empty()) refuse(std::move(problems));
  AttentionCall call;
  load_call_of_shape(args, call, problems);
  if (!problems.empty()) refuse(std::move(problems));
  const Probe probe = make_probe(shape, call.options, seed, rotary);
  // Nothing is written before all is known: a run that is stopped leaves no files.
  std::error_code error;
  std::filesystem::create_directories(args.probe, error);
  write_probe(args.probe, probe);
  write_result("", probe_text(probe, args.probe, call_flags(command)));
  return 0;
}

// Flags that would be passed over: those that `what` leaves no use for.
template <class IsIdle>
void refuse_beside(const CLI::App& command, const std::string& what, const IsIdle& is_idle) {
  std::vector<Problem> problems;
  for (const CLI::Option* option : command.get_options())
    if (option->count() > 0 && is_idle(option->get_name(), option->get_group()))
      problems.push_back({option->get_name(), what});
  if (!problems.empty()) refuse(std::move(problems));
}

void refuse_idle_flags(const CLI::App& command, const DoctorArgs& args) {
  using Name = const std::string&;
  if (args.port.activations.empty())
    refuse_beside(command, "goes with --activations, which is missing", [](Name name, Name group) {
      return group == kWholeModels && name != "--activations";
    });
  if (!args.port.activations.empty()) {
    refuse_beside(command, "given beside --activations, where the model says it",
                  [](Name name, Name group) {
                    return group != kWholeModels && name != "CASE" && name != "--dtype" &&
                           name != "--json" && name != "--help";
                  });
  } else if (!args.probe.empty()) {
    refuse_beside(command, "given beside --probe, which judges nothing", [](Name name, Name group) {
      return group.starts_with("Their numbers") || name == "CASE" || name == "--decimals" ||
             name == "--dtype" || name == "--no-pairs" || name == "--json";
    });
  } else if (!args.case_name.empty()) {
    refuse_beside(command, "given beside a case, which has its own", [](Name name, Name group) {
      return group == "Inputs" || group.starts_with("Masks") || group == "Scores" ||
             group == "Probes" || name.starts_with("--rope");
    });
  } else {
    refuse_beside(command, "is of a probe; --probe DIR is missing",
                  [](Name, Name group) { return group == "Probes"; });
  }
}

int run_activations(DoctorArgs& args) {
  std::vector<Problem> problems;
  args.port.arithmetic = read_dtype(args.dtype, problems);
  if (args.case_name.empty())
    problems.push_back({"MODEL",
                        "missing; the model whose activations these are: glasshead doctor "
                        "MODEL --activations FILE"});
  if (!problems.empty()) refuse(std::move(problems));
  args.port.model = args.case_name;
  args.port.tokens = args.tokens;
  args.port.prompt = args.prompt;
  args.port.is_json = args.is_json;
  return run_port(args.port);
}

int run(const CLI::App& command, DoctorArgs& args) {
  refuse_idle_flags(command, args);
  if (!args.port.activations.empty()) return run_activations(args);
  if (!args.probe.empty()) return run_probe(command, args);
  if (args.case_name.empty()) return run_files(command, args);
  return run_case(args);
}

void add_probe_flags(CLI::App& command, DoctorArgs& args) {
  const char* group = "Probes";
  command
      .add_option("--probe", args.probe,
                  "Write q, k, v (and mask) to this folder, on which the mistakes are told apart")
      ->type_name("DIR")
      ->group(group);
  const auto size = [&](const char* flag, index_t& value, bool* is_given, const char* description) {
    command.add_option(flag, value, description)
        ->type_name("N")
        ->group(group)
        ->each([is_given](const std::string&) {
          if (is_given != nullptr) *is_given = true;
        });
  };
  size("--batch", args.shape.batch, nullptr, "Of the probe (default 1)");
  size("--heads", args.shape.heads, nullptr, "Query heads (default 1)");
  size("--kv-heads", args.shape.kv_heads, &args.has_kv_heads, "Key/value heads (default: heads)");
  size("--q-len", args.shape.q_len, nullptr, "Queries (default 12)");
  size("--kv-len", args.shape.kv_len, nullptr, "Keys (default 20)");
  size("--d-k", args.shape.d_k, nullptr, "Size of queries and keys (default 8)");
  size("--d-v", args.shape.d_v, &args.has_d_v, "Size of values (default: d-k)");
}

void add_port_flags(CLI::App& command, DoctorArgs& args) {
  command
      .add_option("--activations", args.port.activations,
                  "Intermediate numbers of another program that runs this model: a .safetensors "
                  "file, names as `glasshead run MODEL --tap` has them")
      ->type_name("FILE")
      ->group(kWholeModels);
  command
      .add_option("--names", args.port.names,
                  "What they are called there: JSON, {\"decoder.{}.self.q\": \"h.{}.query\"}")
      ->type_name("FILE")
      ->group(kWholeModels);
  const auto text = [&](const char* flag, Text& to, const char* type, const char* description) {
    command
        .add_option_function<std::string>(
            flag, [&to](const std::string& given) { to = given; }, description)
        ->type_name(type)
        ->group(kWholeModels);
  };
  text("--tokens", args.tokens, "IDS", "The ids that were read (default: the file's `ids`)");
  text("--prompt", args.prompt, "TEXT", "The text that was read");
}

void add(CLI::App& command, int& exit_code) {
  auto args = std::make_shared<DoctorArgs>();
  command.add_option("CASE", args->case_name,
                     "A worked example by name or file, instead of --q, --k, --v; with "
                     "--activations a model");
  add_claim_flags(command, args->claims);
  add_attention_flags(command, args->attention);
  const auto text = [&](const char* flag, Text& to, const char* type, const char* description) {
    command
        .add_option_function<std::string>(
            flag, [&to](const std::string& given) { to = given; }, description)
        ->type_name(type);
  };
  text("--decimals", args->decimals, "P",
       "Their numbers are rounded to so many places (text: as many as it has)");
  command
      .add_option("--dtype", args->dtype,
                  "The type that their program computes in, where files hold a wider one")
      ->type_name("f64|f32|bf16|f16");
  command
      .add_option("--rope", args->rope_pairing,
                  "Their program turns q and k by rotary positions itself: pairs (i, i+n/2), or "
                  "(2i, 2i+1)")
      ->type_name("halves|adjacent")
      ->check(one_of({"halves", "adjacent"}));
  text("--rope-base", args->rope_base, "B", "Base of the rotary angles (default 10000)");
  text("--rope-size", args->rope_size, "N", "How many coordinates turn (default: all)");
  command.add_flag("--no-pairs", args->has_no_pairs, "Look for single mistakes only");
  command.add_flag("--json", args->is_json, "Write the diagnosis as JSON");
  add_probe_flags(command, *args);
  add_port_flags(command, *args);
  command.callback([args, &command, &exit_code] { exit_code = run(command, *args); });
}

}  // namespace

const Command kDoctor{
    "doctor", "Find out whether somebody's attention is right and, if not, which mistake it is",
    "# their output against q, k, v and the options they believe in\n"
    "glasshead doctor --q q.npy --k k.npy --v v.npy --causal --out theirs.npy\n"
    "# numbers of a worked example, as text\n"
    "glasshead doctor three-tokens-causal --weights \"1 0 0; .5 .5 0; .25 .25 .5\"\n"
    "# inputs that tell every mistake from every other in this shape\n"
    "glasshead doctor --probe probe --heads 8 --kv-heads 2 --q-len 70 --kv-len 130 --d-k 64 "
    "--causal=end\n"
    "# a whole model: where another program's numbers part from the right ones, and why\n"
    "glasshead doctor stories260K --activations theirs.safetensors --tokens 1,403,407,261\n",
    add};

}  // namespace glasshead::cli
