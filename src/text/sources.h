// The vocabulary files, from bytes to a Vocabulary. Each function returns false, and one or more
// problems, if the bytes are not what the format says. They are hostile input: counts and lengths
// are checked against the bytes there are.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/config.h"
#include "glasshead/error.h"
#include "text/vocabulary.h"

namespace glasshead::text {

// The JSON files that may lie beside a vocabulary; empty where they do not.
struct Beside {
  formats::Config config;            // config.json
  formats::Config tokenizer_config;  // tokenizer_config.json
  formats::Config special_tokens;    // special_tokens_map.json
  formats::Config added_tokens;      // added_tokens.json
  std::string chat_template;         // chat_template.jinja
};

// vocab.json {"token": id} and merges.txt, a pair of tokens in each line, best first. What cuts the
// words goes by config.json's model_type.
bool read_bpe(std::string_view vocab_json, std::string_view merges_txt, const Beside& beside,
              Vocabulary& out, std::vector<Problem>& problems);

// vocab.txt, a token in each line. WordPiece; or symbols, if every token is one symbol of SMILES.
bool read_vocab_txt(std::string_view vocab_txt, const Beside& beside, Vocabulary& out,
                    std::vector<Problem>& problems);

// llama2.c's tokenizer.bin: u32 longest piece; then for each id f32 score, i32 length, bytes.
bool read_tokenizer_bin(std::string_view bytes, Vocabulary& out, std::vector<Problem>& problems);

// A GGUF's tokenizer.ggml keys. Not for one with tokenizer.huggingface.json, which says more.
bool read_gguf(const formats::Config& config, Vocabulary& out, std::vector<Problem>& problems);

// Fills in what `beside` says of the special tokens, and the chat template. `id_of` knows the
// vocabulary, which has `size` ids: config.json's numbers count where they are among them.
using IdOf = std::function<std::optional<index_t>(std::string_view token)>;
void add_specials(const Beside& beside, const IdOf& id_of, index_t size, Specials& specials,
                  std::vector<Problem>& problems);
std::string find_chat_template(const Beside& beside, std::vector<Problem>& problems);

// The text of a token in those files: a string, or an object with its "content". Empty: absent.
std::string token_text(const formats::Config& config, const std::string& key);

// How a GGUF's tokenizer.ggml.pre is read.
struct PreRule {
  Pre pre = Pre::none;
  bool ignores_merges = false;
  bool adds_bos = false;  // unless the file says so itself
  bool adds_eos = false;
  bool composes = false;
};
std::optional<PreRule> find_pre_rule(std::string_view name);

}  // namespace glasshead::text
