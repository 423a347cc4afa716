// The vocabulary inside a GGUF.
#include <algorithm>
#include <cmath>

#include "formats/shown.h"
#include "text/sources.h"
#include "text/spelling.h"

namespace glasshead::text {
namespace {

using formats::Reader;
using formats::shown;

std::string key(const char* name) { return std::string("tokenizer.ggml.") + name; }

class Gguf {
 public:
  Gguf(const formats::Config& config, Vocabulary& out, std::vector<Problem>& problems)
      : reader_(config, problems), out_(out), problems_(problems) {}

  void read() {
    const std::string model = reader_.text(key("model"));
    out_.tokens = reader_.texts_or(key("tokens"), {});
    if (out_.tokens.empty()) problem("tokens", "is missing or empty; a vocabulary is needed");
    read_arrays();
    read_ids();
    out_.chat_template = reader_.text_or("tokenizer.chat_template", "");
    if (model == "gpt2")
      byte_bpe();
    else if (model == "llama")
      sentencepiece();
    else if (model == "bert")
      wordpiece();
    else if (model == "t5")
      unigram();
    else if (!model.empty())
      problem("model", "is " + shown(model) + "; gpt2, llama, bert and t5 are read");
  }

 private:
  void problem(const char* name, std::string what) {
    problems_.push_back({key(name), std::move(what)});
  }

  void need_length(const char* name, std::size_t length) {
    if (length != out_.tokens.size())
      problem(name, "has " + std::to_string(length) + " entries; there are " +
                        std::to_string(out_.tokens.size()) + " tokens");
  }

  void read_arrays() {
    const std::size_t count = out_.tokens.size();
    if (reader_.has(key("scores"))) {
      for (const double score : reader_.numbers_or(key("scores"), {}))
        out_.scores.push_back(static_cast<float>(score));
      need_length("scores", out_.scores.size());
    }
    if (reader_.has(key("token_type"))) {
      const std::vector<index_t> kinds = reader_.wholes_or(key("token_type"), {});
      need_length("token_type", kinds.size());
      for (const index_t kind : kinds) {
        if (kind < 1 || kind > 6) {
          problem("token_type", "has " + std::to_string(kind) + "; 1 to 6 are known");
          break;
        }
        out_.kinds.push_back(static_cast<Kind>(kind));
      }
    } else {
      for (const std::string& token : out_.tokens)
        out_.kinds.push_back(byte_of(token) ? Kind::byte : Kind::normal);
    }
    out_.kinds.resize(count, Kind::normal);
    out_.merges = reader_.texts_or(key("merges"), {});
  }

  std::optional<index_t> id(const char* name) {
    if (!reader_.has(key(name))) return std::nullopt;
    const index_t found = reader_.whole(key(name));
    if (found < static_cast<index_t>(out_.tokens.size())) return found;
    problem(name, "is " + std::to_string(found) + "; there are " +
                      std::to_string(out_.tokens.size()) + " tokens");
    return std::nullopt;
  }

  void read_ids() {
    Specials& ids = out_.specials;
    ids.bos = id("bos_token_id");
    ids.eos = id("eos_token_id");
    ids.unk = id("unknown_token_id");
    ids.pad = id("padding_token_id");
    ids.mask = id("mask_token_id");
    ids.cls = id("cls_token_id");
    // The files spell it so; the specification does not.
    ids.sep = id("seperator_token_id");
    if (!ids.sep) ids.sep = id("separator_token_id");
  }

  void surround(bool adds_bos, bool adds_eos, std::optional<index_t> first,
                std::optional<index_t> last) {
    adds_bos = reader_.flag_or(key("add_bos_token"), adds_bos && first);
    adds_eos = reader_.flag_or(key("add_eos_token"), adds_eos && last);
    if (adds_bos && !first) problem("add_bos_token", "is true, and there is no bos_token_id");
    if (adds_eos && !last) problem("add_eos_token", "is true, and there is no eos_token_id");
    if (adds_bos && first) out_.before = {*first};
    if (adds_eos && last) out_.after = {*last};
  }

