// The crate's tokenizer as an object. A library configured without tokenizers has no other part
// that differs: here `is_built()` is false and nothing can be made.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "glasshead/error.h"
#include "glasshead/tokenizer.h"
#include "text/vocabulary.h"

struct GlassheadWords;

namespace glasshead::text {

class Words {
 public:
  static bool is_built();
  // Null, and one or more problems, if the bytes or parts are no tokenizer.
  static std::shared_ptr<const Words> from_json(std::span<const std::byte> json,
                                                std::vector<Problem>& problems);
  static std::shared_ptr<const Words> from(const Vocabulary& vocabulary,
                                           std::vector<Problem>& problems);
  ~Words();
  Words(const Words&) = delete;
  Words& operator=(const Words&) = delete;

  index_t size() const;
  bool are_pieces() const;  // a text is its ids' pieces, one after the other
  // Ids are in [0, size()).
  bool is_special(index_t id) const;
  std::optional<index_t> id_of(std::string_view token) const;
  // False, and why, if there is no such token (ids may have holes) or no such encoding.
  bool token(index_t id, std::string& out, std::string& why) const;
  bool piece(index_t id, bool is_first, std::string& out, std::string& why) const;
  bool encode(std::string_view text, bool adds_special, Encoding& out, std::string& why) const;
  bool decode(const std::vector<index_t>& ids, bool skips_special, std::string& out,
              std::string& why) const;

 private:
  explicit Words(GlassheadWords* words) : words_(words) {}
  [[maybe_unused]] GlassheadWords* words_;  // in a library without tokenizers
};

}  // namespace glasshead::text
