#include <algorithm>

#include <fmt/format.h>

#include "wire/case_builder.h"
#include "wire/case_random.h"

namespace glasshead::wire {
namespace {

constexpr std::string_view kSchema = "glasshead.case/1";

void check_distinct(CaseReader& read, const std::vector<std::string>& names,
                    const std::string& path) {
  std::map<std::string, index_t> first;
  for (index_t n = 0; n < static_cast<index_t>(names.size()); ++n) {
    const auto [at, is_new] = first.emplace(names[static_cast<std::size_t>(n)], n);
    if (!is_new)
      read.problem(join(path, n), fmt::format("\"{}\" is there already, as number {}",
                                              excerpt(at->first), at->second));
  }
}

TraceTensor transposed(const TraceTensor& m) {
  TraceTensor out;
  out.shape = {m.shape[1], m.shape[0]};
  for (index_t column = 0; column < m.shape[1]; ++column)
    for (index_t row = 0; row < m.shape[0]; ++row)
      out.values.push_back(m.values[static_cast<std::size_t>(row * m.shape[1] + column)]);
  return out;
}

// The embedding table: E, one row per word, or W_vocab, one column per word.
void read_embedding(CaseBuilder& build, JsonValue root) {
  const JsonValue vocabulary = root.find("vocabulary");
  build.c.vocabulary = build.read.strings(vocabulary, "vocabulary");
  check_distinct(build.read, build.c.vocabulary, "vocabulary");
  if (root.find("E") && root.find("W_vocab"))
    build.read.problem("W_vocab", "contradicts E, which is its transpose: one of them");
  else if (root.find("E"))
    build.input(root.find("E"), "E", "E");
  else if (auto given = build.read.tensor(root.find("W_vocab"), "W_vocab", 2, 2)) {
    GivenTensor table;
    table.tensor = transposed(given->tensor);
    const index_t words = given->tensor.shape[1];
    const index_t size = given->tensor.shape[0];
    if (!given->texts.empty())
      for (index_t w = 0; w < words; ++w)
        for (index_t d = 0; d < size; ++d)
          table.texts.push_back(given->texts[static_cast<std::size_t>(d * words + w)]);
    build.add_input("W_vocab", "E", std::move(table));
  }
  const TraceTensor* table = build.find_input("E");
  if (table == nullptr) return;
  const std::string path = build.c.paths["E"];
  const auto words = static_cast<index_t>(build.c.vocabulary.size());
  if (!vocabulary)
    build.read.problem(
        "vocabulary",
        "is missing: one word per " + std::string(path == "E" ? "row of E" : "column of W_vocab"));
  else if (vocabulary.is(JsonKind::array) && words != table->shape[0])
    build.read.problem("vocabulary",
                       fmt::format("{} words where {} has {} {}", words, path, table->shape[0],
                                   path == "E" ? "rows" : "columns"));
}

// tokens -> ids, where X isn't given.
void read_ids(CaseBuilder& build, const std::vector<std::string>& tokens) {
  GivenTensor ids;
  ids.tensor.shape = {static_cast<index_t>(tokens.size())};
  const std::vector<std::string>& words = build.c.vocabulary;
  for (index_t n = 0; n < static_cast<index_t>(tokens.size()); ++n) {
    const std::string& token = tokens[static_cast<std::size_t>(n)];
    const auto word = std::find(words.begin(), words.end(), token);
    if (word == words.end()) {
      const std::optional<std::string> meant = nearest(token, words);
      build.read.problem(join("tokens", n),
                         fmt::format("\"{}\" is not in the vocabulary{}", excerpt(token),
                                     meant ? "; did you mean " + excerpt(*meant) + "?" : ""));
    }
    ids.tensor.values.push_back(static_cast<double>(word - words.begin()));
  }
  build.add_input("tokens", "ids", std::move(ids));
  build.c.network.ids = "ids";
  build.c.network.embedding = "E";
}

void read_context(CaseBuilder& build, JsonValue context) {
  if (!build.read.object(context, "context", {"tokens", "X"})) return;
  build.has_context = true;
  if (!context.find("X")) build.read.problem("context.X", "is missing");
  build.input(context.find("X"), "context.X", "context");
  build.context_labels = build.read.strings(context.find("tokens"), "context.tokens");
}

void read_random(CaseBuilder& build, JsonValue value) {
  if (!build.read.object(value, "random", {"seed", "rows", "d_k", "correlation"})) return;
  RandomInputs random;
  random.seed = static_cast<std::uint64_t>(
      build.read.integer(value.find("seed"), "random.seed", 0, kMostExtent).value_or(1));
  for (const auto& [name, out] : {std::pair{"rows", &random.rows}, std::pair{"d_k", &random.d_k}}) {
    const std::string path = join("random", name);
    if (!value.find(name)) build.read.problem(path, "is missing");
    *out = build.read.integer(value.find(name), path, 1, kMostRandomExtent).value_or(1);
  }
  if (random.rows * random.d_k > kMostRandom)
    build.read.problem(
        "random", fmt::format("{} x {} numbers; at most {}", random.rows, random.d_k, kMostRandom));
  if (const auto correlation = build.read.number(value.find("correlation"), "random.correlation")) {
    if (*correlation < 0 || *correlation > 1)
      build.read.problem("random.correlation", fmt::format("{}; it must be from 0 to 1",
                                                           value.find("correlation").text()));
    random.correlation = *correlation;
  }
  build.c.random = random;
}

// Labels for `count` rows: those given, which must be as many, or 0, 1, 2, ...
std::vector<std::string> labels_for(CaseReader& read, std::vector<std::string> given,
                                    const std::string& path, index_t count,
                                    const std::string& rows_of, bool is_given) {
  if (!is_given) {
    for (index_t n = 0; n < count; ++n) given.push_back(fmt::format("{}", n));
  } else if (static_cast<index_t>(given.size()) != count) {
    const CaseReader::ShapesStand stand(read);
    read.problem(path, fmt::format("{} labels where {} has {} rows", given.size(), rows_of, count));
    given.resize(static_cast<std::size_t>(count));
  }
  return given;
}

index_t length_of(const TraceTensor& tensor) { return tensor.shape[tensor.shape.size() - 2]; }

// What the queries are: X, tokens looked up, q, or random; and their labels.
void read_sequence(CaseBuilder& build, JsonValue root) {
  CaseReader& read = build.read;
  const JsonValue tokens = root.find("tokens");
  const std::vector<std::string> names = read.strings(tokens, "tokens");
  if (tokens.is(JsonKind::array) && names.empty()) read.problem("tokens", "is empty");
  build.input(root.find("X"), "X", "X");
  const JsonValue attention = root.find("attention");
  const bool has_q = attention.find("q") || build.c.random;
  if (root.find("X") && has_q)
    read.problem(build.c.random ? "random" : "attention.q",
                 "contradicts X: the queries are given, so nothing is made of X");
  index_t count = 0;
  std::string rows_of = "X";
  if (root.find("X")) {
    if (const TraceTensor* x = build.find_input("X")) count = x->shape[0];
  } else if (has_q) {
    rows_of = build.c.random ? "q" : "attention.q";
    if (const TraceTensor* q = build.find_input("q")) count = length_of(*q);
    if (build.c.random) count = build.c.random->rows;
  } else if (root.find("E") || root.find("W_vocab")) {
    if (!tokens)
      read.problem("tokens", "is missing: which words of the vocabulary, in order");
    else if (build.find_input("E") != nullptr && tokens.is(JsonKind::array))
      read_ids(build, names);
    count = static_cast<index_t>(names.size());
  } else {
    read.problem("X",
                 "is missing: one row of numbers per token (or vocabulary and E, or "
                 "attention.q, k, v)");
    return;
  }
  if (count == 0) return;  // what says how many is wrong, and reported
  build.c.query_labels =
      labels_for(read, names, "tokens", count, rows_of, tokens.is(JsonKind::array));
}

void read_keys(CaseBuilder& build, JsonValue root) {
  CaseReader& read = build.read;
  const JsonValue keys = root.find("keys");
  const std::vector<std::string> names = read.strings(keys, "keys");
  const TraceTensor* k = build.find_input("k");
  const JsonValue attention = root.find("attention");
  if (keys && !attention.find("k")) {
    read.problem("keys", "labels the rows of attention.k, and there is none");
    return;
  }
  if (build.has_context) {
    if (const TraceTensor* context = build.find_input("context"))
      build.context_labels =
          labels_for(read, build.context_labels, "context.tokens", context->shape[0], "context.X",
                     root.find("context").find("tokens").is(JsonKind::array));
    build.c.context_labels = build.context_labels;
  }
  const bool is_cross = build.has_context && !root.find("blocks") && !root.find("cross_attention");
  if (k != nullptr) {
    const bool is_self =
        !keys && length_of(*k) == static_cast<index_t>(build.c.query_labels.size());
    build.c.key_labels = is_self ? build.c.query_labels
                                 : labels_for(read, names, "keys", length_of(*k), "attention.k",
                                              keys.is(JsonKind::array));
  } else {
    build.c.key_labels = is_cross ? build.context_labels : build.c.query_labels;
  }
}

// What is given twice, or given and then not used, because q, k or v stand there already.
void check_given(CaseBuilder& build, JsonValue root) {
  const JsonValue attention = root.find("attention");
  if (build.c.random)
    for (const char* name : {"q", "k", "v", "W_Q", "W_K", "W_V", "b_Q", "b_K", "b_V"})
      if (attention.find(name))
        build.read.problem(join("attention", name), "contradicts random, which makes q, k and v");
  if (build.has_context && attention.find("k") && attention.find("v"))
    build.read.problem("context", "contradicts attention.k and v: nothing would be read from it");
  if (root.find("differences") && !root.find("X") && (attention.find("q") || build.c.random))
    build.read.problem("differences", "needs X, or tokens looked up in a vocabulary");
}

void read_blocks(CaseBuilder& build, JsonValue root) {
  const JsonValue blocks = root.find("blocks");
  nn::Network& network = build.c.network;
  if (blocks) {
    build.c.has_block_list = true;
    for (const char* name : {"attention", "cross_attention", "residual", "norm", "attention_norm",
                             "cross_norm", "feed_forward_norm", "feed_forward"})
      if (root.find(name))
        build.read.problem(name, "contradicts blocks: it belongs into one of them");
    if (!build.read.list(blocks, "blocks", "blocks")) return;
    if (blocks.size() == 0) build.read.problem("blocks", "is empty");
    constexpr std::size_t kMostBlocks = 1000;
    if (blocks.size() > kMostBlocks) {
      build.read.problem("blocks",
                         fmt::format("{} blocks; at most {}", blocks.size(), kMostBlocks));
      return;
    }
    index_t n = 0;
    const bool is_single = blocks.size() == 1;
    for (JsonValue block = blocks.first(); block; block = block.next(), ++n) {
      const std::string path = join("blocks", n);
      if (build.read.object(block, path,
                            {"attention", "cross_attention", "residual", "norm", "attention_norm",
                             "cross_norm", "feed_forward_norm", "feed_forward"}))
        network.blocks.push_back(
            read_block(build, block, path, is_single ? "" : fmt::format("block.{}.", n), false));
    }
    return;
  }
  // Rows to compare, and nothing that asks for attention.
  if (!build.c.differences.empty() && !root.find("attention") && !root.find("feed_forward")) return;
  network.blocks.push_back(read_block(build, root, "", "", true));
  if (build.c.random) {
    nn::Attention& attention = network.blocks[0].attention;
    attention.given_q = "q";
    attention.given_k = "k";
    attention.given_v = "v";
  }
}

void read_differences(CaseBuilder& build, JsonValue value) {
  if (!build.read.list(value, "differences", "pairs of rows: [\"queen\", \"king\"]")) return;
  index_t n = 0;
  for (JsonValue pair = value.first(); pair; pair = pair.next(), ++n) {
    const std::string path = join("differences", n);
    if (!pair.is(JsonKind::array) || pair.size() != 2) {
      build.read.problem(path, "must be two rows, [first, second]: first minus second");
      continue;
    }
    std::vector<index_t> rows;
    index_t side = 0;
    for (JsonValue row = pair.first(); row; row = row.next(), ++side) {
      std::string why_not;
      const bool is_name = row.is(JsonKind::string) || row.is(JsonKind::number);
      const auto found =
          is_name ? find_row(build.c.query_labels, row.text(), why_not) : std::optional<index_t>();
      if (found)
        rows.push_back(*found);
      else
        build.read.problem(
            join(path, side),
            is_name ? why_not : describe(row) + " where a label or an index belongs");
    }
    if (rows.size() == 2) build.c.differences.emplace_back(rows[0], rows[1]);
  }
}

void read_generation(CaseBuilder& build, JsonValue root) {
  CaseReader& read = build.read;
  constexpr index_t kMostTokens = 1000;
  if (const JsonValue generate = root.find("generate")) {
    if (read.object(generate, "generate", {"tokens"})) {
      if (!generate.find("tokens")) read.problem("generate.tokens", "is missing: how many");
      build.c.generate =
          read.integer(generate.find("tokens"), "generate.tokens", 1, kMostTokens).value_or(0);
      if (build.c.network.ids.empty() || !root.find("unembed"))
        read.problem("generate", "needs tokens looked up in a vocabulary, and unembed");
    }
  }
  build.c.feed = read.integer(root.find("feed"), "feed", 1, kMostExtent).value_or(0);
  if (build.c.feed > 0 && build.c.generate > 0)
    read.problem("feed",
                 "contradicts generate, which runs the tokens first and then one at a time");
  if (build.c.feed == 0 && build.c.generate == 0) return;
  const char* const field = build.c.feed > 0 ? "feed" : "generate";
  if (build.c.random || build.has_context)
    read.problem(field,
                 "needs X or tokens, and attention over itself: a cache grows with the rows");
  if (!build.c.has_softmax)
    read.problem("attention.softmax", fmt::format("none contradicts {}", field));
  if (!build.c.differences.empty())
    read.problem("differences", fmt::format("contradicts {}", field));
}

// What says what the case is, and changes nothing that is computed.
void read_header(CaseBuilder& build, JsonValue root) {
  CaseReader& read = build.read;
  const CaseReader::ShapesStand stand(read);
  if (!root.find("schema"))
    read.problem("schema", "is missing: \"" + std::string(kSchema) + "\"");
  else if (const auto schema = read.string(root.find("schema"), "schema");
           schema && *schema != kSchema)
    read.problem("schema", fmt::format("\"{}\" where \"{}\" is read", excerpt(*schema), kSchema));
  build.c.title = read.string(root.find("title"), "title").value_or("");
  build.c.from = read.string(root.find("from"), "from").value_or("");
  build.c.ours = read.strings(root.find("ours"), "ours");
  build.c.axis_names = read.strings(root.find("axes"), "axes");
}

void read_all(CaseBuilder& build, JsonValue root) {
  CaseReader& read = build.read;
  if (!read.object(root, "",
                   {"schema",
                    "title",
                    "from",
                    "ours",
                    "tokens",
                    "X",
                    "vocabulary",
                    "E",
                    "W_vocab",
                    "axes",
                    "keys",
                    "context",
                    "random",
                    "positions",
                    "attention",
                    "cross_attention",
                    "residual",
                    "norm",
                    "attention_norm",
                    "cross_norm",
                    "feed_forward_norm",
                    "feed_forward",
                    "blocks",
                    "final_norm",
                    "unembed",
                    "differences",
                    "generate",
                    "feed",
                    "printed",
                    "claims",
                    "drills"}))
    return;
  read_header(build, root);
  read_random(build, root.find("random"));
  read_embedding(build, root);
  read_given(build, root.find("attention"));
  read_context(build, root.find("context"));
  read_sequence(build, root);
  read_keys(build, root);
  check_given(build, root);
  read_differences(build, root.find("differences"));
  read_blocks(build, root);
  read_positions(build, root.find("positions"));
  build.c.network.final_norm =
      read_norm(build, root.find("final_norm"), "final_norm", "final_norm", nullptr);
  read_unembedding(build, root.find("unembed"));
  read_generation(build, root);
}

}  // namespace

std::string CaseBuilder::input(JsonValue value, const std::string& path, const std::string& tap,
                               int least_rank, int most_rank) {
  std::optional<GivenTensor> given = read.tensor(value, path, least_rank, most_rank);
  if (!given) return {};
  add_input(path, tap, std::move(*given));
  return tap;
}

void CaseBuilder::add_input(const std::string& path, const std::string& tap, GivenTensor given) {
  if (!given.texts.empty()) c.given_texts[tap] = std::move(given.texts);
  c.paths[tap] = path;
  c.inputs.emplace_back(tap, std::move(given.tensor));
}

const TraceTensor* CaseBuilder::find_input(const std::string& tap) const {
  for (const auto& [name, tensor] : c.inputs)
    if (name == tap) return &tensor;
  return nullptr;
}

std::optional<index_t> find_row(const std::vector<std::string>& labels, std::string_view name,
                                std::string& why_not) {
  std::optional<index_t> found;
  for (std::size_t n = 0; n < labels.size(); ++n) {
    if (labels[n] != name) continue;
    if (found) {
      why_not = fmt::format("\"{}\" names rows {} and {}: use the index", excerpt(name), *found, n);
      return std::nullopt;
    }
    found = static_cast<index_t>(n);
  }
  if (found) return found;
  const std::optional<double> number = finite_number(name);
  if (number && *number >= 0 && *number < static_cast<double>(labels.size()) &&
      *number == static_cast<double>(static_cast<index_t>(*number)))
    return static_cast<index_t>(*number);
  std::string all;
  constexpr std::size_t kMostShown = 8;
  for (std::size_t n = 0; n < labels.size() && n < kMostShown; ++n)
    all += (n == 0 ? "" : ", ") + excerpt(labels[n]);
  why_not = fmt::format("\"{}\" names no row; the labels are {}{}, the indices 0 to {}",
                        excerpt(name), all, labels.size() > kMostShown ? ", …" : "",
                        labels.empty() ? 0 : labels.size() - 1);
  return std::nullopt;
}

std::string_view given_text(const Case& c, const std::string& tap, std::size_t n) {
  const auto found = c.given_texts.find(tap);
  if (found == c.given_texts.end() || n >= found->second.size()) return {};
  return found->second[n];
}

std::optional<Case> parse_case(std::string_view text, std::string name,
                               std::vector<Problem>& problems) {
  const std::optional<JsonTree> tree = JsonTree::parse(text, problems);
  if (!tree) return std::nullopt;
  CaseBuilder build(problems);
  build.c.name = std::move(name);
  read_all(build, tree->root());
  if (build.read.do_shapes_stand()) {
    if (build.c.random) fill_random(build.c);
    check_case(build.c, build.read);
  }
  if (build.read.problem_count() == 0) read_notes(build, tree->root());
  build.read.finish();
  if (build.read.problem_count() != 0) return std::nullopt;
  return std::move(build.c);
}

}  // namespace glasshead::wire
