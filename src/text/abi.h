// The C ABI of rust/: what rust/src/lib.rs, guard.rs and parts.rs declare, which change together
// with this. A status other than 0 comes with a message, a line for each problem.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

struct GlassheadWords;  // a tokenizer; several threads may use one at once

struct GlassheadView {  // the caller's bytes, read during the call
  const std::uint8_t* data;
  std::size_t size;
};

struct GlassheadText {  // the crate's bytes, until glasshead_text_free
  std::uint8_t* data;
  std::size_t size;
};

struct GlassheadEncoding {  // the crate's, until glasshead_encoding_free
  std::uint32_t* ids;
  std::uint64_t* begin;  // bytes [begin, end) of the text; empty for added tokens
  std::uint64_t* end;
  std::size_t count;
};

struct GlassheadList {  // texts, one after the other
  GlassheadView text;
  const std::uint64_t* ends;  // where each ends in `text`
  std::size_t count;
};

struct GlassheadParts {  // text/vocabulary.h says what the numbers mean
  std::uint32_t algorithm;
  std::uint32_t pre;
  std::uint32_t flags;
  std::int64_t unknown;  // -1: none
  GlassheadList tokens;
  const std::uint8_t* kinds;  // of each token
  const float* scores;        // of each token; null: none
  GlassheadList merges;
  GlassheadView charsmap;
  const std::uint32_t* before;
  std::size_t before_count;
  const std::uint32_t* after;
  std::size_t after_count;
};

std::uint32_t glasshead_words_from_json(GlassheadView json, GlassheadWords** out,
                                        GlassheadText* message);
std::uint32_t glasshead_words_from_parts(const GlassheadParts* parts, GlassheadWords** out,
                                         GlassheadText* message);
void glasshead_words_free(GlassheadWords* words);
std::size_t glasshead_words_size(const GlassheadWords* words);
std::uint32_t glasshead_words_are_pieces(const GlassheadWords* words);
std::uint32_t glasshead_words_is_special(const GlassheadWords* words, std::uint32_t id);
std::int64_t glasshead_words_id_of(const GlassheadWords* words, GlassheadView token);
std::uint32_t glasshead_words_token(const GlassheadWords* words, std::uint32_t id,
                                    GlassheadText* out, GlassheadText* message);
std::uint32_t glasshead_words_piece(const GlassheadWords* words, std::uint32_t id,
                                    std::uint32_t is_first, GlassheadText* out,
                                    GlassheadText* message);
std::uint32_t glasshead_words_encode(const GlassheadWords* words, GlassheadView text,
                                     std::uint32_t adds_special, GlassheadEncoding* out,
                                     GlassheadText* message);
std::uint32_t glasshead_words_decode(const GlassheadWords* words, const std::uint32_t* ids,
                                     std::size_t count, std::uint32_t skips_special,
                                     GlassheadText* out, GlassheadText* message);
void glasshead_encoding_free(GlassheadEncoding encoding);
void glasshead_text_free(GlassheadText text);
}
