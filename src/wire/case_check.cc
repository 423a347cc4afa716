// Whether a case fits together: nn's findings, and the case's own, under its field paths.
#include <algorithm>

#include <fmt/format.h>

#include "nn/generate.h"
#include "wire/case_builder.h"

namespace glasshead::wire {
namespace {

bool starts_with(const std::string& text, std::string_view start) {
  return text.compare(0, start.size(), start) == 0;
}

// nn names inputs by their taps and fields by its own structs: "block.1.attention.heads".
std::string path_of(const Case& c, const std::string& where) {
  const auto path = c.paths.find(where);
  if (path != c.paths.end()) return path->second;
  if (where == "first_position") return "positions.start";
  if (where == "embedding" || where == "E") return "E";
  if (starts_with(where, "unembedding")) return "unembed" + where.substr(11);
  if (starts_with(where, "block.")) {
    const std::size_t dot = where.find('.', 6);
    if (dot != std::string::npos)
      return fmt::format("blocks[{}]{}", where.substr(6, dot - 6), where.substr(dot));
  }
  for (const char* field : {"attention", "cross_attention", "cross_norm", "feed_forward"})
    if (starts_with(where, field)) return c.has_block_list ? "blocks[0]." + where : where;
  return where;
}

bool is_maskless(const AttentionOptions& options) { return options.mask.parts().empty(); }

// A trace keeps every matrix of scores and weights whole: a short file of many rows would ask for
// more memory than there is.
void check_pairs(const Case& c, CaseReader& read) {
  constexpr index_t kMostPairs = index_t{1} << 24;  // 4096 x 4096: 128 MiB a matrix
  const auto queries = static_cast<index_t>(c.query_labels.size());
  auto keys = static_cast<index_t>(c.key_labels.size());
  for (const auto& [name, tensor] : c.inputs)
    if (name == "context") keys = std::max(keys, tensor.shape[0]);
  index_t heads = 0;  // of all blocks
  for (const nn::Block& block : c.network.blocks)
    heads += block.attention.heads + (block.cross_attention ? block.cross_attention->heads : 0);
  if (keys == 0 || heads * queries <= kMostPairs / keys) return;
  read.problem("attention", fmt::format("{} heads x {} queries x {} keys are more than {} scores; "
                                        "glasshead attend takes longer sequences",
                                        heads, queries, keys, kMostPairs));
}

}  // namespace

void check_case(const Case& c, CaseReader& reader) {
  // A field that has a problem of its own gets no second one that follows from it.
  struct {
    CaseReader& reader;
    std::size_t known;
    void problem(const std::string& where, std::string what) {
      if (!reader.has_problem_at(where, known)) reader.problem(where, std::move(what));
    }
  } read{reader, reader.problem_count()};
  check_pairs(c, reader);
  // A row with no allowed key is a matter of running the case, not of reading it.
  nn::Network network = c.network;
  for (nn::Block& block : network.blocks) {
    block.attention.options.empty_row = EmptyRow::zero;
    if (block.cross_attention) block.cross_attention->options.empty_row = EmptyRow::zero;
  }
  const std::vector<Problem> found = c.feed > 0 || c.generate > 0
                                         ? nn::check_cached(network, c.inputs)
                                         : nn::check(network, nn::shapes_of(c.inputs));
  for (const Problem& problem : found) read.problem(path_of(c, problem.where), problem.what);
  if (!c.has_softmax)
    for (const nn::Block& block : c.network.blocks)
      if (!is_maskless(block.attention.options))
        read.problem("attention.mask",
                     "contradicts softmax none: without softmax nothing can be "
                     "hidden");
  if (c.feed > static_cast<index_t>(c.query_labels.size()))
    read.problem("feed", fmt::format("{} where there are {} rows", c.feed, c.query_labels.size()));
  if (!c.axis_names.empty()) {
    for (const char* tap : {"E", "X"})
      for (const auto& [name, tensor] : c.inputs)
        if (name == tap && tensor.shape[1] != static_cast<index_t>(c.axis_names.size()))
          read.problem("axes", fmt::format("{} names where {} has {} columns", c.axis_names.size(),
                                           name, tensor.shape[1]));
  }
}

}  // namespace glasshead::wire
