// vocab.json with merges.txt, vocab.txt, and llama2.c's tokenizer.bin.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "formats/shown.h"
#include "text/sources.h"
#include "text/spelling.h"

namespace glasshead::text {
namespace {

using formats::shown;

std::optional<index_t> position(const Vocabulary& vocabulary, std::string_view token) {
  const auto found = std::find(vocabulary.tokens.begin(), vocabulary.tokens.end(), token);
  if (found == vocabulary.tokens.end()) return std::nullopt;
  return found - vocabulary.tokens.begin();
}

// {"token": id}: every id from 0 to the number of tokens once.
void read_ids(std::string_view json, Vocabulary& out, std::vector<Problem>& problems) {
  formats::Config entries;
  if (!formats::parse_config(json, entries, problems)) return;
  const auto count = static_cast<index_t>(entries.size());
  out.tokens.resize(entries.size());
  std::vector<bool> is_taken(entries.size());
  std::size_t wrong = 0;
  for (const auto& [token, value] : entries) {
    const auto* id = std::get_if<std::int64_t>(&value.is);
    const bool is_id = id != nullptr && *id >= 0 && *id < count;
    if (is_id && !is_taken[static_cast<std::size_t>(*id)]) {
      is_taken[static_cast<std::size_t>(*id)] = true;
      out.tokens[static_cast<std::size_t>(*id)] = token;
    } else if (++wrong <= 10) {
      problems.push_back({"vocab.json", "the id of " + shown(token) +
                                            (is_id ? ", " + std::to_string(*id) + ", is taken"
                                                   : " is not a whole number in [0, " +
                                                         std::to_string(count) + ")")});
    }
  }
}

void read_merges(std::string_view text, Vocabulary& out) {
  std::vector<std::string> rows = lines(text);
  if (!rows.empty() && rows.front().starts_with("#version")) rows.erase(rows.begin());
  while (!rows.empty() && rows.back().empty()) rows.pop_back();
  out.merges = std::move(rows);
}

// Tokens that a fast tokenizer's files add behind the vocabulary: {"id": {"content": ...}}.
void add_decoder(const Beside& beside, Vocabulary& out, std::vector<Problem>& problems) {
  std::map<index_t, std::pair<std::string, Kind>> added;
  const auto place = [&](const std::string& id_text, const std::string& content, bool is_special,
                         bool takes_spaces) {
    const bool is_number = !id_text.empty() && id_text.size() < 10 &&
                           id_text.find_first_not_of("0123456789") == std::string::npos;
    if (!is_number) {
      problems.push_back({"added tokens", shown(id_text) + " is no id"});
      return;
    }
    const Kind special = takes_spaces ? Kind::control_with_spaces : Kind::control;
    added.insert({std::stol(id_text), {content, is_special ? special : Kind::user_defined}});
  };
  if (const auto* value = formats::find(beside.tokenizer_config, "added_tokens_decoder"))
    if (const auto* tokens = std::get_if<formats::ConfigObject>(&value->is))
      for (const auto& [id, token] : *tokens)
        if (const auto* fields = std::get_if<formats::ConfigObject>(&token.is)) {
          formats::Reader reader(*fields, problems);
          place(id, reader.text("content"), reader.flag_or("special", false),
                reader.flag_or("lstrip", false));
        }
  for (const auto& [content, value] : beside.added_tokens)
    if (const auto* id = std::get_if<std::int64_t>(&value.is))
      place(std::to_string(*id), content, false, false);
  for (const auto& [id, token] : added) {
    const auto at = static_cast<std::size_t>(id);
    if (at == out.tokens.size()) {
      out.tokens.push_back(token.first);
      out.kinds.push_back(token.second);
    } else if (at < out.tokens.size() && out.tokens[at] == token.first) {
      out.kinds[at] = token.second;
    } else {
      problems.push_back(
          {"added tokens",
           shown(token.first) + " says its id is " + std::to_string(id) +
               (at < out.tokens.size() ? ", that of " + shown(out.tokens[at])
                                       : "; the next is " + std::to_string(out.tokens.size()))});
    }
  }
}

// Marks the tokens that the files name as special.
void mark_specials(const Beside& beside, Vocabulary& out, std::vector<Problem>& problems) {
  add_specials(
      beside, [&](std::string_view token) { return position(out, token); },
      static_cast<index_t>(out.tokens.size()), out.specials, problems);
  const Specials& ids = out.specials;
  for (const std::optional<index_t>& id :
       {ids.bos, ids.eos, ids.pad, ids.unk, ids.mask, ids.cls, ids.sep})
    if (id && out.kinds[static_cast<std::size_t>(*id)] != Kind::control_with_spaces)
      out.kinds[static_cast<std::size_t>(*id)] = Kind::control;
  out.chat_template = find_chat_template(beside, problems);
}

void set_if_absent(std::optional<index_t>& id, const Vocabulary& out, std::string_view token) {
  if (!id) id = position(out, token);
}

// RoBERTa's names, where the files say nothing.
void set_roberta(Vocabulary& out) {
  Specials& ids = out.specials;
  set_if_absent(ids.bos, out, "<s>");
  set_if_absent(ids.eos, out, "</s>");
  set_if_absent(ids.pad, out, "<pad>");
  set_if_absent(ids.unk, out, "<unk>");
  set_if_absent(ids.mask, out, "<mask>");
  set_if_absent(ids.cls, out, "<s>");
  set_if_absent(ids.sep, out, "</s>");
  if (ids.mask) out.kinds[static_cast<std::size_t>(*ids.mask)] = Kind::control_with_spaces;
  if (ids.cls) out.before = {*ids.cls};
  if (ids.sep) out.after = {*ids.sep};
  out.trims_offsets = true;
}

}  // namespace

bool read_bpe(std::string_view vocab_json, std::string_view merges_txt, const Beside& beside,
              Vocabulary& out, std::vector<Problem>& problems) {
  const std::size_t before = problems.size();
  read_ids(vocab_json, out, problems);
  if (problems.size() != before) return false;
  out.kinds.assign(out.tokens.size(), Kind::normal);
  read_merges(merges_txt, out);
  add_decoder(beside, out, problems);
  formats::Reader config(beside.config, problems);
  std::string type = config.text_or("model_type", "");
  if (type.empty())  // no config.json: by what tells them apart
    type = position(out, "<s>") && position(out, "<mask>") ? "roberta" : "gpt2";
  out.algorithm = Algorithm::byte_bpe;
  out.pre = Pre::gpt2;
  if (type == "roberta") {
    set_roberta(out);
  } else if (type == "qwen2" || type == "qwen3") {
    out.pre = Pre::words_1;
    out.composes = true;
  } else if (type == "gpt2") {
    for (auto field : {&Specials::bos, &Specials::eos, &Specials::unk})
      set_if_absent(out.specials.*field, out, "<|endoftext|>");
  } else {
    problems.push_back({"model_type", "is " + shown(type) +
                                          "; how its words are cut is known of gpt2, roberta, "
                                          "qwen2 and qwen3. A tokenizer.json says it itself"});
  }
  mark_specials(beside, out, problems);
  return problems.size() == before;
}

bool read_vocab_txt(std::string_view vocab_txt, const Beside& beside, Vocabulary& out,
                    std::vector<Problem>& problems) {
  const std::size_t before = problems.size();
  out.tokens = lines(vocab_txt);
  if (out.tokens.empty()) {
    problems.push_back({"vocab.txt", "is empty; a token is needed in each line"});
    return false;
  }
  out.kinds.assign(out.tokens.size(), Kind::normal);
  Specials& ids = out.specials;
  mark_specials(beside, out, problems);
  set_if_absent(ids.pad, out, "[PAD]");
  // By name, whatever config.json's numbers are: they often are left at what no one set.
  for (const auto& [field, name] :
       {std::pair{&Specials::unk, "[UNK]"}, std::pair{&Specials::cls, "[CLS]"},
        std::pair{&Specials::sep, "[SEP]"}, std::pair{&Specials::mask, "[MASK]"}}) {
    set_if_absent(ids.*field, out, name);
    if (ids.*field) out.kinds[static_cast<std::size_t>(*(ids.*field))] = Kind::control;
  }
  if (ids.pad) out.kinds[static_cast<std::size_t>(*ids.pad)] = Kind::control;
  if (!ids.unk) problems.push_back({"vocab.txt", "has no [UNK], which it needs"});
  if (ids.cls) out.before = {*ids.cls};
  if (ids.sep) out.after = {*ids.sep};
  if (std::all_of(out.tokens.begin(), out.tokens.end(), is_smiles_symbol)) {
    out.algorithm = Algorithm::symbols;
    return problems.size() == before;
  }
  out.algorithm = Algorithm::wordpiece;
  formats::Reader config(beside.tokenizer_config, problems);
  out.lowers_case = config.flag_or("do_lower_case", !has_upper_case(out.tokens));
  out.strips_accents = config.flag_or("strip_accents", out.lowers_case);
  out.splits_cjk = config.flag_or("tokenize_chinese_chars", true);
  return problems.size() == before;
}

namespace {

constexpr std::size_t kFirstPiece = 259;  // after unk, BOS, EOS and a token for each byte

// At most ten.
class BinProblems {
 public:
  explicit BinProblems(std::vector<Problem>& problems)
      : problems_(problems), before_(problems.size()) {}
  void add(std::string what) {
    if (problems_.size() - before_ < 10) problems_.push_back({"tokenizer.bin", std::move(what)});
  }
  bool are_none() const { return problems_.size() == before_; }

