// glasshead run --hide, --ablate and --lens: what the next token hangs on.
#include <algorithm>
#include <variant>

#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/run_model.h"
#include "cli/run_report.h"

namespace glasshead::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr index_t kShown = 10;  // tokens before and after a change

std::vector<float> copy_of(const View<const float, 1>& row) {
  return {row.data, row.data + row.shape[0]};
}

View<const float, 1> view_of(const std::vector<float>& row) {
  return {row.data(), {static_cast<index_t>(row.size())}};
}

std::string column(std::string text, std::size_t width) {
  if (text.size() < width) text.insert(text.begin(), width - text.size(), ' ');
  return text;
}

// A position that the text has not, or that nothing reads, would hide nothing, and look like one
// that does not matter.
void need_positions(const std::vector<Change>& changes, index_t tokens) {
  std::vector<Problem> problems;
  const auto need = [&](const char* flag, index_t position) {
    if (position >= tokens)  // below 0: the session says so, with what else is wrong
      problems.push_back({flag, "position " + std::to_string(position) + "; there are " +
                                    std::to_string(tokens) + " tokens, numbered from 0"});
  };
  for (const Change& change : changes)
    if (const auto* pairs = std::get_if<HidePairs>(&change)) {
      const bool is_hidden = pairs->queries.empty();
      const char* const flag = is_hidden ? "--hide" : "--cut";
      for (const index_t key : pairs->keys) {
        need(flag, key);
        if (is_hidden && key + 1 == tokens)
          problems.push_back({flag, "position " + std::to_string(key) +
                                        " is the last: no later token could read it, and a token "
                                        "always reads itself, so nothing would change"});
      }
      for (const index_t query : pairs->queries) need(flag, query);
    }
  if (!problems.empty()) throw OptionError("run", std::move(problems));
}

}  // namespace

// What was asked for, with the means of heads over this text.
std::vector<Change> Run::changes(const std::vector<index_t>& ids) {
  std::vector<Change> changes = call_.changes;
  if (call_.to_mean.empty()) return changes;
  try {
    session_.change({call_.to_mean.begin(), call_.to_mean.end()});
  } catch (const OptionError& error) {
    std::vector<Problem> problems = error.problems();
    for (Problem& problem : problems) problem.where = "to_mean";
    throw OptionError("run", std::move(problems));
  }
  session_.change({});
  for (const ReplaceHead& head : call_.to_mean) {
    Taps taps({{.name = "decoder." + std::to_string(head.layer) + ".self.out"}});
    session_.truncate(0, 0);
    session_.forward({{0, ids}}, LogitRows::none, &taps);
    changes.push_back(mean_of_head(head.layer, head.head, taps.results()[0].second));
  }
  session_.truncate(0, 0);
  return changes;
}

// The next token without the changes and with them: the most probable ones
// before, the most probable ones after, and how far the two are apart.
void Run::effect(const std::vector<index_t>& ids) {
  need_positions(call_.changes, static_cast<index_t>(ids.size()));
  const std::vector<float> before = copy_of(row_of(session_.forward({{0, ids}}), 0));
  session_.truncate(0, 0);
  session_.change(changes(ids));
  const std::vector<float> after = copy_of(row_of(session_.forward({{0, ids}}), 0));
  const auto vocab = static_cast<index_t>(before.size());
  const std::vector<TokenProbability> all_before = most_probable(view_of(before), vocab),
                                      all_after = most_probable(view_of(after), vocab);
  std::vector<double> p(before.size()), q(before.size());
  for (const TokenProbability& one : all_before)
    p[static_cast<std::size_t>(one.id)] = one.probability;
  for (const TokenProbability& one : all_after)
    q[static_cast<std::size_t>(one.id)] = one.probability;
  std::vector<index_t> shown;
  for (const auto* all : {&all_before, &all_after})
    for (std::size_t n = 0; n < all->size() && n < static_cast<std::size_t>(kShown); ++n)
      if (std::find(shown.begin(), shown.end(), (*all)[n].id) == shown.end())
        shown.push_back((*all)[n].id);
  const double divergence = kl_divergence(view_of(before), view_of(after));

  Json tokens = Json::array();
  std::string lines = "  before   after   logit  token\n";
  for (const index_t id : shown) {
    const auto n = static_cast<std::size_t>(id);
    const double change = static_cast<double>(after[n]) - before[n];
    lines += column(decimals(p[n], 4), 8) + column(decimals(q[n], 4), 8) +
             column((change >= 0 ? "+" : "") + decimals(change, 3), 8) + "  " + word(id) + "\n";
    tokens.push_back({{"id", id},
                      {"token", word(id)},
                      {"before", p[n]},
                      {"after", q[n]},
                      {"logit_difference", change}});
  }
  lines += "KL divergence " + decimals(divergence, 6) + " nats\n";
  if (args_.is_json)
    print({{"model", args_.model},
           {"kind", name(model_.kind())},
           {"prompt", {{"ids", ids}}},
           {"kl_divergence", divergence},
           {"tokens", tokens}});
  else
    write_result("", lines);
}

// What each layer's rows at the last token would say if they went into the head
// as they are.
void Run::lens(const std::vector<index_t>& ids) {
  need_positions(call_.changes, static_cast<index_t>(ids.size()));
  session_.change(changes(ids));
  Taps taps({{.name = "embedding"}, {.name = "decoder.*.out"}});
  session_.forward({{0, ids}}, LogitRows::none, &taps);
  Json layers = Json::array();
  std::string lines;
  for (const auto& [place, tensor] : taps.results()) {
    const index_t d = tensor.shape[1];
    std::vector<float> row;
    for (index_t e = 0; e < d; ++e)
      row.push_back(static_cast<float>(tensor.load((tensor.shape[0] - 1) * d + e)));
    const std::vector<TokenProbability> best =
        most_probable(row_of(session_.lens({row.data(), {1, d}}), 0), 3);
    std::string line = place;
    line.resize(std::max<std::size_t>(line.size() + 1, 16), ' ');
    Json found = Json::array();
    for (const TokenProbability& one : best) {
      line += " " + decimals(one.probability, 4) + " " + word(one.id);
      found.push_back({{"id", one.id}, {"token", word(one.id)}, {"probability", one.probability}});
    }
    lines += line + "\n";
    layers.push_back({{"place", place}, {"candidates", found}});
  }
  if (args_.is_json)
    print({{"model", args_.model},
           {"kind", name(model_.kind())},
           {"prompt", {{"ids", ids}}},
           {"lens", layers}});
  else
    write_result("", lines);
}

}  // namespace glasshead::cli
