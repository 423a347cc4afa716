// Text to token ids and back, by Hugging Face's `tokenizers` (built in where cargo is found, unless
// the library was configured with -DGLASSHEAD_TOKENIZERS=OFF: without it `load` throws an
// OptionError that says so, and models take token ids).
//
//   Tokenizer words = Tokenizer::load("stories260K");  // tokenizer.json, vocab.txt, .gguf ...
//   Encoding e = words.encode("Once upon a time");     // ids, and which bytes each covers
//   words.decode(e.ids)                                // the text again
//
//   Utf8Stream stream(words);
//   out << stream.push(id);                            // never half a character
//
// docs/tokenizers.md says which files are read, and how.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "glasshead/error.h"
#include "glasshead/tensor.h"

namespace glasshead {

struct ByteRange {
  index_t begin = 0, end = 0;  // into the text that was encoded; empty for tokens that were added
};

struct Encoding {
  std::vector<index_t> ids;
  std::vector<ByteRange> bytes;  // one for each id; several tokens may share one character
};

class Tokenizer {
 public:
  // From a model's directory (tokenizer.json; vocab.json and merges.txt; vocab.txt; tok512.bin: the
  // first that is there), one of these files, or a .gguf with its vocabulary inside; of a
  // .safetensors file its directory. Throws IoError, FormatError or OptionError with everything
  // that is wrong.
  static Tokenizer load(const std::string& path);
  static bool is_available();  // built with the tokenizers crate

  // `adds_special`: what the model puts around a text (BOS, [CLS] and [SEP]). Special tokens that
  // the text spells are recognised either way. The text is bytes: what is not UTF-8 is refused
  // (OptionError), unless the vocabulary has its bytes. A token of part of a character covers the
  // whole character.
  Encoding encode(std::string_view text, bool adds_special = true) const;
  // `skips_special`: without the special tokens. Bytes that are not UTF-8 become U+FFFD.
  std::string decode(const std::vector<index_t>& ids, bool skips_special = true) const;

  index_t size() const;                    // ids are in [0, size)
  std::string token(index_t id) const;     // as the vocabulary spells it
  std::string bytes_of(index_t id) const;  // the bytes it stands for in a text
  std::optional<index_t> id_of(std::string_view token) const;
  bool is_special(index_t id) const;

  // What the files say of these; nullopt where they say nothing.
  std::optional<index_t> bos() const, eos() const, pad() const, unk() const, mask() const,
      cls() const, sep() const;
  // The files' template of a chat, for glasshead/chat.h; empty where they have none.
  const std::string& chat_template() const;

  struct Impl;  // the library's own

 private:
  friend class Utf8Stream;
  explicit Tokenizer(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

// Ids to text as they come: what cannot yet be a whole character is kept back. The texts that
// `push` and `finish` give are, put together, `decode(ids)`.
class Utf8Stream {
 public:
  explicit Utf8Stream(const Tokenizer& tokenizer);
  std::string push(index_t id);  // the characters that this id completes
  std::string finish();          // what is left, as U+FFFD where it is not UTF-8

 private:
  Tokenizer tokenizer_;
  std::string held_;          // bytes of a character that is not whole
  std::vector<index_t> ids_;  // all so far, where only a whole text can be decoded (WordPiece)
  std::size_t shown_ = 0;     // bytes of their text
  bool is_first_ = true;
};

}  // namespace glasshead
