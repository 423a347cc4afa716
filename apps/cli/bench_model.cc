#include "cli/bench_model.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "glasshead/model.h"
#include "glasshead/model_facts.h"

namespace glasshead::cli {
namespace {

constexpr index_t kPrompt = 512, kWritten = 128;  // tokens, the lengths of llama.cpp's own bench
constexpr index_t kTexts = 32, kTextTokens = 128;
constexpr int kSamples = 5;

// The weights: a file, or a directory's model.safetensors or its parts.
std::vector<std::filesystem::path> weight_files(const std::string& path) {
  namespace fs = std::filesystem;
  if (!fs::is_directory(path)) return {path};
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(path))
    if (entry.path().extension() == ".safetensors" &&
        entry.path().filename().string().rfind("model", 0) == 0)
      files.push_back(entry.path());
  return files;
}

index_t read_files(const std::vector<std::filesystem::path>& files) {
  std::vector<char> piece(std::size_t{1} << 20);
  index_t bytes = 0;
  for (const std::filesystem::path& file : files) {
    std::ifstream in(file, std::ios::binary);
    do {
      in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
      bytes += in.gcount();
    } while (in);
  }
  return bytes;
}

// Tokens of no meaning, the same each time.
std::vector<index_t> some_tokens(index_t count, index_t vocab, index_t seed = 0) {
  std::vector<index_t> ids;
  for (index_t n = 0; n < count; ++n) ids.push_back((n * 7919 + seed * 131 + 13) % vocab);
  return ids;
}

class Measured {
 public:
  Measured(const Model& model, const ModelFacts& facts, Session& session, Team& team,
           const Context& widest, bool is_quick)
      : model_(model),
        facts_(facts),
        session_(session),
        team_(team),
        widest_(widest),
        is_quick_(is_quick) {
    const index_t limit = model.position_limit() > 0 ? model.position_limit() : kPrompt;
    prompt_ = std::min(is_quick ? 16 : kPrompt, limit);
    written_ = std::min(is_quick ? 4 : kWritten, limit);
    texts_ = is_quick ? 2 : kTexts;
    text_tokens_ = std::min(is_quick ? 8 : kTextTokens, limit);
    auto* const bytes = static_cast<unsigned char*>(stream_.data());
    for (std::size_t n = 0; n < stream_.bytes(); n += 64) bytes[n] = 1;  // pages that exist
  }

  std::vector<BenchModelRow> rows() {
    switch (model_.kind()) {
      case ModelKind::encoder:
        return {batch()};
      case ModelKind::decoder:
        return {prefill(), generation([&] {
                  session_.truncate(0, 0);
                  return index_t{0};
                })};
      case ModelKind::encoder_decoder:
        break;
    }
    BenchModelRow reading = begun("reading", 1, prompt_);
    index_t sequence = -1;
    const auto read = [&] {
      if (sequence >= 0) session_.drop(sequence);
      sequence = session_.read(some_tokens(prompt_, model_.vocab()));
    };
    sample(reading, [] {}, read);
    return {reading, generation([&] {
              read();
              return sequence;
            })};
  }

 private:
  BenchModelRow begun(const char* name, index_t texts, index_t tokens) const {
    BenchModelRow row;
    row.name = name;
    row.texts = texts;
    row.tokens = tokens;
    row.threads = team_.threads();
    return row;
  }

  template <class F, class G>
  void sample(BenchModelRow& row, const F& prepare, const G& work) {
    const auto clock = team_.threads() == 1 ? cpu_seconds : wall_seconds;
    for (int n = -1; n < (is_quick_ ? 2 : kSamples); ++n) {
      prepare();
      double limit = 0;
      if (row.flops > 0) limit = peak_flops(team_, widest_, DType::f32, 0.02);
      if (row.bytes > 0) limit = stream_rate(team_, {{stream_.data(), stream_.bytes()}}, 1);
      const double begin = clock();
      work();
      const double seconds = clock() - begin;
      if (n < 0) continue;  // room is made, weights are seen once
      row.seconds.push_back(seconds);
      if (limit > 0) row.share.push_back((row.flops + row.bytes) / seconds / limit);
    }
  }

  BenchModelRow prefill() {
    BenchModelRow row = begun("prefill", 1, prompt_);
    const ModelCost cost = model_cost(facts_, prompt_);
    row.flops = cost.matrix_flops + cost.attention_flops;
    const std::vector<index_t> ids = some_tokens(prompt_, model_.vocab());
    sample(row, [&] { session_.truncate(0, 0); }, [&] { session_.forward({{0, ids}}); });
    return row;
  }

  template <class F>
  BenchModelRow generation(const F& begin) {
    BenchModelRow row = begun("generation", 1, written_);
    row.bytes = static_cast<double>(written_ * model_.bytes_per_token());
    const std::vector<index_t> ids = some_tokens(written_, model_.vocab(), 1);
    index_t sequence = 0;
    sample(
        row, [&] { sequence = begin(); },
        [&] {
          for (const index_t id : ids) session_.forward({{sequence, {id}}});
        });
    return row;
  }

