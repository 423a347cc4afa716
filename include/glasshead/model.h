// Models: load a checkpoint, run it on the exact engine, and look at any number in it.
//
//   Model model = Model::load("stories260K");             // a directory, .safetensors or .gguf
//   Session session(model);
//   Generation text = generate(session, {1}, {.max_tokens = 64});      // BOS, then 64 tokens
//
//   Taps taps({{.name = "decoder.2.self.weights", .heads = {3}}});     // looked at on request only
//   session.forward({{.ids = {1, 403, 407, 261}}}, LogitRows::last, &taps);
//   taps.results()[0].second                              // [1, 4, 4] of head 3
//
// Everything is computed in f32 by the models' own matrices, in the type they are stored in, and by
// attend. What is promised:
//   - the bits of a token's numbers depend on that text alone: not on whether it was read in one
//     go, in parts or token by token, on the other texts of a call, on threads, on the instruction
//     set (every one with fused multiply-add), or on what is tapped;
//   - texts of a batch have their own lengths: there is no padding anywhere;
//   - beside the weights and the keys and values of the texts, memory is that of one part of the
//     rows (SessionOptions::rows_at_once; of an encoder, of all rows of a call) and of the logits
//     asked for. No [n, n] matrix is made.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "glasshead/context.h"
#include "glasshead/error.h"
#include "glasshead/tensor.h"
#include "glasshead/tensor_file.h"

namespace glasshead {

class HeadStudy;  // head_study.h

struct ModelOptions {
  // How many tokens texts may grow to. It matters to models with two sets of rotary factors
  // (Phi-3's long and short), which are chosen between once; 0: of these the short ones, with
  // position_limit() where they end.
  index_t context = 0;
};

enum class ModelKind : std::uint8_t {
  decoder,          // predicts the next token: generate
  encoder,          // reads a text both ways: its rows, [MASK] predictions, embeddings
  encoder_decoder,  // reads a text, then writes another: generate after Session::read
};
const char* name(ModelKind kind);  // "decoder", "encoder", "encoder-decoder"

// A model's weights, read-only and shared by copies: any number of sessions may use it at once.
class Model {
 public:
  // Throws IoError or FormatError with everything that is wrong.
  static Model load(const std::string& path, const ModelOptions& options = {});

  const std::string& path() const;
  const std::string& family() const;  // "llama": to be shown, nothing computes with it
  ModelKind kind() const;
  index_t d_model() const;
  index_t vocab() const;               // ids are in [0, vocab)
  index_t layers() const;              // of the decoder; of an encoder model, of the encoder
  index_t heads(index_t layer) const;  // query heads of self-attention
  index_t position_limit() const;      // a text has at most so many tokens; 0: any number
  index_t context_length() const;      // what the model was made for; 0: the files don't say
  bool has_logits() const;             // false: rows of the last layer only
  bool has_pooling() const;            // the files say how a text's vector is made (Session::embed)
  index_t parameters() const;          // numbers in the files, tied or shared matrices once
  index_t bytes() const;               // of the weights in memory
  index_t bytes_per_token() const;     // of these, the matrices that a decoder reads for one more

  // Token ids as the configuration names them; nullopt or empty where it doesn't.
  std::optional<index_t> bos() const, pad() const;
  const std::vector<index_t>& eos() const;
  index_t decoder_start() const;  // what an encoder-decoder's text begins with; else bos, or 0

  // Every name a Tap may have, in the order of computation (docs/run.md explains them).
  std::vector<std::string> tap_names() const;

  struct Impl;  // the library's own
  explicit Model(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  const Impl& impl() const { return *impl_; }

 private:
  std::shared_ptr<const Impl> impl_;
};

// A number of the run to keep.
struct Tap {
  // One of Model::tap_names; a `*` stands for any layer: "decoder.*.self.q".
  std::string name;
  // Of weights and scores: which query heads (empty: all), and query positions [first, last]
  // (absent: all).
  std::vector<index_t> heads = {};
  std::optional<std::pair<index_t, index_t>> positions = std::nullopt;
};

// What taps have seen of one sequence since they were made. Runs that follow each other add their
// tokens. Rows are tokens in order: matrices are [tokens, size], those of heads [heads, tokens, d],
// weights and scores [heads asked for, positions asked for, keys]: weights exactly 0, scores -inf
// where hidden. Scores are as softmax takes them: scaled, soft-capped, with every bias.
class Taps {
 public:
  // `sequence`: of a batch, which one is looked at (its place in the call).
  explicit Taps(std::vector<Tap> taps, index_t sequence = 0);
  ~Taps();
  Taps(Taps&&) noexcept;
  Taps& operator=(Taps&&) noexcept;