 private:
  std::vector<Problem>& problems_;
  std::size_t before_;
};

std::uint32_t word_at(std::string_view bytes, std::size_t at) {  // little-endian
  std::uint32_t word = 0;
  for (std::size_t n = 0; n < 4; ++n)
    word |= std::uint32_t{static_cast<unsigned char>(bytes[at + n])} << (8 * n);
  return word;
}

void read_pieces(std::string_view bytes, Vocabulary& out, BinProblems& problems) {
  const std::uint32_t longest = word_at(bytes, 0);
  for (std::size_t at = 4; at < bytes.size();) {
    const std::string where = "piece " + std::to_string(out.tokens.size());
    if (bytes.size() - at < 8) return problems.add(where + " is cut off");
    const float score = std::bit_cast<float>(word_at(bytes, at));
    const std::uint32_t length = word_at(bytes, at + 4);
    if (length > longest || length > bytes.size() - at - 8)
      return problems.add(where + " has " + std::to_string(static_cast<std::int32_t>(length)) +
                          " bytes; the longest has " + std::to_string(longest) + ", and " +
                          std::to_string(bytes.size() - at - 8) + " are left");
    if (!std::isfinite(score)) problems.add(where + " has a score that is not finite");
    out.tokens.emplace_back(bytes.substr(at + 8, length));
    out.scores.push_back(score);
    at += 8 + length;
  }
}

// The first ids under the names that others give them; spaces as SentencePiece marks them.
void spell_pieces(Vocabulary& out, BinProblems& problems) {
  out.kinds.assign(out.tokens.size(), Kind::normal);
  for (std::size_t id = 0; id < out.tokens.size(); ++id) {
    std::string& token = out.tokens[id];
    if (id < 3) {
      token = std::array{"<unk>", "<s>", "</s>"}[id];
      out.kinds[id] = id == 0 ? Kind::unknown : Kind::control;
    } else if (id < kFirstPiece) {
      if (byte_of(token) != id - 3)
        problems.add("piece " + std::to_string(id) + " is " + shown(token));
      out.kinds[id] = Kind::byte;
    } else {
      std::string marked;
      for (const char c : token) marked += c == ' ' ? std::string(kSpaceMark) : std::string(1, c);
      token = std::move(marked);
    }
  }
}

}  // namespace

bool read_tokenizer_bin(std::string_view bytes, Vocabulary& out, std::vector<Problem>& found) {
  BinProblems problems(found);
  if (bytes.size() < 4) {
    problems.add("has " + std::to_string(bytes.size()) + " bytes; a size and pieces are needed");
    return false;
  }
  read_pieces(bytes, out, problems);
  const std::size_t count = out.tokens.size();
  if (count < kFirstPiece)
    problems.add("has " + std::to_string(count) +
                 " pieces; 3 and one for each of 256 bytes come first");
  if (!problems.are_none()) return false;
  out.algorithm = Algorithm::sentencepiece_bpe;
  spell_pieces(out, problems);
  out.adds_space = true;
  out.before = {1};
  out.specials.unk = 0;
  out.specials.bos = 1;
  out.specials.eos = 2;
  return problems.are_none();
}

}  // namespace glasshead::text
