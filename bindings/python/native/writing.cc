// Writing texts, and what a row of logits says.
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "glasshead/text_writer.h"
#include "glasshead/tokenizer.h"
#include "python/native/calls.h"
#include "python/native/session.h"

namespace glasshead::python {
namespace {

using Ids = std::vector<index_t>;

// A text of a session that is being written.
class Writer {
 public:
  Writer(SharedSession& session, Ids prompt, GenerateOptions options, SharedTaps* taps,
         SharedStudy* heads)
      : session_(&session), taps_(taps), heads_(heads) {
    session.run(taps, heads, [&](Session& own, const Seen& seen) {
      options.taps = seen.taps;
      options.heads = seen.heads;
      writer_.emplace(own, std::move(prompt), std::move(options));
    });
  }
  std::optional<index_t> next() {
    return session_->run(taps_, heads_, [&](Session&, const Seen&) { return writer_->next(); });
  }
  std::string why() const { return name(writer_->why()); }

 private:
  SharedSession* session_;
  SharedTaps* taps_;
  SharedStudy* heads_;
  std::optional<TextWriter> writer_;
};

void start(Writer* self, SharedSession& session, Ids prompt, index_t max_tokens,
           const Sampling& sampling, bool stops_at_eos, Ids stop_ids, std::vector<std::string> stop,
           const Tokenizer* words, SharedTaps* taps, SharedStudy* heads, index_t sequence) {
  GenerateOptions options;
  options.max_tokens = max_tokens;
  options.sampling = sampling;
  options.stops_at_eos = stops_at_eos;
  options.stop_ids = std::move(stop_ids);
  options.stop = std::move(stop);
  options.sequence = sequence;
  if (words != nullptr) options.text_of = [own = *words](index_t id) { return own.bytes_of(id); };
  new (self) Writer(session, std::move(prompt), std::move(options), taps, heads);
}

using BeamTuple = std::tuple<Ids, double, bool>;  // ids, log probability, whether it is finished

std::vector<BeamTuple> beam_search(SharedSession& session, const Ids& prompt, index_t beams,
                                   index_t max_tokens, double length_penalty, index_t sequence) {
  const std::vector<Beam> found = session.run([&](Session& own) {
    return glasshead::beam_search(own, prompt, {beams, max_tokens, length_penalty, sequence});
  });
  std::vector<BeamTuple> all;
  for (const Beam& beam : found) all.emplace_back(beam.ids, beam.log_probability, beam.is_finished);
  return all;
}

// Contiguous float32 numbers, one axis.
View<const float, 1> logits_of(const Array& array) {
  const ConstTensor<1> tensor = array.tensor<1>();
  return {static_cast<const float*>(tensor.data), tensor.shape};
}

using Probable = std::tuple<index_t, double, double>;  // id, logit, probability

std::vector<Probable> most_probable(nb::handle logits, index_t count) {
  std::vector<Problem> problems;
  const Array row = read_array(logits, "logits", problems, 1);
  refuse_if_any("most_probable", std::move(problems));
  std::vector<Probable> all;
  const nb::gil_scoped_release others_may_run;
  for (const TokenProbability& one : glasshead::most_probable(logits_of(row), count))
    all.emplace_back(one.id, one.logit, one.probability);
  return all;
}

double kl_divergence(nb::handle before, nb::handle after) {
  std::vector<Problem> problems;
  const Array p = read_array(before, "before", problems, 1);
  const Array q = read_array(after, "after", problems, 1);
  refuse_if_any("kl_divergence", std::move(problems));
  const nb::gil_scoped_release others_may_run;
  return glasshead::kl_divergence(logits_of(p), logits_of(q));
}

index_t sample(nb::handle logits, const Sampling& sampling, const Ids& text, std::uint64_t draw) {
  std::vector<Problem> problems;
  const Array row = read_array(logits, "logits", problems, 1);
  refuse_if_any("sample", std::move(problems));
  const nb::gil_scoped_release others_may_run;
  return glasshead::sample(logits_of(row), sampling, text, draw);
}

}  // namespace

void add_writing(nb::module_& module) {
  nb::class_<Sampling>(module, "Sampling", "How the next token is chosen.")
      .def(
          "__init__",
          [](Sampling* self, double temperature, index_t top_k, double top_p, double min_p,
             double repetition_penalty, std::uint64_t seed) {
            new (self) Sampling{temperature, top_k, top_p, min_p, repetition_penalty, seed};
          },
          nb::arg("temperature"), nb::arg("top_k"), nb::arg("top_p"), nb::arg("min_p"),
          nb::arg("repetition_penalty"), nb::arg("seed"));
  nb::class_<Writer>(module, "Writer", "A text being written, one token at a time.")
      .def("__init__", &start, nb::arg("session"), nb::arg("prompt"), nb::arg("max_tokens"),
           nb::arg("sampling"), nb::arg("stops_at_eos"), nb::arg("stop_ids"), nb::arg("stop"),
           nb::arg("tokenizer").none(), nb::arg("taps").none(), nb::arg("heads").none(),
           nb::arg("sequence"), nb::keep_alive<1, 2>(), nb::keep_alive<1, 10>(),
           nb::keep_alive<1, 11>())
      .def("next", &Writer::next)
      .def("why", &Writer::why);
  module.def("beam_search", &beam_search, nb::arg("session"), nb::arg("prompt"), nb::arg("beams"),
             nb::arg("max_tokens"), nb::arg("length_penalty"), nb::arg("sequence"));
  module.def("most_probable", &most_probable, nb::arg("logits"), nb::arg("count"));
  module.def("kl_divergence", &kl_divergence, nb::arg("before"), nb::arg("after"));
  module.def("sample", &sample, nb::arg("logits"), nb::arg("sampling"), nb::arg("text"),
             nb::arg("draw"));
}

}  // namespace glasshead::python
