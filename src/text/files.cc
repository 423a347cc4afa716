#include "text/files.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <utility>

#include "base/fail.h"
#include "formats/checkpoint.h"
#include "formats/shown.h"
#include "glasshead/tensor_file.h"
#include "text/sources.h"

namespace glasshead::text {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFunction = "Tokenizer::load";

std::string read_text(const fs::path& path) {
  const std::vector<std::byte> bytes = read_bytes(path.string());
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

[[noreturn]] void fail_format(const fs::path& path, std::vector<Problem> problems) {
  for (Problem& problem : problems) problem.where = path.string() + ": " + problem.where;
  fail(ErrorKind::format, kFunction, std::move(problems));
}

Beside read_beside(const fs::path& folder) {
  Beside beside;
  std::vector<Problem> problems;
  const auto read = [&](const char* name, formats::Config& config) {
    std::vector<Problem> found;
    if (!is_file(folder / name) || formats::parse_config(read_text(folder / name), config, found))
      return;
    for (const Problem& problem : found)
      problems.push_back({std::string(name) + ": " + problem.where, problem.what});
  };
  read("config.json", beside.config);
  read("tokenizer_config.json", beside.tokenizer_config);
  read("special_tokens_map.json", beside.special_tokens);
  read("added_tokens.json", beside.added_tokens);
  if (is_file(folder / "chat_template.jinja"))
    beside.chat_template = read_text(folder / "chat_template.jinja");
  if (!problems.empty()) fail_format(folder, std::move(problems));
  return beside;
}

Loaded from_json(const std::string& json, const fs::path& path, const Beside& beside) {
  std::vector<Problem> problems;
  Loaded loaded;
  loaded.words = Words::from_json(std::as_bytes(std::span(json)), problems);
  if (loaded.words != nullptr) {
    add_specials(
        beside, [&](std::string_view token) { return loaded.words->id_of(token); },
        loaded.words->size(), loaded.specials, problems);
    loaded.chat_template = find_chat_template(beside, problems);
  }
  if (!problems.empty()) fail_format(path, std::move(problems));
  return loaded;
}

// `read` fills a Vocabulary: false, and problems, if it cannot.
template <class Read>
Loaded from_vocabulary(const fs::path& path, Read read) {
  std::vector<Problem> problems;
  Vocabulary vocabulary;
  Loaded loaded;
  if (read(vocabulary, problems)) loaded.words = Words::from(vocabulary, problems);
  if (loaded.words == nullptr) fail_format(path, std::move(problems));
  loaded.specials = vocabulary.specials;
  loaded.chat_template = std::move(vocabulary.chat_template);
  return loaded;
}

// The special tokens that the other keys of a GGUF name must be those of its tokenizer.json.
void check_ids(const Vocabulary& ids, const Words& words, std::vector<Problem>& problems) {
  const Specials& s = ids.specials;
  for (const auto& [name, id] :
       {std::pair("bos", s.bos), std::pair("eos", s.eos), std::pair("unknown", s.unk),
        std::pair("padding", s.pad), std::pair("mask", s.mask), std::pair("cls", s.cls),
        std::pair("separator", s.sep)}) {
    if (!id) continue;
    const std::string& token = ids.tokens[static_cast<std::size_t>(*id)];
    if (words.id_of(token) != id)
      problems.push_back({std::string("tokenizer.ggml.") + name + "_token_id",
                          "is " + std::to_string(*id) + ", " + formats::shown(token) +
                              ", which tokenizer.huggingface.json doesn't have there"});
  }
}

Loaded from_gguf_json(const formats::Config& config, const std::string& json,
                      const std::string& path) {
  Vocabulary ids;  // its other keys, if there are some, know the special tokens
  std::vector<Problem> ignored, problems;
  if (formats::find(config, "tokenizer.ggml.model") != nullptr) read_gguf(config, ids, ignored);
  Loaded loaded = from_json(json, path + ": tokenizer.huggingface.json", {});
  check_ids(ids, *loaded.words, problems);
  if (!problems.empty()) fail_format(path, std::move(problems));
  loaded.specials = ids.specials;
  loaded.chat_template = std::move(ids.chat_template);
  return loaded;
}

Loaded from_gguf(const std::string& path) {
  const formats::Checkpoint files = formats::Checkpoint::open(path);
  const std::string key = "tokenizer.huggingface.json";
  if (const auto* value = formats::find(files.config(), key)) {
    const auto* json = std::get_if<std::string>(&value->is);
    if (json == nullptr) fail_format(path, {{key, "is no text"}});
    return from_gguf_json(files.config(), *json, path);
  }
  return from_vocabulary(path, [&](Vocabulary& out, std::vector<Problem>& found) {
    return read_gguf(files.config(), out, found);
  });
}

bool begins_as_gguf(const fs::path& path) {
  std::array<char, 4> magic{};
  std::ifstream file(path, std::ios::binary);
  return file.read(magic.data(), magic.size()) && std::string_view(magic.data(), 4) == "GGUF";
}

Loaded from_file(const fs::path& path) {
  const fs::path folder = path.parent_path();
  const std::string name = path.filename().string();
  if (name == "vocab.json" || name == "merges.txt") {
    const Beside beside = read_beside(folder);
    return from_vocabulary(folder, [&](Vocabulary& out, std::vector<Problem>& problems) {
      return read_bpe(read_text(folder / "vocab.json"), read_text(folder / "merges.txt"), beside,
                      out, problems);
    });
  }
  if (path.extension() == ".gguf" || begins_as_gguf(path)) return from_gguf(path.string());
  if (path.extension() == ".json") return from_json(read_text(path), path, read_beside(folder));
  if (path.extension() == ".txt") {
    const Beside beside = read_beside(folder);
    return from_vocabulary(path, [&](Vocabulary& out, std::vector<Problem>& problems) {
      return read_vocab_txt(read_text(path), beside, out, problems);
    });
  }
  if (path.extension() == ".bin")
    return from_vocabulary(path, [&](Vocabulary& out, std::vector<Problem>& problems) {
      return read_tokenizer_bin(read_text(path), out, problems);
    });
  fail(ErrorKind::format, kFunction, path.string(),
       "is none of tokenizer.json, vocab.json, vocab.txt, a .gguf, and llama2.c's tokenizer .bin");
}

Loaded from_folder(const fs::path& folder) {
  if (is_file(folder / "tokenizer.json")) return from_file(folder / "tokenizer.json");
  if (is_file(folder / "vocab.json") && is_file(folder / "merges.txt"))
    return from_file(folder / "vocab.json");
  for (const char* name : {"vocab.txt", "tok512.bin", "tokenizer.bin"})
    if (is_file(folder / name)) return from_file(folder / name);
  std::string what =
      "has none of tokenizer.json, vocab.json with merges.txt, vocab.txt, tok512.bin";
  for (const char* name : {"tokenizer.model", "spiece.model", "sentencepiece.bpe.model"})
    if (is_file(folder / name))
      what +=
          "; " + std::string(name) +
          " is SentencePiece's, which is not read: transformers writes a tokenizer.json from it";
  fail(ErrorKind::format, kFunction, folder.string(), what);
}

}  // namespace

Loaded load_words(const std::string& given) {
  const fs::path path = given;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) fail(ErrorKind::io, kFunction, given, "no such file or directory");
  if (fs::is_directory(status)) return from_folder(path);
  // Weights name the folder that they are in.
  if (path.extension() == ".safetensors")
    return from_folder(path.has_parent_path() ? path.parent_path() : ".");
  return from_file(path);
}

}  // namespace glasshead::text
