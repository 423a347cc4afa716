// Text to token ids and back, and chats.
#include "glasshead/tokenizer.h"

#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "glasshead/chat.h"
#include "python/native/calls.h"

namespace glasshead::python {
namespace {

nb::str text_of(const std::string& bytes) {  // bytes that are no UTF-8 as U+FFFD
  PyObject* const text =
      PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "replace");
  if (text == nullptr) throw nb::python_error();
  return nb::steal<nb::str>(text);
}

// ids, and the bytes [begin, end) of the text that each covers
using Encoded = std::pair<std::vector<index_t>, std::vector<std::pair<index_t, index_t>>>;

Encoded encode(const Tokenizer& words, const nb::bytes& text, bool adds_special) {
  const std::string_view given(text.c_str(), text.size());
  const nb::gil_scoped_release others_may_run;  // the caller holds the text
  Encoding found = words.encode(given, adds_special);
  Encoded told{std::move(found.ids), {}};
  told.second.reserve(found.bytes.size());
  for (const ByteRange& range : found.bytes) told.second.emplace_back(range.begin, range.end);
  return told;
}

std::vector<ChatTurn> turns_of(const std::vector<std::pair<std::string, std::string>>& pairs) {
  std::vector<ChatTurn> turns;
  std::vector<Problem> problems;
  for (const auto& [role, text] : pairs) {
    const std::string where = "turns[" + std::to_string(turns.size()) + "]";
    if (role != "system" && role != "user" && role != "assistant")
      problems.push_back({where, "role \"" + role + "\"; system, user or assistant"});
    turns.push_back({role == "system" ? ChatRole::system
                     : role == "user" ? ChatRole::user
                                      : ChatRole::assistant,
                     text});
  }
  if (!problems.empty()) throw OptionError("chat_prompt", std::move(problems));
  return turns;
}

}  // namespace

void add_tokenizer(nb::module_& module) {
  nb::class_<Tokenizer>(module, "Tokenizer", "See glasshead.Tokenizer.")
      .def(
          "__init__",
          [](Tokenizer* self, const std::string& path) {
            const nb::gil_scoped_release others_may_run;
            new (self) Tokenizer(Tokenizer::load(path));
          },
          nb::arg("path"))
      .def("encode", &encode, nb::arg("text"), nb::arg("adds_special"))
      .def(
          "decode",
          [](const Tokenizer& self, const std::vector<index_t>& ids, bool skips_special) {
            std::string text;
            {
              const nb::gil_scoped_release others_may_run;
              text = self.decode(ids, skips_special);
            }
            return text_of(text);
          },
          nb::arg("ids"), nb::arg("skips_special"))
      .def("size", &Tokenizer::size)
      .def(
          "token", [](const Tokenizer& self, index_t id) { return text_of(self.token(id)); },
          nb::arg("id"))
      .def(
          "bytes_of",
          [](const Tokenizer& self, index_t id) {
            const std::string bytes = self.bytes_of(id);
            return nb::bytes(bytes.data(), bytes.size());
          },
          nb::arg("id"))
      .def(
          "id_of",
          [](const Tokenizer& self, const std::string& token) { return self.id_of(token); },
          nb::arg("token"))
      .def("is_special", &Tokenizer::is_special, nb::arg("id"))
      .def("bos", &Tokenizer::bos)
      .def("eos", &Tokenizer::eos)
      .def("pad", &Tokenizer::pad)
      .def("unk", &Tokenizer::unk)
      .def("mask", &Tokenizer::mask)
      .def("cls", &Tokenizer::cls)
      .def("sep", &Tokenizer::sep)
      .def("chat_template", &Tokenizer::chat_template);
  nb::class_<Utf8Stream>(module, "Utf8Stream", "Ids to text as they come.")
      .def(nb::init<const Tokenizer&>(), nb::arg("tokenizer"))
      .def(
          "push", [](Utf8Stream& self, index_t id) { return text_of(self.push(id)); },
          nb::arg("id"))
      .def("finish", [](Utf8Stream& self) { return text_of(self.finish()); });
  module.def("has_tokenizers", &Tokenizer::is_available);
  module.def(
      "chat_form", [](const std::string& text) { return chat_form(text); },
      nb::arg("chat_template"));
  module.def(
      "chat_prompt",
      [](const std::string& chat_template,
         const std::vector<std::pair<std::string, std::string>>& turns) {
        return text_of(chat_prompt(chat_template, turns_of(turns)));
      },
      nb::arg("chat_template"), nb::arg("turns"));
}

}  // namespace glasshead::python