  void byte_bpe() {
    out_.algorithm = Algorithm::byte_bpe;
    const std::string name = reader_.text_or(key("pre"), "");
    const std::optional<PreRule> rule = find_pre_rule(name);
    if (!rule) {
      problem("pre",
              (name.empty() || name == "default" ? std::string("says nothing of how words are cut")
                                                 : "is " + shown(name) + ", which is not known") +
                  "; without it the ids would be guesses");
      return;
    }
    if (out_.merges.empty()) problem("merges", "is missing or empty; gpt2 needs it");
    out_.pre = rule->pre;
    out_.ignores_merges = rule->ignores_merges;
    out_.composes = rule->composes;
    const Specials& ids = out_.specials;
    surround(rule->adds_bos, rule->adds_eos, ids.bos ? ids.bos : ids.cls,
             ids.eos ? ids.eos : ids.sep);
  }

  void sentencepiece() {
    out_.algorithm = Algorithm::sentencepiece_bpe;
    if (out_.scores.empty() && out_.merges.empty())
      problem("scores", "is missing; llama needs it, or merges");
    if (!out_.specials.unk) out_.specials.unk = first_of(Kind::unknown);
    out_.adds_space = reader_.flag_or(key("add_space_prefix"), true);
    surround(true, false, out_.specials.bos, out_.specials.eos);
  }

  // The converter took the ## away and put U+2581 in front of what begins a word.
  void wordpiece() {
    out_.algorithm = Algorithm::wordpiece;
    for (std::size_t n = 0; n < out_.tokens.size(); ++n) {
      std::string& token = out_.tokens[n];
      const bool is_bracketed = token.size() > 2 && token.front() == '[' && token.back() == ']';
      if (out_.kinds[n] == Kind::control || out_.kinds[n] == Kind::unknown || is_bracketed)
        continue;
      // The mark alone was ##U+2581: no word is empty.
      if (token.starts_with(kSpaceMark) && token.size() > kSpaceMark.size())
        token.erase(0, kSpaceMark.size());
      else
        token.insert(0, "##");
    }
    if (!out_.specials.unk) out_.specials.unk = first_of(Kind::unknown);
    if (!out_.specials.unk) out_.specials.unk = position("[UNK]");
    out_.lowers_case = out_.strips_accents = !has_upper_case(out_.tokens);
    const Specials& ids = out_.specials;
    surround(true, true, ids.cls ? ids.cls : ids.bos, ids.sep ? ids.sep : ids.eos);
  }

  void unigram() {
    out_.algorithm = Algorithm::unigram;
    if (out_.scores.empty()) problem("scores", "is missing; t5 needs it");
    if (!out_.specials.unk) out_.specials.unk = first_of(Kind::unknown);
    for (const index_t byte : reader_.wholes_or(key("precompiled_charsmap"), {})) {
      if (byte > 255) {
        problem("precompiled_charsmap", "has " + std::to_string(byte) + "; bytes are needed");
        break;
      }
      out_.charsmap += static_cast<char>(byte);
    }
    out_.adds_space = reader_.flag_or(key("add_space_prefix"), true);
    out_.joins_spaces = reader_.flag_or(key("remove_extra_whitespaces"), true);
    surround(false, true, out_.specials.bos, out_.specials.eos);
  }

  std::optional<index_t> first_of(Kind kind) const {
    const auto found = std::find(out_.kinds.begin(), out_.kinds.end(), kind);
    if (found == out_.kinds.end()) return std::nullopt;
    return found - out_.kinds.begin();
  }

  std::optional<index_t> position(std::string_view token) const {
    const auto found = std::find(out_.tokens.begin(), out_.tokens.end(), token);
    if (found == out_.tokens.end()) return std::nullopt;
    return found - out_.tokens.begin();
  }

  Reader reader_;
  Vocabulary& out_;
  std::vector<Problem>& problems_;
};

}  // namespace

bool read_gguf(const formats::Config& config, Vocabulary& out, std::vector<Problem>& problems) {
  const std::size_t before = problems.size();
  Gguf(config, out, problems).read();
  return problems.size() == before;
}

}  // namespace glasshead::text
