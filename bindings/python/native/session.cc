// Models, sessions, taps and changes.
#include "python/native/session.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "python/native/calls.h"
#include "python/native/numbers.h"

namespace glasshead::python {
namespace {

using Ids = std::vector<index_t>;
using Parts = std::vector<std::pair<index_t, Ids>>;  // sequence, ids
using Texts = std::vector<std::pair<Ids, Ids>>;      // ids, segments

LogitRows rows_named(const std::string& rows) {
  return rows == "all" ? LogitRows::all : rows == "none" ? LogitRows::none : LogitRows::last;
}

std::vector<Session::Text> texts_of(Texts texts) {
  std::vector<Session::Text> all;
  for (auto& [ids, segments] : texts) all.push_back({std::move(ids), std::move(segments)});
  return all;
}

Matrix forward(SharedSession& self, Parts given, const std::string& rows, SharedTaps* taps,
               SharedStudy* heads) {
  std::vector<Session::Part> parts;
  for (auto& [sequence, ids] : given) parts.push_back({sequence, std::move(ids)});
  return array_of(self.run(taps, heads, [&](Session& session, const Seen& seen) {
    return copy_of(session.forward(parts, rows_named(rows), seen.taps, seen.heads));
  }));
}

Matrix encode(SharedSession& self, Texts given, SharedTaps* taps, SharedStudy* heads) {
  const std::vector<Session::Text> texts = texts_of(std::move(given));
  return array_of(self.run(taps, heads, [&](Session& session, const Seen& seen) {
    return copy_of(session.encode(texts, seen.taps, seen.heads));
  }));
}

Matrix embed(SharedSession& self, Texts given, bool normalised) {
  const std::vector<Session::Text> texts = texts_of(std::move(given));
  return array_of(self.run([&](Session& session) {
    const Tensor<float, 2> vectors = session.embed(texts, normalised);
    return copy_of({vectors.data(), vectors.shape()});
  }));
}

// `rows`: contiguous float32 [rows, d_model]
template <View<const float, 2> (Session::*make)(const View<const float, 2>&)>
Matrix of_rows(SharedSession& self, nb::handle rows) {
  std::vector<Problem> problems;
  const Array given = read_array(rows, "rows", problems, 2);
  refuse_if_any("logits", std::move(problems));
  const ConstTensor<2> tensor = given.tensor<2>();
  const View<const float, 2> view(static_cast<const float*>(tensor.data), tensor.shape);
  return array_of(self.run([&](Session& session) { return copy_of((session.*make)(view)); }));
}

std::vector<std::pair<std::string, Floats>> results(SharedTaps& self) {
  NamedTensors found;
  {
    const nb::gil_scoped_release others_may_run;
    const std::lock_guard alone(self.turns);
    found = self.kept.results();
  }
  std::vector<std::pair<std::string, Floats>> arrays;
  for (auto& [name, tensor] : found) arrays.emplace_back(name, array_of(std::move(tensor)));
  return arrays;
}

// Contiguous float32 numbers, at most three axes: what a tap keeps.
FileTensor rows_of(const Array& given) {
  FileTensor rows;
  rows.dtype = DType::f32;
  index_t count = 1;
  for (int axis = 0; axis < given.rank(); ++axis) {
    rows.shape.push_back(given.extent(axis));
    count *= given.extent(axis);
  }
  const auto* const first = static_cast<const std::byte*>(given.tensor<3>().data);
  rows.bytes.assign(first, first + static_cast<std::size_t>(count) * sizeof(float));
  return rows;
}

void patch(Changes& self, const std::string& name, nb::handle values, index_t position) {
  const Array given = read_array(values, "changes", self.problems, 3);
  if (given.is_there()) self.made.emplace_back(Patch{name, rows_of(given), position});
}

std::vector<float> mean_of_head(index_t layer, index_t head, nb::handle out) {
  std::vector<Problem> problems;
  const Array given = read_array(out, "out", problems, 3);
  refuse_if_any("mean_of_head", std::move(problems));
  return glasshead::mean_of_head(layer, head, rows_of(given)).out;
}

void add_model(nb::module_& module) {
  nb::class_<Model>(module, "Model", "See glasshead.Model.")
      .def(
          "__init__",
          [](Model* self, const std::string& path, index_t context) {
            const nb::gil_scoped_release others_may_run;
            new (self) Model(Model::load(path, {.context = context}));
          },
          nb::arg("path"), nb::arg("context"))
      .def_prop_ro("path", &Model::path, "What was opened.")
      .def_prop_ro("family", &Model::family, "\"llama\": to be shown, nothing computes with it.")
      .def_prop_ro(
          "kind", [](const Model& self) { return std::string(name(self.kind())); },
          "\"decoder\" (continues texts), \"encoder\" (reads them both ways) or "
          "\"encoder-decoder\" (reads one and writes another).")
      .def_prop_ro("d_model", &Model::d_model)
      .def_prop_ro("vocab", &Model::vocab, "Ids are in [0, vocab).")
      .def_prop_ro("layers", &Model::layers, "Of the decoder; of an encoder model, of the encoder.")
      .def("heads", &Model::heads, nb::arg("layer"), "Query heads of a layer's self-attention.")
      .def_prop_ro("position_limit", &Model::position_limit,
                   "A text has at most so many tokens; 0: any number.")
      .def_prop_ro("context_length", &Model::context_length,
                   "What the model was made for; 0: the files don't say.")
      .def_prop_ro("has_logits", &Model::has_logits, "False: hidden rows only.")
      .def_prop_ro("has_pooling", &Model::has_pooling, "The files say how a text's vector is made.")
      .def_prop_ro("parameters", &Model::parameters,
                   "Numbers in the files; tied or shared matrices once.")
      .def_prop_ro("bytes", &Model::bytes, "Of the weights in memory.")
      .def_prop_ro("bos", &Model::bos, "The id that texts begin with; None: the files name none.")
      .def_prop_ro("pad", &Model::pad)
      .def_prop_ro("eos", &Model::eos, "The ids that end a text.")
      .def_prop_ro("decoder_start", &Model::decoder_start,
                   "What an encoder-decoder's text begins with.")
      .def_prop_ro("tap_names", &Model::tap_names,
                   "Every name a Tap may have, in the order of computation (docs/run.md explains "
                   "them).");
}

void add_taps(nb::module_& module) {
  using Wanted = std::tuple<std::string, Ids, std::optional<std::pair<index_t, index_t>>>;
  nb::class_<SharedTaps>(module, "Taps", "See glasshead.Taps.")
      .def(
          "__init__",
          [](SharedTaps* self, const std::vector<Wanted>& wanted, index_t sequence) {
            std::vector<Tap> taps;
            for (const auto& [name, heads, positions] : wanted)
              taps.push_back({name, heads, positions});
            new (self) SharedTaps(Taps(std::move(taps), sequence));
          },
          nb::arg("taps"), nb::arg("sequence"))
      .def("results", &results);
  nb::class_<Changes>(module, "Changes", "See glasshead.Session.change.")
      .def(nb::init<>())
      .def(
          "hide",
          [](Changes& self, Ids keys, Ids queries, Ids layers, Ids heads) {
            self.made.emplace_back(HidePairs{std::move(keys), std::move(queries), std::move(layers),
                                             std::move(heads)});
          },
          nb::arg("keys"), nb::arg("queries"), nb::arg("layers"), nb::arg("heads"))
      .def(
          "replace",
          [](Changes& self, index_t layer, index_t head, std::vector<float> out) {
            self.made.emplace_back(ReplaceHead{layer, head, std::move(out)});
          },
          nb::arg("layer"), nb::arg("head"), nb::arg("out"))
      .def("patch", &patch, nb::arg("name"), nb::arg("values"), nb::arg("position"));
  module.def("mean_of_head", &mean_of_head, nb::arg("layer"), nb::arg("head"), nb::arg("out"));
}

void add_session(nb::module_& module) {
  nb::class_<SharedSession>(module, "Session", "See glasshead.Session.")
      .def(
          "__init__",
          [](SharedSession* self, const Model& model, index_t rows_at_once,
             const Context* context) {
            new (self) SharedSession(model, {.rows_at_once = rows_at_once},
                                     context == nullptr ? default_context() : *context);
          },
          nb::arg("model"), nb::arg("rows_at_once"), nb::arg("context").none(),
          nb::keep_alive<1, 4>())
      .def(
          "change",
          [](SharedSession& self, const Changes& changes) {
            refuse_if_any("Session::change", changes.problems);
            self.run([&](Session& session) { session.change(changes.made); });
          },
          nb::arg("changes"))
      .def("add", [](SharedSession& self) { return self.run([](Session& s) { return s.add(); }); })
      .def(
          "fork",
          [](SharedSession& self, index_t sequence) {
            return self.run([&](Session& session) { return session.fork(sequence); });
          },
          nb::arg("sequence"))
      .def(
          "truncate",
          [](SharedSession& self, index_t sequence, index_t length) {
            self.run([&](Session& session) { session.truncate(sequence, length); });
          },
          nb::arg("sequence"), nb::arg("length"))
      .def(
          "drop",
          [](SharedSession& self, index_t sequence) {
            self.run([&](Session& session) { session.drop(sequence); });
          },
          nb::arg("sequence"))
      .def(
          "length",
          [](SharedSession& self, index_t sequence) {
            return self.run([&](Session& session) { return session.length(sequence); });
          },
          nb::arg("sequence"))
      .def("cache_bytes",
           [](SharedSession& self) {
             return self.run([](Session& session) { return session.cache_bytes(); });
           })
      .def("forward", &forward, nb::arg("parts"), nb::arg("rows"), nb::arg("taps").none(),
           nb::arg("heads").none())
      .def("encode", &encode, nb::arg("texts"), nb::arg("taps").none(), nb::arg("heads").none())
      .def("logits", &of_rows<&Session::logits>, nb::arg("rows"))
      .def("lens", &of_rows<&Session::lens>, nb::arg("rows"))
      .def("embed", &embed, nb::arg("texts"), nb::arg("normalised"))
      .def(
          "read",
          [](SharedSession& self, const Ids& text, SharedTaps* taps, SharedStudy* heads) {
            return self.run(taps, heads, [&](Session& session, const Seen& seen) {
              return session.read(text, seen.taps, seen.heads);
            });
          },
          nb::arg("text"), nb::arg("taps").none(), nb::arg("heads").none());
}

}  // namespace

void add_models(nb::module_& module) {
  add_facts(module);
  add_tokenizer(module);
  add_model(module);
  add_taps(module);
  add_heads(module);
  add_session(module);
  add_writing(module);
}

}  // namespace glasshead::python