  BenchModelRow batch() {
    BenchModelRow row = begun("batch", texts_, text_tokens_);
    const ModelCost cost = model_cost(facts_, text_tokens_);
    const double logits = facts_.has_logits ? 2.0 * static_cast<double>(facts_.d_model) *
                                                  static_cast<double>(facts_.vocab)
                                            : 0;
    row.flops = (cost.matrix_flops - logits + cost.attention_flops) * static_cast<double>(texts_);
    std::vector<Session::Text> texts;
    for (index_t n = 0; n < texts_; ++n)
      texts.push_back({.ids = some_tokens(text_tokens_, model_.vocab(), n), .segments = {}});
    sample(
        row, [] {},
        [&] {
          if (model_.has_pooling())
            session_.embed(texts);
          else
            session_.encode(texts);
        });
    return row;
  }

  const Model& model_;
  const ModelFacts& facts_;
  Session& session_;
  Team& team_;
  const Context& widest_;
  bool is_quick_;
  index_t prompt_ = 0, written_ = 0, texts_ = 0, text_tokens_ = 0;
  const Buffer stream_{larger_than_caches()};
};

std::string megabytes(index_t bytes) {
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

}  // namespace

BenchModelReport measure_model(const BenchModelOptions& options, const Context& widest,
                               const std::vector<int>& cores,
                               const std::function<void(Team& team)>& begin) {
  const ModelFacts facts = model_facts(options.path);
  BenchModelReport report;
  report.path = options.path;
  report.is_quick = options.is_quick;
  reset_peak_resident();
  const index_t before = peak_resident();
  const Model model = Model::load(options.path);
  report.held_loading = peak_resident() - before;
  report.family = model.family();
  report.kind = name(model.kind());
  report.parameters = model.parameters();
  report.weights = model.bytes();
  const std::vector<std::filesystem::path> files = weight_files(options.path);
  for (int n = 0; n < (options.is_quick ? 1 : 3); ++n) {
    const double start = wall_seconds();
    report.file_bytes = read_files(files);
    const double between = wall_seconds();
    Model::load(options.path);
    report.read_seconds.push_back(between - start);
    report.load_seconds.push_back(wall_seconds() - between);
  }
  for (const int count : options.threads) {
    const Context context({.isa = options.isa, .threads = count, .parallel_for = {}});
    Session session(model, {}, context);
    Team team(cores, count);
    begin(team);
    if (count == options.threads.front()) reset_peak_resident();
    Measured measured(model, facts, session, team, widest, options.is_quick);
    pin_threads(cores, team.thread_numbers());
    for (BenchModelRow& row : measured.rows()) report.rows.push_back(std::move(row));
    report.cache_bytes = session.cache_bytes();
  }
  report.held_running =
      peak_resident() - before - static_cast<index_t>(larger_than_caches());  // the read rate's
  return report;
}

std::string model_text(const BenchModelReport& report) {
  std::string text = fmt::format(
      "\n{}: {} ({}), {} parameters\n"
      "weights {} in memory, {} of files; loaded in {:.3f} s, where reading the files takes "
      "{:.3f}\n"
      "held at most {} while loading, {} while running (keys and values {})\n\n"
      "{:<28}{:>8}{:>11}{:>12}{:>24}{:>9}\n",
      report.path, report.family, report.kind, report.parameters, megabytes(report.weights),
      megabytes(report.file_bytes), median(report.load_seconds), median(report.read_seconds),
      megabytes(report.held_loading), megabytes(report.held_running), megabytes(report.cache_bytes),
      "row", "threads", "ms", "tokens/s", "share", "spread");
  for (const BenchModelRow& row : report.rows) {
    const double seconds = median(row.seconds);
    const std::string what =
        row.texts > 1 ? fmt::format("{}, {} texts of {}", row.name, row.texts, row.tokens)
                      : fmt::format("{}, {} tokens", row.name, row.tokens);
    const std::string share = row.share.empty()
                                  ? "-"
                                  : fmt::format("{:.1f} % of {}", 100 * median(row.share),
                                                row.flops > 0 ? "multiply-adds" : "reading");
    text += fmt::format("{:<28}{:>8}{:>11.1f}{:>12.1f}{:>24}{:>7.1f} %\n", what, row.threads,
                        1e3 * seconds, static_cast<double>(row.texts * row.tokens) / seconds, share,
                        100 * spread(row.seconds));
  }
  return text;
}

std::string model_json(const BenchModelReport& report) {
  using Json = nlohmann::ordered_json;
  Json rows = Json::array();
  for (const BenchModelRow& row : report.rows)
    rows.push_back({{"name", row.name},
                    {"threads", row.threads},
                    {"texts", row.texts},
                    {"tokens", row.tokens},
                    {"flops", row.flops},
                    {"bytes", row.bytes},
                    {"seconds", row.seconds},
                    {row.bytes > 0 ? "of_stream" : "of_peak", row.share}});
  const Json json{{"schema", "glasshead.bench-model/1"},
                  {"version", GLASSHEAD_VERSION},
                  {"quick", report.is_quick},
                  {"machine", machine_json(report.machine)},
                  {"model",
                   {{"path", report.path},
                    {"family", report.family},
                    {"kind", report.kind},
                    {"parameters", report.parameters},
                    {"weights_bytes", report.weights},
                    {"file_bytes", report.file_bytes},
                    {"cache_bytes", report.cache_bytes},
                    {"held_loading_bytes", report.held_loading},
                    {"held_running_bytes", report.held_running},
                    {"load_seconds", report.load_seconds},
                    {"read_seconds", report.read_seconds}}},
                  {"rows", rows}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace glasshead::cli
