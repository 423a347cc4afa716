#include "nn/generate.h"

#include <algorithm>
#include <optional>
#include <variant>

#include <fmt/format.h>

#include "base/fail.h"
#include "nn/walk.h"

namespace glasshead::nn {
namespace {

// No query sees a later key: then earlier rows do not change when rows are added.
bool sees_only_back(const Mask& mask) {
  for (const Mask::Part& part : mask.parts()) {
    if (std::holds_alternative<Mask::Causal>(part)) return true;
    if (const auto* window = std::get_if<Mask::Window>(&part); window && window->right == 0)
      return true;
  }
  return false;
}

std::string block_prefix(const Network& network, std::size_t n) {
  return network.blocks.size() == 1 ? "" : fmt::format("block.{}.", n);
}

// The tap that rows are taken from: the ids, or X.
std::string rows_tap(const Network& network) { return network.ids.empty() ? "X" : network.ids; }

const TraceTensor* find(const NamedInputs& inputs, const std::string& tap) {
  for (const auto& [name, tensor] : inputs)
    if (name == tap) return &tensor;
  return nullptr;
}

TraceTensor some_rows(const TraceTensor& all, index_t first, index_t count) {
  TraceTensor rows;
  rows.shape = all.shape;
  rows.shape[0] = count;
  const index_t size = all.shape.size() == 2 ? all.shape[1] : 1;
  const auto from = all.values.begin() + static_cast<std::ptrdiff_t>(first * size);
  rows.values.assign(from, from + static_cast<std::ptrdiff_t>(count * size));
  return rows;
}

// Runs piece after piece, carrying the caches.
class Decoder {
 public:
  Decoder(const Network& network, NamedInputs inputs)
      : network_(network), inputs_(std::move(inputs)) {}

  void run(TraceTensor rows, Generation& generation) {
    const index_t count = rows.shape[0];
    NamedInputs inputs = inputs_;
    for (auto& [tap, tensor] : inputs) {
      if (tap != rows_tap(network_)) continue;
      tensor = std::move(rows);
      break;
    }
    add_caches(generation, inputs);
    Walk walk(network_, shapes_of(inputs), CachedRows{done_});
    walk.run();
    if (!walk.problems.empty()) fail(ErrorKind::shape, "generate", std::move(walk.problems));
    generation.passes.push_back(run_steps(walk.list, std::move(inputs)));
    done_ += count;
    generation.rows_projected += count;
    generation.rows_without_cache += done_;
  }

 private:
  void add_caches(const Generation& generation, NamedInputs& inputs) const {
    if (generation.passes.empty()) return;
    for (std::size_t n = 0; n < network_.blocks.size(); ++n) {
      if (network_.blocks[n].is_cross) continue;
      const std::string prefix = block_prefix(network_, n);
      for (const char* kind : {"k", "v"})
        inputs.emplace_back(prefix + kind + "_earlier",
                            generation.passes.back().at(prefix + kind + "_cache"));
    }
  }

