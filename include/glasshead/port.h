// Port diagnosis: somebody brought a model to another program, and its numbers are off. Where do
// they first part from the right ones, and which mistake gives exactly theirs?
//
//   Model model = Model::load("stories260K");
//   NamedTensors theirs = read_safetensors("theirs.safetensors");  // "decoder.0.self.q", ...
//   PortReport report = diagnose_port(model, {.ids = {1, 403, 407}}, theirs);
//   if (!report.is_right()) puts(port_text(report).c_str());       // "rope-pairing: ..."
//
// The model is run on the same ids, part by part (embedding, each layer, the end); a part is given
// their rows wherever those are right, so that rounding does not pile up. At the first place that
// differs, the parts behind the last right place are run again under every mistake of a catalogue,
// each an edit of what the model is (base of the rotary angles, scale, window, eps ...), of its
// weights, or of the numbers on the way. A mistake is named only if it gives their numbers at that
// place. With it the run goes on: what still differs behind is a second divergence, and is
// diagnosed in turn. What none explains is located and not named. Where q, k and v of a layer are
// right and attention is not, the doctor's catalogue is asked, too; what it names gives their out,
// with which the run goes on if it is in the file.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "glasshead/context.h"
#include "glasshead/model.h"
#include "glasshead/tensor_file.h"

namespace glasshead {

// What both programs read.
struct PortText {
  std::vector<index_t> ids;            // at least one; of an encoder-decoder, the text that is read
  std::vector<index_t> segments = {};  // BERT's token types; empty: all 0
  std::vector<index_t> decoder_ids = {};  // of an encoder-decoder; empty: its start token alone
};

struct PortOptions {
  // Ours to theirs, where their file has names of its own: {"decoder.{}.self.q", "h.{}.query"}. {}
  // or * stands for the number of the layer in both. What is not listed has our name.
  std::vector<std::pair<std::string, std::string>> names = {};
  // The type their program computes in, where the file holds a wider one; nullopt: the file's.
  std::optional<DType> arithmetic = std::nullopt;
  const Context* context = nullptr;  // null: default_context()
};

// One place that was compared. Errors are in parts of the place's largest number.
struct PortPlace {
  std::string name, theirs;    // ours, and their tensor's
  std::string layout;          // how theirs lies, where that is not as ours: "[tokens, heads*d]"
  double error = 0;            // the largest; inf where one is NaN or infinite and the other is not
  double tolerance = 0;        // what rounding may do
  std::vector<index_t> worst;  // where, on our axes
  double found = 0, right = 0;
  bool is_right = true;
};

struct PortCause {
  std::string id, parameter;  // "rope-theta", "10000"; parameter may be empty
  std::string title, done, cause, fix;
  double error = 0;      // at the place that it explains; is_doctors: not measured
  index_t explains = 0;  // places from there on that are right with it, before the next divergence
  std::string where;     // which parts have it: "everywhere", "in layer 2 alone"
  // Of the doctor's catalogue (diagnose.h), which knows attention alone: found in each of the
  // layers that `where` lists, by every number of theirs there.
  bool is_doctors = false;
  std::string name() const { return parameter.empty() ? id : id + ":" + parameter; }
};

// A divergence, with the findings before it taken as they are.
struct PortFinding {
  PortPlace place;
  std::string after;               // the last right place before it; empty: it is the first
  std::vector<PortCause> causes;   // best first; more than one: these numbers can't tell them apart
  std::vector<std::string> facts;  // where none is named: what is true all the same
};

struct PortReport {
  std::vector<PortPlace> places;  // in the order of computation, against the right model
  std::vector<PortFinding> findings;
  std::vector<std::string> notes;  // tensors that have no place
  index_t tokens = 0, tried = 0;
  bool explains_everything = false;  // with the findings' first causes made, every place is right
  DType arithmetic = DType::f32;
  bool is_right() const { return findings.empty(); }
  bool is_explained() const;  // every divergence has a cause
};

// The text that the file itself holds: `ids` or `input_ids`; `types`, `token_type_ids`;
// `decoder_ids`, `decoder_input_ids`. What it lacks stays as `text` has it; what differs from what
// `text` has is a problem, and so are ids that are not whole numbers. Throws FormatError.
PortText text_of(const NamedTensors& activations, PortText text = {});

// The names of a mapping file: a JSON object {"ours": "theirs"}. Throws FormatError, IoError.
std::vector<std::pair<std::string, std::string>> read_port_names(const std::string& path);

// Throws FormatError or OptionError with everything that is wrong with the text, the names and the
// activations: a shape that can't be that place's numbers in any layout, numbers that are not
// floating-point, names that nothing has.
// Layouts: [tokens, heads*d] for [heads, tokens, d], axes in any order, axes of 1 anywhere,
// key/value heads repeated.
PortReport diagnose_port(const Model& model, const PortText& text, const NamedTensors& activations,
                         const PortOptions& options = {});

std::string port_text(const PortReport& report);  // lines for a terminal
std::string port_json(const PortReport& report);  // schema "glasshead.port/1"

}  // namespace glasshead