  // In order of computation; f32. Empty before a run.
  NamedTensors results() const;

  struct Impl;  // the library's own
  Impl& impl() const { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

// --- changes: what follows if a number is another? ---

// Pairs that self-attention may not read, in addition to those its mask hides. A row left without a
// key has out 0.
struct HidePairs {
  // Keys at these positions, from 0; of each text.
  std::vector<index_t> keys;
  // By these queries alone; empty: by all (but for a hidden key's own row, which still reads
  // itself).
  std::vector<index_t> queries = {};
  std::vector<index_t> layers = {}, heads = {};  // empty: all
};
// A head's out (weights·v, before W_O) is this vector [d_v] at every position; empty: zeros.
struct ReplaceHead {
  index_t layer = 0, head = 0;
  std::vector<float> out = {};
};
// The head's mean in the place of what it says at each position: `out` is what a Tap of its
// self.out has kept, [heads, tokens, d_v], of at least one token. Sums over tokens are made in f64,
// in order. Throws ShapeError if out is of another shape or has no such head.
ReplaceHead mean_of_head(index_t layer, index_t head, const FileTensor& out);
// The rows of a place, from `position` on, are these: what a Tap of another run has kept, in the
// same shape.
struct Patch {
  std::string name;  // one of Model::tap_names, but for scores, weights, lse and logits
  FileTensor values;
  index_t position = 0;
};
using Change = std::variant<HidePairs, ReplaceHead, Patch>;

struct SessionOptions {
  // New tokens that are computed together. More: longer stretches of each matrix's reuse, and
  // memory for as many rows of everything. Bits are the same.
  index_t rows_at_once = 256;
};

enum class LogitRows : std::uint8_t { last, all, none };

// Some sequences being read or written with one model: their keys and values, and room to compute.
// One thread at a time.
class Session {
 public:
  // The context must outlive the session; the model is shared.
  explicit Session(const Model& model, const SessionOptions& options = {},
                   const Context& context = default_context());
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  const Model& model() const;
  // From the next run on, instead of the changes before; {} takes them away. They are made in the
  // decoder, of an encoder model in the encoder. Keys and values that sequences hold already stay
  // as they were computed: begin anew (truncate) where they should not. Throws OptionError with
  // everything that the model has no place for.
  void change(const std::vector<Change>& changes);

  // --- decoders ---

  // Sequences are numbered from 0; a session begins with sequence 0, empty.
  index_t add();                                    // an empty one
  index_t fork(index_t sequence);                   // with the same tokens; shares their memory
  void truncate(index_t sequence, index_t length);  // forgets the tokens from `length` on
  void drop(index_t sequence);                      // its number is used again by add
  index_t length(index_t sequence) const;           // tokens it holds
  index_t cache_bytes() const;                      // keys and values of all sequences

  struct Part {
    index_t sequence = 0;
    std::vector<index_t> ids;  // at least one
  };
  // Appends each part's ids to its sequence (each sequence once) and returns logits, a row for each
  // part's last id or for every id, parts in order: [rows, vocab], the session's until its next
  // run. `none`: no logits are made, and the view is empty.
  View<const float, 2> forward(const std::vector<Part>& parts, LogitRows rows = LogitRows::last,
                               Taps* taps = nullptr, HeadStudy* heads = nullptr);

  // --- encoders ---

  struct Text {
    std::vector<index_t> ids;  // at least one
    // BERT's token types, one for each id; empty: all 0.
    std::vector<index_t> segments = {};
  };
  // The last layer's rows of some texts, one text after another: [sum of their lengths, d_model],
  // the session's until its next run.
  View<const float, 2> encode(const std::vector<Text>& texts, Taps* taps = nullptr,
                              HeadStudy* heads = nullptr);
  // Logits of rows of the last layer (encoders: what stands at a [MASK]): [rows, vocab].
  View<const float, 2> logits(const View<const float, 2>& rows);
  // The same of rows that leave any layer, as if it were the last: through the final norm where
  // there is one (nostalgebraist 2020, "interpreting GPT: the logit lens").
  View<const float, 2> lens(const View<const float, 2>& rows);
  // A vector for each text: the mean of its rows (or its first row, if the files ask for that),
  // scaled to length 1 if the files ask for it or `normalised`. [texts, d_model]
  Tensor<float, 2> embed(const std::vector<Text>& texts, bool normalised = true);

  // --- encoder-decoders ---

  // Reads a text, whose keys and values for cross-attention are made once, and adds an empty
  // sequence that is to be written about it. Forks read the same text.
  index_t read(const std::vector<index_t>& text, Taps* taps = nullptr, HeadStudy* heads = nullptr);

  struct Impl;  // the library's own
  Impl& impl() const { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

// --- what a row of logits says ---

struct TokenProbability {
  index_t id = 0;
  double logit = 0, probability = 0;
};
// The `count` most probable tokens, best first, of equal ones the lower id. logits [vocab]
std::vector<TokenProbability> most_probable(const View<const float, 1>& logits, index_t count);

// sum of p (ln p - ln q) over tokens, p the probabilities of `before`, q of `after`: 0 if they are
// equal, in nats.
double kl_divergence(const View<const float, 1>& before, const View<const float, 1>& after);

// How the next token is chosen from logits, in this order: the repetition penalty, temperature,
// top-k, top-p, min-p, one draw. Computed in f64; ties go to the lower id.
struct Sampling {
  double temperature = 0;  // 0: the largest logit (greedy). > 0: logits are divided by it
  index_t top_k = 0;       // only the k largest; 0: all
  double top_p = 1;        // the fewest whose probabilities reach this; in (0, 1]
  double min_p = 0;        // only those at least this times as probable as the best; in [0, 1]
  // Logits of ids that the text has already: divided by this if positive, else multiplied
  // (Keskar et al. 2019, section 4.1). 1: off.
  double repetition_penalty = 1;
  std::uint64_t seed = 0;  // draw n of a text is number n of this seed's stream
};
// Everything that is out of range.
std::vector<Problem> check(const Sampling& sampling);
// logits [vocab]; `text`: all ids so far, for the penalty; `draw`: the number of this choice.
index_t sample(const View<const float, 1>& logits, const Sampling& sampling,
               const std::vector<index_t>& text, std::uint64_t draw);

enum class StopReason : std::uint8_t {
  length,          // max_tokens
  end_id,          // an end id was chosen (it is not part of the result)
  stop_text,       // a stop string came
  callback,        // on_token said so
  position_limit,  // the model's last position (Model::position_limit) was read, before max_tokens
};
// "length", "end", "stop", "callback", "position_limit"
const char* name(StopReason reason);

struct GenerateOptions {
  index_t max_tokens = 128;
  Sampling sampling = {};
  bool stops_at_eos = true;            // the model's own end ids
  std::vector<index_t> stop_ids = {};  // beside them
  // Called with every new id; false ends the text.
  std::function<bool(index_t id)> on_token = nullptr;
  // Ends the text behind the id with which one of these has come; it stays in the text. They need
  // `text_of`, which gives the bytes of an id.
  std::vector<std::string> stop = {};
  std::function<std::string(index_t id)> text_of = nullptr;
  Taps* taps = nullptr;
  // Looks at every token that is read: the prompt, then each that was written, up to the last one,
  // which is read only if an end id follows it: at the sequence's length() tokens, in short.
  HeadStudy* heads = nullptr;
  // Of the session; what it holds already is read before the prompt. Penalties and draws count from
  // the prompt of this call.
  index_t sequence = 0;
};

struct Generation {
  std::vector<index_t> ids;  // the new ones
  StopReason why = StopReason::length;
};

// Appends the prompt (at least one id; an encoder-decoder's usual one is {model.decoder_start()})
// and then one token after another. Throws OptionError with everything that is wrong.
Generation generate(Session& session, const std::vector<index_t>& prompt,
                    const GenerateOptions& options = {});

struct BeamOptions {
  index_t beams = 4;
  index_t max_tokens = 128;
  // Finished texts are compared by log probability / length^penalty (Wu et al. 2016, section 7,
  // without its constants): above 1 prefers longer texts.
  double length_penalty = 1;
  index_t sequence = 0;  // of the session: the beginning of every beam; left as it was
};
struct Beam {
  std::vector<index_t> ids;  // without the end id
  double log_probability = 0;
  bool is_finished = false;  // by an end id
};
// The best texts, best first, at most `beams`. A step keeps the `beams` most probable unfinished
// texts; it ends when `beams` are finished and none of the others can come before them, at
// max_tokens, or at the model's last position.
std::vector<Beam> beam_search(Session& session, const std::vector<index_t>& prompt,
                              const BeamOptions& options = {});

}  // namespace glasshead
