#include "conformance/seeds.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "glasshead/error.h"
#include "glasshead/trace.h"
#include "nn/network.h"

namespace glasshead::conformance {
namespace {

using nlohmann::json;
using Inputs = std::vector<std::pair<std::string, TraceTensor>>;

// golden/README.md: a plain f64 run in NumPy is off by up to 7 ulp, so a f64 path gets 8.
constexpr double kUlps = 8;

// Quantities of a seed and the taps they are called here.
struct Named {
  const char* quantity;
  const char* tap;
};
constexpr Named kProjected[] = {{"Q", "q"}, {"K", "k"}, {"V", "v"}};
constexpr Named kShifted[] = {
    {"scores_raw", "scores"}, {"scores_scaled", "scaled"}, {"scores_masked", "masked"},
    {"row_max", "row_max"},   {"exp_shifted", "exp"},      {"exp_shifted_sum", "row_sum"},
    {"log_sum_exp", "lse"},   {"weights", "weights"},      {"output", "out"}};
constexpr Named kUnshifted[] = {{"exp_unshifted", "exp"}, {"exp_unshifted_sum", "row_sum"}};
constexpr Named kNextToken[] = {{"logits", "logits"}, {"probabilities", "probabilities"}};

TraceTensor tensor_of(const json& value) {
  Array array = array_of(value);
  return {std::move(array.shape), std::move(array.values)};
}

TraceTensor value_of(const json& values, const char* quantity) {
  return tensor_of(values.at(quantity).at("value"));
}

TraceTensor identity(index_t n) {
  TraceTensor eye{{n, n}, std::vector<double>(static_cast<std::size_t>(n * n), 0)};
  for (index_t i = 0; i < n; ++i) eye.values[static_cast<std::size_t>(i * (n + 1))] = 1;
  return eye;
}

FileTensor file_tensor(const TraceTensor& tensor) {
  FileTensor result = zeros(DType::f64, tensor.shape);
  for (index_t n = 0; n < result.size(); ++n) {
    store_element(result.bytes.data(), DType::f64, n, tensor.values[static_cast<std::size_t>(n)]);
  }
  return result;
}

// The same numbers without leading axes of size 1 beyond `rank`: the examples are plain matrices.
Array with_rank(const TraceTensor& tensor, std::size_t rank) {
  Array array{tensor.shape, tensor.values};
  while (array.shape.size() > rank && array.shape.front() == 1) {
    array.shape.erase(array.shape.begin());
  }
  return array;
}

std::optional<Failure> compare_value(const char* quantity, const TraceTensor& got,
                                     const json& value) {
  const Array expected = array_of(value);
  return compare(quantity, with_rank(got, expected.shape.size()), expected,
                 ulps(kUlps, DType::f64, expected));
}

// Every quantity of the table that the example has.
template <std::size_t N>
void compare_taps(const json& values, const Named (&table)[N], const Trace& trace,
                  const std::string& run, CaseResult& verdict) {
  for (const auto& [quantity, tap] : table) {
    if (!values.contains(quantity)) continue;
    const TraceTensor* got = trace.find(tap);
    const Failure missing = in_words(quantity, std::string("there is no tap ") + tap);
    verdict.add(got != nullptr ? compare_value(quantity, *got, values.at(quantity).at("value"))
                               : std::optional<Failure>(missing),
                run);
  }
}

// Options of an example: its scale where that isn't 1/sqrt(d_k), its mask where it has one.
AttentionOptions options_of(const json& values, index_t d_k) {
  AttentionOptions options;
  options.empty_row = EmptyRow::error;
  const double scale = number_of(values.at("scale").at("value"));
  if (std::fabs(scale - 1 / std::sqrt(static_cast<double>(d_k))) > ulp(scale, DType::f64)) {
    options.scale = scale;
  }
  if (!values.contains("mask_additive")) return options;
  const TraceTensor additive = value_of(values, "mask_additive");
  auto allowed = std::make_shared<FileTensor>(zeros(DType::u8, additive.shape));
  for (index_t n = 0; n < allowed->size(); ++n) {
    store_element(allowed->bytes.data(), DType::u8, n,
                  additive.values[static_cast<std::size_t>(n)] == 0 ? 1 : 0);
  }
  options.mask = Mask::allowed(Broadcast(allowed->view<4>("mask"), allowed));
  return options;
}

// Runs the list twice: as it is, and with the largest score left in the exponents.
void compare_both(std::vector<Step> list, const Inputs& inputs, const json& values,
                  const std::string& run, CaseResult& verdict) {
  const Trace trace = run_steps(list, inputs);
  compare_taps(values, kProjected, trace, run, verdict);
  compare_taps(values, kShifted, trace, run, verdict);
  const auto step_of = [&list](const char* tap) {
    return std::find_if(list.begin(), list.end(), [tap](const Step& s) { return s.tap == tap; });
  };
  if (values.contains("scale") && step_of("scaled") != list.end()) {
    const double scale = number(*step_of("scaled"), "scale", 0);
    const TraceTensor got{{}, {scale}};
    verdict.add(compare_value("scale", got, values.at("scale").at("value")), run);
    if (values.contains("sqrt_dk")) {
      verdict.add(compare_value("sqrt_dk", {{}, {1 / scale}}, values.at("sqrt_dk").at("value")),
                  run);
    }
  }
  if (!values.contains("exp_unshifted") || step_of("exp") == list.end()) return;  // told above
  set_number(*step_of("exp"), "shift", 0);
  compare_taps(values, kUnshifted, run_steps(list, inputs), run, verdict);
}

// An engine and attention_weights on Q, K, V in f64: no steps in between.
void compare_attend(const TraceTensor& q, const TraceTensor& k, const TraceTensor& v,
                    const AttentionOptions& options, const json& values, const Engine& engine,
                    CaseResult& verdict) {
  const FileTensor q_file = file_tensor(q);
  const FileTensor k_file = file_tensor(k);
  const FileTensor v_file = file_tensor(v);
  const index_t rows = q.shape[0];
  FileTensor out = zeros(DType::f64, {1, 1, rows, v.shape[1]});
  FileTensor lse = zeros(DType::f64, {1, 1, rows});
  FileTensor weights = zeros(DType::f64, {1, 1, rows, k.shape[0]});
  RowState state;
  state.lse = writable<3>(lse);
  engine.attend(q_file.view<4>("q"), k_file.view<4>("k"), v_file.view<4>("v"), writable<4>(out),
                options, state);
  attention_weights(q_file.view<4>("q"), k_file.view<4>("k"), options, {0, 1, 0, rows},
                    writable<4>(weights));
  const auto check_file = [&](const char* quantity, const FileTensor& got) {
    const Array array = widened(got);
    verdict.add(
        compare_value(quantity, {array.shape, array.values}, values.at(quantity).at("value")),
        engine.name + " f64");
  };
  for (const auto& [quantity, got] :
       {std::pair{"output", &out}, {"log_sum_exp", &lse}, {"weights", &weights}})
    if (values.contains(quantity)) check_file(quantity, *got);
}

nn::Network one_block(const AttentionOptions& options) {
  nn::Network network;
  network.blocks.resize(1);
  nn::Attention& attention = network.blocks[0].attention;
  attention.query = {"WQ", ""};
  attention.key = {"WK", ""};
  attention.value = {"WV", ""};
  attention.options = options;
  return network;
}

nn::Shapes shapes_of(const Inputs& inputs) {
  nn::Shapes shapes;
  for (const auto& [name, tensor] : inputs) shapes[name] = tensor.shape;
  return shapes;
}

Inputs projections(const json& values) {
  Inputs inputs;
  for (const char* name : {"X", "WQ", "WK", "WV"})
    inputs.emplace_back(name, value_of(values, name));
  return inputs;
}

void run_example(const json& values, const Selection& selection, CaseResult& verdict) {
  const TraceTensor q = value_of(values, "Q");
  const TraceTensor k = value_of(values, "K");
  const TraceTensor v = value_of(values, "V");
  const AttentionOptions options = options_of(values, q.shape[1]);
  for (const Engine& engine : selection.engines)
    compare_attend(q, k, v, options, values, engine, verdict);
  if (!selection.has_steps()) return;
  compare_both(steps(options, q.shape[1]), {{"q", q}, {"k", k}, {"v", v}}, values, "steps",
               verdict);
  if (values.contains("X")) {
    const Inputs inputs = projections(values);
    compare_both(nn::steps(one_block(options), shapes_of(inputs)), inputs, values, "network",
                 verdict);
  }
}

// A row of scores as an attention: q is the row, the keys are the unit vectors, so each score is
// its coordinate.
void run_scores(const json& values, const Selection& selection, CaseResult& verdict) {
  const TraceTensor q = value_of(values, "scores");
  const index_t n = q.shape[1];
  AttentionOptions options;
  options.scale = 1;
  for (const Engine& engine : selection.engines)
    compare_attend(q, identity(n), identity(n), options, values, engine, verdict);
  if (!selection.has_steps()) return;
  const Inputs inputs{{"q", q}, {"k", identity(n)}, {"v", identity(n)}};
  compare_both(steps(options, n), inputs, values, "steps", verdict);
  if (!values.contains("lead")) return;  // the largest score over the second largest
  const Trace trace = run_steps(steps(options, n), inputs);
  std::vector<double> scores = trace.at("scaled").values;
  std::sort(scores.begin(), scores.end(), std::greater<>());
  verdict.add(compare_value("lead", {{1}, {scores[0] - scores[1]}}, values.at("lead").at("value")),
              "steps");
}

// Goes on from the causal example: one linear layer, then the unembedding.
void run_next_token(const Golden& golden, const json& seed, CaseResult& verdict) {
  const json causal = golden.read_json("seed2_causal.json").at("values");
  Inputs inputs = projections(causal);
  for (const char* name : {"W_FFN", "W_vocab"}) {
    inputs.emplace_back(name, tensor_of(seed.at("inputs").at(name)));
  }
  nn::Network network = one_block(options_of(causal, inputs[1].second.shape[1]));
  nn::FeedForward layer;
  layer.up = {"W_FFN", ""};
  network.blocks[0].feed_forward = layer;
  network.unembedding = nn::Unembedding{};
  network.unembedding->weight = "W_vocab";
  const Trace trace = run_steps(nn::steps(network, shapes_of(inputs)), inputs);
  compare_taps(seed.at("values"), kNextToken, trace, "network", verdict);
  // What the logits are made from is the layer's output, whatever its tap is called.
  const auto logits = std::find_if(trace.steps.begin(), trace.steps.end(),
                                   [](const TracedStep& s) { return s.step.tap == "logits"; });
  if (logits == trace.steps.end()) return;
  verdict.add(compare_value("ffn_output", trace.at(logits->step.reads.front()),
                            seed.at("values").at("ffn_output").at("value")),
              "network");
  const TraceTensor& next = trace.at("next_token");
  verdict.add(compare("next_token", {{1}, {next.values.back()}},
                      {{1}, {number_of(seed.at("argmax_last"))}}, exact(DType::f64)),
              "network");
}

// Token A's output with the causal mask and without it.
void run_mask_removed(const Golden& golden, const json& seed, const Selection& selection,
                      CaseResult& verdict) {
  const json values = golden.read_json("seed1_causal.json").at("values");
  const Inputs inputs{
      {"q", value_of(values, "Q")}, {"k", value_of(values, "K")}, {"v", value_of(values, "V")}};
  const auto row_of = [&](const AttentionOptions& options) {
    const TraceTensor out = run_steps(steps(options, inputs[0].second.shape[1]), inputs).at("out");
    const auto width = out.shape.back();
    return TraceTensor{{width}, {out.values.begin(), out.values.begin() + width}};
  };
  AttentionOptions causal;
  causal.mask = Mask::causal();
  const FileTensor q = file_tensor(inputs[0].second), k = file_tensor(inputs[1].second),
                   v = file_tensor(inputs[2].second);
  const auto row_by = [&](const Engine& engine, const AttentionOptions& options) {
    FileTensor out = zeros(DType::f64, {1, 1, q.shape[0], v.shape[1]});
    engine.attend(q.view<4>("q"), k.view<4>("k"), v.view<4>("v"), writable<4>(out), options);
    const std::vector<double> all = widened(out).values;
    return TraceTensor{{v.shape[1]}, {all.begin(), all.begin() + v.shape[1]}};
  };
  for (const Engine& engine : selection.engines) {
    const std::string run = engine.name + " f64";
    verdict.add(
        compare_value("with_mask", row_by(engine, causal), seed.at("with_mask").at("value")), run);
    verdict.add(
        compare_value("without_mask", row_by(engine, {}), seed.at("without_mask").at("value")),
        run);
  }
  if (!selection.has_steps()) return;
  verdict.add(compare_value("with_mask", row_of(causal), seed.at("with_mask").at("value")),
              "steps");
  verdict.add(compare_value("without_mask", row_of({}), seed.at("without_mask").at("value")),
              "steps");
}

// A row without a key: EmptyRow::error refuses it, everywhere; EmptyRow::zero makes it zeros.
void run_fully_masked(const json& seed, const Selection& selection, CaseResult& verdict) {
  const FileTensor q = file_tensor(tensor_of(seed.at("Q")));
  const FileTensor k = file_tensor(tensor_of(seed.at("K")));
  const FileTensor v = file_tensor(tensor_of(seed.at("V")));
  auto allowed = std::make_shared<FileTensor>(zeros(DType::u8, {q.shape[0], k.shape[0]}));
  for (index_t j = 0; j < k.shape[0]; ++j) {
    const bool may_attend = seed.at("allowed").at(0).at(static_cast<std::size_t>(j));
    store_element(allowed->bytes.data(), DType::u8, j, may_attend ? 1 : 0);
  }
  AttentionOptions options;
  options.mask = Mask::allowed(Broadcast(allowed->view<4>("mask"), allowed));
  FileTensor out = zeros(DType::f64, {1, 1, q.shape[0], v.shape[1]});
  const Failure accepted = in_words("", "a row without a key is accepted under EmptyRow::error");
  const Array nothing = widened(zeros(DType::f64, out.shape));
  for (const Engine& engine : selection.engines) {
    const std::string run = engine.name + " f64";
    const auto attend = [&] {
      engine.attend(q.view<4>("q"), k.view<4>("k"), v.view<4>("v"), writable<4>(out), options);
    };
    options.empty_row = EmptyRow::error;
    if (!refuses(attend)) verdict.add(accepted, run);
    options.empty_row = EmptyRow::zero;
    attend();
    verdict.add(compare("output", widened(out), nothing, exact(DType::f64)), run);
  }
  if (!selection.has_steps()) return;
  options.empty_row = EmptyRow::error;
  if (!refuses([&] { attend_traced(q.view<4>("q"), k.view<4>("k"), v.view<4>("v"), options); }))
    verdict.add(accepted, "steps");
  options.empty_row = EmptyRow::zero;
  const Trace trace = attend_traced(q.view<4>("q"), k.view<4>("k"), v.view<4>("v"), options);
  verdict.add(compare("output", {trace.at("out").shape, trace.at("out").values}, nothing,
                      exact(DType::f64)),
              "steps");
}

CaseResult run_seed(const Golden& golden, const std::string& name, const Selection& selection) {
  CaseResult verdict = named(name);
  try {
    const json seed = golden.read_json(name + ".json");
    if (seed.contains("inputs")) {
      if (!selection.has_steps())
        return skipped(name, "what follows attention is computed by the steps alone");
      run_next_token(golden, seed, verdict);
    } else if (seed.contains("with_mask")) {
      run_mask_removed(golden, seed, selection, verdict);
    } else if (seed.contains("allowed")) {
      run_fully_masked(seed, selection, verdict);
    } else if (seed.contains("rows")) {
      for (const auto& [row, values] : seed.at("rows").items())
        run_scores(values, selection, verdict);
    } else if (seed.at("values").contains("scores")) {
      run_scores(seed.at("values"), selection, verdict);
    } else {
      run_example(seed.at("values"), selection, verdict);
    }
  } catch (const Error& error) {
    verdict.add_refusal(error);
  }
  return verdict;
}

}  // namespace

FolderReport run_seeds(const Golden& golden, const Selection& selection) {
  FolderReport report{golden.folder(), golden.format(), {}};
  for (const json& file : golden.index().at("files")) {
    const std::string name = file.at("name");
    if (!selection.wants(name)) continue;
    report.cases.push_back(selection.is_list ? named(name) : run_seed(golden, name, selection));
  }
  return report;
}

}  // namespace glasshead::conformance
