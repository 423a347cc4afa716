// What a HeadStudy holds, and how a session fills it.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "glasshead/head_study.h"
#include "model/head_pass.h"
#include "model/look.h"

namespace glasshead {

struct HeadStudy::Impl {
  // One attention of one layer.
  struct Seen {
    std::string name;
    index_t layer = 0;
    bool is_cross = false;
    index_t queries = 0, keys = 0;
    index_t repeated = 0;  // queries whose token came before
    std::vector<model::HeadSums> heads;
    // With keeps_rows.
    AttentionOptions options;
    index_t kv_heads = 0, d_k = 0;
    index_t kept_queries = 0,
            kept_keys = 0;        // whose rows are here: fewer than seen where a run threw
    std::vector<float> q, k;      // [queries, heads, d_k], [keys, kv_heads, d_k]
    std::vector<float> max, sum;  // [queries, heads]
  };
  // The tokens that a stack has read.
  struct Text {
    std::string stack;
    index_t sequence = 0;
    model::Repeats tokens;
  };

  explicit Impl(const HeadStudyOptions& given) : options(given) {}

  // What a session calls before it runs a text.
  struct Run {
    const char* stack;
    const std::vector<index_t>* ids;
    index_t position = 0;     // of the first of them in the text
    index_t sequence = 0;     // of the session; an encoder's texts: 0
    std::uint64_t about = 0;  // of an encoder-decoder: the text that is read or written about
    std::uint64_t session = 0;
    index_t changes = 0;  // how often the session's changes have been made anew
  };
  void check(const Run& run, std::vector<Problem>& problems) const;
  void begin(const Run& run);

  // Of some rows of an attention: before attend is asked for them, and after it.
  void start(const model::LookedAt& call, const model::Span& rows);
  void finish(const RowState& state, const Context& context);
  // What weights() needs of all rows of the call.
  void keep(const model::LookedAt& call, const RowState& state);
  const model::Repeats* text(const std::string& stack) const;  // null: none has been begun
  // An attention whose rows are asked for; null: there is none, which is among the problems.
  const Seen* kept(const std::string& attention, std::vector<Problem>& problems) const;

  HeadStudyOptions options;
  std::uint64_t session = 0;  // and so the model; 0: none yet
  index_t changes = 0;
  std::uint64_t about = 0;  // 0: none
  std::deque<Text> texts;   // which stay where they are
  std::vector<Seen> seen;   // in the order of computation
  model::HeadPass pass;     // of the rows between start and finish
  std::size_t now = 0;      // whose rows they are
};

}  // namespace glasshead