  const Network& network_;
  NamedInputs inputs_;
  index_t done_ = 0;  // rows run so far
};

// What a query sees depends on where it stands. Over a context, which rows of a later run know
// nothing of, that has no meaning in a cached run.
void check_no_positions(const AttentionOptions& options, const std::string& field,
                        std::vector<Problem>& problems) {
  const char* const what =
      "depends on where a query stands, over a context with positions of its own: with a cache "
      "only rules about keys are possible here";
  for (const Mask::Part& part : options.mask.parts()) {
    const auto* window = std::get_if<Mask::Window>(&part);
    if (std::holds_alternative<Mask::Causal>(part) || std::holds_alternative<Mask::Prefix>(part) ||
        std::holds_alternative<Mask::Where>(part) ||
        (window != nullptr && (window->left || window->right))) {
      problems.push_back({field + ".mask", what});
      break;
    }
  }
  for (const Bias::Term& term : options.bias.terms()) {
    const auto* alibi = std::get_if<Bias::Alibi>(&term);
    if (std::holds_alternative<Bias::T5>(term) ||
        (alibi != nullptr && alibi->form == Bias::AlibiForm::distance)) {
      problems.push_back({field + ".bias", what});
      break;
    }
  }
}

// Row 0 of the text stands at position 0. (Align::end says the same where keys are the queries'.)
void check_start(const AttentionOptions& options, const std::string& field,
                 std::vector<Problem>& problems) {
  const auto* start = std::get_if<index_t>(&options.query_start);
  if (start == nullptr || *start == 0) return;
  problems.push_back({field + ".query_start",
                      fmt::format("{}: with a cache the first row stands at position 0, or rows "
                                  "would see others than in one run over all",
                                  *start)});
}

void check_cached(const Attention& attention, bool is_cross, const std::string& field,
                  std::vector<Problem>& problems) {
  if (attention.options.dropout.p > 0)
    problems.push_back({field + ".dropout", "drops other weights in every run: it must be off"});
  for (const std::string& given : {attention.given_q, attention.given_k, attention.given_v})
    if (!given.empty())
      problems.push_back({given, "is given as it is: a cache needs rows that are projected"});
  if (is_cross) {
    check_no_positions(attention.options, field, problems);
    return;
  }
  check_start(attention.options, field, problems);
  if (!sees_only_back(attention.options.mask))
    problems.push_back({field + ".mask",
                        "lets queries see later keys, so earlier rows would change with every "
                        "new one: a cache needs a causal mask"});
}

void require_cached(const Network& network, const NamedInputs& inputs, const char* function) {
  std::vector<Problem> problems = check_cached(network, inputs);
  if (!problems.empty()) fail(ErrorKind::shape, function, std::move(problems));
}

}  // namespace

std::vector<Problem> check_cached(const Network& network, const NamedInputs& inputs) {
  std::vector<Problem> problems = check(network, shapes_of(inputs));
  for (std::size_t n = 0; n < network.blocks.size(); ++n) {
    const Block& block = network.blocks[n];
    const std::string prefix = block_prefix(network, n);
    check_cached(block.attention, block.is_cross, prefix + "attention", problems);
    if (block.cross_attention)
      check_cached(*block.cross_attention, true, prefix + "cross_attention", problems);
  }
  return problems;
}

Generation generate(const Network& network, const NamedInputs& inputs, index_t count) {
  require_cached(network, inputs, "generate");
  std::vector<Problem> problems;
  const TraceTensor* prompt = network.ids.empty() ? nullptr : find(inputs, network.ids);
  if (count < 1) problems.push_back({"count", fmt::format("{}: must be at least 1", count)});
  if (prompt == nullptr)
    problems.push_back({"ids", "are missing: there is no token to append to"});
  else if (prompt->shape[0] == 0)
    problems.push_back({network.ids, "is empty: there is no row to predict from"});
  if (!network.unembedding)
    problems.push_back({"unembedding", "is missing: without it no token is chosen"});
  if (!problems.empty()) fail(ErrorKind::option, "generate", std::move(problems));

  Generation generation;
  Decoder decoder(network, inputs);
  TraceTensor rows = *prompt;
  for (index_t n = 0; n < count; ++n) {
    decoder.run(std::move(rows), generation);
    const double token = generation.passes.back().at("next_token").values.back();
    if (token != token)
      fail(
          ErrorKind::option, "generate", "next_token",
          fmt::format("the probabilities of run {} have NaN in them: no token is the most probable",
                      n + 1));
    generation.tokens.push_back(static_cast<index_t>(token));
    rows = {{1}, {token}};
  }
  return generation;
}

Generation run_row_by_row(const Network& network, const NamedInputs& inputs, index_t prompt) {
  require_cached(network, inputs, "run_row_by_row");
  const TraceTensor* all = find(inputs, rows_tap(network));
  const index_t length = all == nullptr ? 0 : all->shape[0];
  if (prompt < 1 || prompt > length)
    fail(ErrorKind::option, "run_row_by_row", "prompt",
         fmt::format("{}: must be from 1 to the number of rows, {}", prompt, length));
  Generation generation;
  Decoder decoder(network, inputs);
  decoder.run(some_rows(*all, 0, prompt), generation);
  for (index_t row = prompt; row < length; ++row) decoder.run(some_rows(*all, row, 1), generation);
  return generation;
}

}  // namespace glasshead::nn
