// A vocabulary by its parts: what every format but tokenizer.json is read into, and what the crate
// builds a tokenizer from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "glasshead/tensor.h"

namespace glasshead::text {

// The numbers of these lists are those of rust/src/parts.rs and rust/src/pre.rs.
enum class Algorithm : std::uint32_t {
  byte_bpe = 0,           // GPT-2's: merges over bytes, spelled in its alphabet
  sentencepiece_bpe = 1,  // U+2581 for a space, <0xNN> for bytes; merges made from scores
  wordpiece = 2,          // BERT's
  unigram = 3,            // T5's: the best sum of scores
  symbols = 4,            // a token for each symbol of SMILES
};

// How a byte-level vocabulary cuts a text into words.
enum class Pre : std::uint32_t {
  none = 0,
  gpt2 = 1,
  digits_gpt2 = 2,  // each digit alone, then as GPT-2
  words_3 = 3,      // digits by up to three: Llama 3
  words_1 = 4,      // digits alone: Qwen 2 and 3
  words_1_marks = 5,
  cased_1 = 6,  // words end before an upper-case letter: Tekken
  cased_3 = 7,  // GPT-4o
  falcon = 8,
};

// As GGUF numbers them, and one more.
enum class Kind : std::uint8_t {
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6,
  control_with_spaces = 7,  // takes the spaces before it: RoBERTa's <mask>
};

// What the files say these ids are.
struct Specials {
  std::optional<index_t> bos, eos, pad, unk, mask, cls, sep;
};

struct Vocabulary {
  Algorithm algorithm = Algorithm::byte_bpe;
  Pre pre = Pre::none;                 // of byte_bpe
  std::vector<std::string> tokens;     // by id
  std::vector<Kind> kinds;             // of each token
  std::vector<float> scores;           // of each token, or empty
  std::vector<std::string> merges;     // "left right"
  std::string charsmap;                // SentencePiece's precompiled map; empty: none
  std::vector<index_t> before, after;  // put around a text
  bool ignores_merges = false;         // a word that is a token is that token
  bool adds_space = false;             // in front of a text
  bool lowers_case = false;
  bool strips_accents = false;
  bool splits_cjk = true;
  bool composes = false;      // NFC first
  bool joins_spaces = false;  // runs of spaces are one; those at the end go
  bool trims_offsets = false;
  Specials specials;
  std::string chat_template;
};

}  // namespace glasshead::text
