#include "text/words.h"

#include <cstdint>

#include "text/abi.h"

namespace glasshead::text {

#ifdef GLASSHEAD_HAS_TOKENIZERS

namespace {

GlassheadView view(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

std::string taken(const GlassheadText& text) {
  if (text.data == nullptr) return {};
  std::string copy(reinterpret_cast<const char*>(text.data), text.size);
  glasshead_text_free(text);
  return copy;
}

// "where: what" in each line; a line without a place is about the file.
void add_lines(const std::string& message, std::vector<Problem>& problems) {
  for (std::size_t begin = 0; begin <= message.size();) {
    std::size_t end = message.find('\n', begin);
    if (end == std::string::npos) end = message.size();
    const std::string line = message.substr(begin, end - begin);
    const std::size_t colon = line.find(": ");
    const bool has_place = colon != std::string::npos && line.find(' ') == colon + 1;
    problems.push_back(has_place ? Problem{line.substr(0, colon), line.substr(colon + 2)}
                                 : Problem{"tokenizer", line});
    begin = end + 1;
  }
}

// Texts one after the other, and where each ends.
struct Joined {
  explicit Joined(const std::vector<std::string>& texts) {
    for (const std::string& text : texts) {
      bytes += text;
      ends.push_back(bytes.size());
    }
  }
  GlassheadList list() const { return {view(bytes), ends.data(), ends.size()}; }
  std::string bytes;
  std::vector<std::uint64_t> ends;
};

std::uint32_t flags(const Vocabulary& vocabulary) {
  std::uint32_t bits = 0;
  std::uint32_t bit = 1;
  for (const bool is_set :
       {vocabulary.ignores_merges, vocabulary.adds_space, vocabulary.lowers_case,
        vocabulary.strips_accents, vocabulary.splits_cjk, vocabulary.composes,
        vocabulary.joins_spaces, vocabulary.trims_offsets}) {
    if (is_set) bits |= bit;
    bit <<= 1;
  }
  return bits;
}

std::vector<std::uint32_t> narrowed(const std::vector<index_t>& ids) {
  std::vector<std::uint32_t> result;
  result.reserve(ids.size());
  for (const index_t id : ids) result.push_back(static_cast<std::uint32_t>(id));
  return result;
}

}  // namespace

bool Words::is_built() { return true; }

std::shared_ptr<const Words> Words::from_json(std::span<const std::byte> json,
                                              std::vector<Problem>& problems) {
  GlassheadWords* words = nullptr;
  GlassheadText message{};
  if (glasshead_words_from_json({reinterpret_cast<const std::uint8_t*>(json.data()), json.size()},
                                &words, &message) == 0)
    return std::shared_ptr<const Words>(new Words(words));
  add_lines(taken(message), problems);
  return nullptr;
}

std::shared_ptr<const Words> Words::from(const Vocabulary& vocabulary,
                                         std::vector<Problem>& problems) {
  const Joined tokens(vocabulary.tokens), merges(vocabulary.merges);
  const std::vector<std::uint32_t> before = narrowed(vocabulary.before),
                                   after = narrowed(vocabulary.after);
  const GlassheadParts parts{
      .algorithm = static_cast<std::uint32_t>(vocabulary.algorithm),
      .pre = static_cast<std::uint32_t>(vocabulary.pre),
      .flags = flags(vocabulary),
      .unknown = vocabulary.specials.unk.value_or(-1),
      .tokens = tokens.list(),
      .kinds = reinterpret_cast<const std::uint8_t*>(vocabulary.kinds.data()),
      .scores = vocabulary.scores.empty() ? nullptr : vocabulary.scores.data(),
      .merges = merges.list(),
      .charsmap = view(vocabulary.charsmap),
      .before = before.data(),
      .before_count = before.size(),
      .after = after.data(),
      .after_count = after.size(),
  };
  GlassheadWords* words = nullptr;
  GlassheadText message{};
  if (glasshead_words_from_parts(&parts, &words, &message) == 0)
    return std::shared_ptr<const Words>(new Words(words));
  add_lines(taken(message), problems);
  return nullptr;
}

Words::~Words() { glasshead_words_free(words_); }

index_t Words::size() const { return static_cast<index_t>(glasshead_words_size(words_)); }

bool Words::are_pieces() const { return glasshead_words_are_pieces(words_) != 0; }

bool Words::is_special(index_t id) const {
  return glasshead_words_is_special(words_, static_cast<std::uint32_t>(id)) != 0;
}

std::optional<index_t> Words::id_of(std::string_view token) const {
  const std::int64_t id = glasshead_words_id_of(words_, view(token));
  return id < 0 ? std::nullopt : std::optional<index_t>(id);
}

bool Words::token(index_t id, std::string& out, std::string& why) const {
  GlassheadText text{}, message{};
  const bool is_there =
      glasshead_words_token(words_, static_cast<std::uint32_t>(id), &text, &message) == 0;
  (is_there ? out : why) = taken(is_there ? text : message);
  return is_there;
}

bool Words::piece(index_t id, bool is_first, std::string& out, std::string& why) const {
  GlassheadText text{}, message{};
  const bool is_there = glasshead_words_piece(words_, static_cast<std::uint32_t>(id),
                                              is_first ? 1 : 0, &text, &message) == 0;
  (is_there ? out : why) = taken(is_there ? text : message);
  return is_there;
}

bool Words::encode(std::string_view text, bool adds_special, Encoding& out,
                   std::string& why) const {
  GlassheadEncoding encoding{};
  GlassheadText message{};
  if (glasshead_words_encode(words_, view(text), adds_special ? 1 : 0, &encoding, &message) != 0) {
    why = taken(message);
    return false;
  }
  out.ids.assign(encoding.ids, encoding.ids + encoding.count);
  out.bytes.clear();
  out.bytes.reserve(encoding.count);
  for (std::size_t n = 0; n < encoding.count; ++n)
    out.bytes.push_back(
        {static_cast<index_t>(encoding.begin[n]), static_cast<index_t>(encoding.end[n])});
  glasshead_encoding_free(encoding);
  return true;
}

bool Words::decode(const std::vector<index_t>& ids, bool skips_special, std::string& out,
                   std::string& why) const {
  const std::vector<std::uint32_t> narrow = narrowed(ids);
  GlassheadText text{}, message{};
  const bool is_done = glasshead_words_decode(words_, narrow.data(), narrow.size(),
                                              skips_special ? 1 : 0, &text, &message) == 0;
  (is_done ? out : why) = taken(is_done ? text : message);
  return is_done;
}

#else  // no tokenizers: nothing is ever made

bool Words::is_built() { return false; }
std::shared_ptr<const Words> Words::from_json(std::span<const std::byte>, std::vector<Problem>&) {
  return nullptr;
}
std::shared_ptr<const Words> Words::from(const Vocabulary&, std::vector<Problem>&) {
  return nullptr;
}
Words::~Words() = default;
index_t Words::size() const { return 0; }
bool Words::are_pieces() const { return false; }
bool Words::is_special(index_t) const { return false; }
std::optional<index_t> Words::id_of(std::string_view) const { return std::nullopt; }
bool Words::token(index_t, std::string&, std::string&) const { return false; }
bool Words::piece(index_t, bool, std::string&, std::string&) const { return false; }
bool Words::encode(std::string_view, bool, Encoding&, std::string&) const { return false; }
bool Words::decode(const std::vector<index_t>&, bool, std::string&, std::string&) const {
  return false;
}

#endif

}  // namespace glasshead::text
