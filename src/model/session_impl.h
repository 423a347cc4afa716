// What a Session holds.
#pragma once

#include <string>
#include <vector>

#include "glasshead/model.h"
#include "model/block.h"
#include "model/head_study_impl.h"
#include "model/model_impl.h"
#include "model/workspace.h"

namespace glasshead {

struct Session::Impl {
  struct Sequence {
    index_t keys = 0;  // its number in the caches
    index_t length = 0;
    index_t memory = -1;      // the text it is written about, in `cross`; -1: none
    std::uint64_t about = 0;  // that text among all that the session has read, from 1
    bool is_used = true;
  };

  Impl(const Model& model, const SessionOptions& options, const Context& context);

  const model::Description& description() const { return model.impl().description; }
  const model::Weights& weights() const { return model.impl().weights; }
  bool is_decoder() const { return description().kind == model::Kind::decoder; }
  bool is_encoder() const { return description().kind == model::Kind::encoder; }

  Sequence& at(const char* function, index_t sequence);
  index_t add(Sequence sequence);   // keys 0: an empty one
  index_t fork_keys(index_t keys);  // the new sequence's number in `self`
  void truncate(Sequence& sequence, index_t length);

  // Everything wrong with ids: of no token, too many for the model.
  void check_ids(const std::string& where, const std::vector<index_t>& ids, index_t before,
                 index_t limit, std::vector<Problem>& problems) const;

  void check_texts(const std::vector<Text>& texts, std::vector<Problem>& problems) const;

  // Who looks at a run; null: nobody.
  struct Looks {
    Taps::Impl* taps = nullptr;
    HeadStudy::Impl* heads = nullptr;
  };
  // One go of at most rows_at_once rows through the decoder.
  View<float, 2> decode(const std::vector<index_t>& ids, const std::vector<model::Span>& spans,
                        const Looks& looks);
  // The encoder's rows, normed where it ends with a norm.
  View<float, 2> encode(const std::vector<Text>& texts, const Looks& looks);
  void see(const char* stack, model::Point point, const View<float, 2>& rows,
           const std::vector<model::Span>& spans, Taps::Impl* taps) const;
  const model::Changes* changes_made() const { return changes.is_empty() ? nullptr : &changes; }
  // The cross-attention's keys and values of one text, in every layer; its number there.
  index_t remember(const View<const float, 2>& rows, Taps::Impl* taps);

  Model model;
  SessionOptions options;
  const Context* context;
  model::Workspace work;
  model::Changes changes;
  index_t change_count = 0;    // how often they were made anew
  const std::uint64_t serial;  // of this session among all, from 1: addresses come back
  std::vector<model::LayerCalls> encoder_calls, decoder_calls;
  // [layers] each. Sequence 0 of a cache stays empty: a new one is a fork of it.
  std::vector<KvCache> self, cross;
  std::vector<Sequence> sequences;
  std::vector<index_t> free_keys;  // numbers in `self` of sequences that were dropped
  std::vector<index_t> readers;    // [texts] of `cross`: sequences that read them
  std::uint64_t texts_read = 0;    // of an encoder-decoder
};

// The taps of a run, made ready for its model; what they name wrongly is among the problems.
Taps::Impl* resolved(Taps* taps, const Model& model, std::vector<Problem>& problems);
// The study of a run of these texts, of which it looks at one, made ready unless something is
// wrong.
HeadStudy::Impl* resolved(HeadStudy* heads, const Session::Impl& session,
                          const std::vector<HeadStudy::Impl::Run>& texts,
                          std::vector<Problem>& problems);
void refuse(const char* function, std::vector<Problem> problems);  // if there are any

}  // namespace glasshead
