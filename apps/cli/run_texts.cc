// glasshead run --fill and --embed: what encoders do with texts.
#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/model_files.h"
#include "cli/run_model.h"
#include "cli/run_report.h"
#include "cli/values.h"

namespace glasshead::cli {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr index_t kCandidates = 5;  // shown for a masked place

[[noreturn]] void refuse(const std::string& where, const std::string& what) {
  throw OptionError("run", {{where, what}});
}

}  // namespace

// "[MASK]" may be written whatever the vocabulary calls it.
void Run::fill() {
  if (!words_->mask()) refuse("--fill", "this model's tokenizer has no mask token");
  const index_t mask = *words_->mask();
  std::string text = *args_.fill;
  const std::string own = words_->token(mask);
  for (std::size_t at = text.find("[MASK]"); own != "[MASK]" && at != std::string::npos;
       at = text.find("[MASK]", at + own.size()))
    text.replace(at, 6, own);
  const std::vector<index_t> ids = ids_of(*words_, "--fill", text);
  if (std::find(ids.begin(), ids.end(), mask) == ids.end())
    refuse("--fill", "no [MASK] in the text: it stands for the word to be found");
  need_rows("encoder", static_cast<index_t>(ids.size()), 0);
  const View<const float, 2> logits = session_.logits(session_.encode({{.ids = ids}}, taps_.get()));
  Json masks = Json::array();
  std::string lines;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] != mask) continue;
    if (!lines.empty()) lines += "\n";
    Json found = Json::array();
    for (const TokenProbability& candidate :
         most_probable(row_of(logits, static_cast<index_t>(i)), kCandidates)) {
      const std::string word = words_->token(candidate.id);
      lines += decimals(candidate.probability, 4) + "  " + word + "\n";
      found.push_back(
          {{"id", candidate.id}, {"token", word}, {"probability", candidate.probability}});
    }
    masks.push_back({{"position", i}, {"candidates", std::move(found)}});
  }
  if (args_.is_json)
    print({{"model", args_.model},
           {"kind", name(model_.kind())},
           {"prompt", {{"ids", ids}}},
           {"masks", masks}});
  else
    write_result("", lines);
}

// A line of numbers for each text; with -o a file instead.
void Run::embed() {
  std::vector<Session::Text> texts;
  for (const std::string& text : args_.embed)
    texts.push_back({.ids = ids_of(*words_, "--embed", text)});
  const Clock::time_point begin = Clock::now();
  const Tensor<float, 2> vectors = session_.embed(texts);
  index_t tokens = 0;
  for (const Session::Text& text : texts) tokens += static_cast<index_t>(text.ids.size());
  note(fmt::format("texts: {}", rate_text(tokens, seconds_since(begin))));
  const index_t d = vectors.shape()[1];
  if (!args_.out.empty()) {
    FileTensor tensor = make_tensor(DType::f32, {vectors.shape()[0], d});
    std::copy_n(reinterpret_cast<const std::byte*>(vectors.data()), tensor.bytes.size(),
                tensor.bytes.data());
    write_for("run", "-o", [&] { write_tensor(args_.out, tensor, "embeddings"); });
    return;
  }
  Json json = Json::array();
  std::string lines;
  for (index_t n = 0; n < vectors.shape()[0]; ++n) {
    Json numbers = Json::array();
    for (index_t e = 0; e < d; ++e) {
      numbers.push_back(vectors(n, e));
      lines += (e > 0 ? " " : "") + number_text(vectors(n, e), DType::f32);
    }
    lines += "\n";
    json.push_back(std::move(numbers));
  }
  if (args_.is_json)
    print({{"model", args_.model}, {"kind", name(model_.kind())}, {"embeddings", json}});
  else
    write_result("", lines);
}

}  // namespace glasshead::cli
