#include "glasshead/tokenizer.h"

#include "base/fail.h"
#include "text/files.h"
#include "text/utf8.h"

namespace glasshead {

struct Tokenizer::Impl {
  text::Loaded loaded;
  const text::Words& words() const { return *loaded.words; }
};

namespace {

// Every id that is none: false, and the problems.
bool are_ids(const text::Words& words, const std::vector<index_t>& ids,
             std::vector<Problem>& problems) {
  for (std::size_t n = 0; n < ids.size() && problems.size() < 10; ++n)
    if (ids[n] < 0 || ids[n] >= words.size())
      problems.push_back(
          {"ids[" + std::to_string(n) + "]", "is " + std::to_string(ids[n]) + "; ids are in [0, " +
                                                 std::to_string(words.size()) + ")"});
  return problems.empty();
}

void need_id(const char* function, const text::Words& words, index_t id) {
  if (id < 0 || id >= words.size())
    fail(ErrorKind::option, function, "id",
         "is " + std::to_string(id) + "; ids are in [0, " + std::to_string(words.size()) + ")");
}

}  // namespace

bool Tokenizer::is_available() { return text::Words::is_built(); }

Tokenizer Tokenizer::load(const std::string& path) {
  if (!is_available())
    fail(ErrorKind::option, "Tokenizer::load", path,
         "cannot be read: this library was configured without tokenizers "
         "(GLASSHEAD_TOKENIZERS=OFF, or no cargo was found); models take token ids");
  return Tokenizer(std::make_shared<const Impl>(Impl{text::load_words(path)}));
}

Encoding Tokenizer::encode(std::string_view text, bool adds_special) const {
  Encoding encoding;
  std::string why;
  if (!impl_->words().encode(text, adds_special, encoding, why))
    fail(ErrorKind::option, "encode", "text", why);
  return encoding;
}

std::string Tokenizer::decode(const std::vector<index_t>& ids, bool skips_special) const {
  std::vector<Problem> problems;
  if (!are_ids(impl_->words(), ids, problems))
    fail(ErrorKind::option, "decode", std::move(problems));
  std::string text, why;
  if (!impl_->words().decode(ids, skips_special, text, why))
    fail(ErrorKind::option, "decode", "ids", why);
  return text;
}

index_t Tokenizer::size() const { return impl_->words().size(); }

std::string Tokenizer::token(index_t id) const {
  need_id("token", impl_->words(), id);
  std::string text, why;
  if (!impl_->words().token(id, text, why)) fail(ErrorKind::option, "token", "id", why);
  return text;
}

std::string Tokenizer::bytes_of(index_t id) const {
  need_id("bytes_of", impl_->words(), id);
  std::string bytes, why;
  if (!impl_->words().piece(id, false, bytes, why)) fail(ErrorKind::option, "bytes_of", "id", why);
  return bytes;
}

std::optional<index_t> Tokenizer::id_of(std::string_view token) const {
  return impl_->words().id_of(token);
}

bool Tokenizer::is_special(index_t id) const {
  need_id("is_special", impl_->words(), id);
  return impl_->words().is_special(id);
}

std::optional<index_t> Tokenizer::bos() const { return impl_->loaded.specials.bos; }
std::optional<index_t> Tokenizer::eos() const { return impl_->loaded.specials.eos; }
std::optional<index_t> Tokenizer::pad() const { return impl_->loaded.specials.pad; }
std::optional<index_t> Tokenizer::unk() const { return impl_->loaded.specials.unk; }
std::optional<index_t> Tokenizer::mask() const { return impl_->loaded.specials.mask; }
std::optional<index_t> Tokenizer::cls() const { return impl_->loaded.specials.cls; }
std::optional<index_t> Tokenizer::sep() const { return impl_->loaded.specials.sep; }

const std::string& Tokenizer::chat_template() const { return impl_->loaded.chat_template; }

Utf8Stream::Utf8Stream(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

std::string Utf8Stream::push(index_t id) {
  const text::Words& words = tokenizer_.impl_->words();
  need_id("push", words, id);
  if (words.is_special(id)) return {};
  if (words.are_pieces()) {
    std::string piece, why;
    if (!words.piece(id, is_first_, piece, why)) fail(ErrorKind::option, "push", "id", why);
    is_first_ = false;
    held_ += piece;
    return text::take_characters(held_, false);
  }
  ids_.push_back(id);
  const std::string text = tokenizer_.decode(ids_);
  const std::string more = text.size() > shown_ ? text.substr(shown_) : "";
  shown_ += more.size();
  return more;
}

std::string Utf8Stream::finish() { return text::take_characters(held_, true); }

}  // namespace glasshead
