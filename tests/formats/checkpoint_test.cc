#include "formats/checkpoint.h"

#include <filesystem>
#include <fstream>
#include <unistd.h>

#include <gtest/gtest.h>

#include "formats/gguf_bytes.h"

namespace glasshead::test {
namespace {

namespace fs = std::filesystem;
using formats::Checkpoint;
using formats::CheckpointFormat;
using formats::StoredTensor;

class Checkpoints : public testing::Test {
 protected:
  Checkpoints()
      : folder_(fs::temp_directory_path() / ("glasshead-model-" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~Checkpoints() override { fs::remove_all(folder_); }
  std::string path(const std::string& name = "") const {
    return name.empty() ? folder_.string() : (folder_ / name).string();
  }
  void put(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
  }
  // What opening says, without the folder's name.
  template <class E>
  std::string refused(const std::string& opened) const {
    try {
      Checkpoint::open(opened);
    } catch (const E& error) {
      std::string text = lines(error.problems());
      for (std::size_t at; (at = text.find(path())) != std::string::npos;)
        text.replace(at, path().size(), "DIR");
      return text;
    }
    ADD_FAILURE() << "nothing, or another type, was thrown";
    return "";
  }
  fs::path folder_;
};

// A file of one f32 number for each name.
std::string shard(const std::vector<std::string>& names) {
  std::string header = "{";
  std::vector<float> data;
  for (const std::string& name : names) {
    const std::size_t at = 4 * data.size();
    header += (data.empty() ? "\"" : ",\"") + name + R"(":{"dtype":"F32","shape":[1],)" +
              R"("data_offsets":[)" + std::to_string(at) + "," + std::to_string(at + 4) + "]}";
    data.push_back(static_cast<float>(names.size()));
  }
  return safetensors_file(header + "}", raw(data));
}

std::string index(const std::vector<std::pair<std::string, std::string>>& map) {
  std::string text = R"({"metadata":{"total_size":8},"weight_map":{)";
  for (const auto& [tensor, file] : map)
    text += (text.ends_with('{') ? "\"" : ",\"") + tensor + "\":\"" + file + "\"";
  return text + "}}";
}

std::vector<std::string> names(const Checkpoint& files) {
  std::vector<std::string> list;
  for (const StoredTensor& tensor : files.tensors()) list.push_back(tensor.name);
  return list;
}

TEST_F(Checkpoints, a_folder_of_safetensors_and_config_is_opened) {
  put("config.json", R"({"model_type":"llama"})");
  put("model.safetensors", shard({"b", "a"}));
  put("vocab.txt", "words");
  Checkpoint copy;
  {
    const Checkpoint files = Checkpoint::open(path());
    copy = files;
  }
  EXPECT_EQ(copy.format(), CheckpointFormat::safetensors);
  EXPECT_EQ(copy.path(), path());
  EXPECT_EQ(names(copy), (std::vector<std::string>{"b", "a"}));
  ASSERT_NE(copy.find("a"), nullptr);
  float value = 0;
  dequantise(copy.find("a")->type, copy.find("a")->bytes.data(), 1, &value);
  EXPECT_EQ(value, 2);
  EXPECT_EQ(copy.config().size(), 1U);
  EXPECT_EQ(copy.beside("vocab.txt"), bytes_of("words"));
  EXPECT_TRUE(copy.beside("tokenizer.json").empty());
  EXPECT_TRUE(copy.beside("1_Pooling/config.json").empty());
  for (const char* name : {"../a", "a/../b", "a/..", "/a", "a/", "a/b/c", "..", "", "a\\b"})
    EXPECT_THROW(copy.beside(name), OptionError) << name;
}

TEST_F(Checkpoints, one_file_is_opened_by_its_path) {
  put("config.json", "{}");
  put("other.safetensors", shard({"a"}));
  EXPECT_EQ(names(Checkpoint::open(path("other.safetensors"))), std::vector<std::string>{"a"});
  fs::create_directory(path("inside"));
  put("inside/words", "three");
  EXPECT_EQ(Checkpoint::open(path("other.safetensors")).beside("inside/words"), bytes_of("three"));
  put("m.gguf", Gguf{}.key("k", kU8, "1").tensor("t", {1}, kTensorF32, "abcd").file());
  const Checkpoint gguf = Checkpoint::open(path("m.gguf"));
  EXPECT_EQ(gguf.format(), CheckpointFormat::gguf);
  EXPECT_EQ(names(gguf), std::vector<std::string>{"t"});
  EXPECT_FALSE(gguf.beside("config.json").empty());
  fs::rename(path("m.gguf"), path("blob"));  // as caches name them
  EXPECT_EQ(names(Checkpoint::open(path("blob"))), std::vector<std::string>{"t"});
}

TEST_F(Checkpoints, tensors_of_every_type_are_named_and_may_lie_unaligned) {
  const std::string types[] = {"F64", "F32", "F16", "BF16", "I64",  "I32",     "I16",    "I8",
                               "U64", "U32", "U16", "U8",   "BOOL", "F8_E4M3", "F8_E5M2"};
  std::string header = R"({"odd":{"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  const std::size_t sizes[] = {8, 4, 2, 2, 8, 4, 2, 1, 8, 4, 2, 1, 1, 1, 1};
  std::size_t end = 1;
  for (std::size_t n = 0; n < 15; ++n) {
    header += ",\"" + types[n] + R"(":{"dtype":")" + types[n] +
              R"(","shape":[1],"data_offsets":[)" + std::to_string(end) + ",";
    end += sizes[n];
    header += std::to_string(end) + "]}";
  }
  put("config.json", "{}");
  put("model.safetensors", safetensors_file(header + "}", std::string(end, '\1')));
  const Checkpoint files = Checkpoint::open(path());
  for (std::size_t n = 0; n < 15; ++n) {
    const StoredTensor* tensor = files.find(types[n]);
    ASSERT_NE(tensor, nullptr) << types[n];
    EXPECT_EQ(tensor->bytes.size(), sizes[n]) << types[n];
    std::string lower = types[n];
    for (char& c : lower) c = static_cast<char>(std::tolower(c));
    EXPECT_EQ(lower, name(tensor->type));
  }
}

TEST_F(Checkpoints, shards_are_opened_by_their_index) {
  put("config.json", "{}");
  put("model-00001-of-00002.safetensors", shard({"a", "b"}));
  put("model-00002-of-00002.safetensors", shard({"c"}));
  put("model.safetensors.index.json", index({{"c", "model-00002-of-00002.safetensors"},
                                             {"a", "model-00001-of-00002.safetensors"},
                                             {"b", "model-00001-of-00002.safetensors"}}));
  EXPECT_EQ(names(Checkpoint::open(path())), (std::vector<std::string>{"a", "b", "c"}));
}

TEST_F(Checkpoints, an_index_and_shards_that_disagree_are_refused_with_all_of_it) {
  put("config.json", "{}");
  put("1.safetensors", shard({"a", "both", "unnamed"}));
  put("2.safetensors", shard({"both", "elsewhere"}));
  put("model.safetensors.index.json", index({{"a", "1.safetensors"},
                                             {"both", "1.safetensors"},
                                             {"elsewhere", "1.safetensors"},
                                             {"missing", "2.safetensors"},
                                             {"gone", "3.safetensors"}}));
  EXPECT_EQ(refused<IoError>(path()),
            "DIR/1.safetensors: tensor 'unnamed': the index does not name it\n"
            "DIR/2.safetensors: tensor 'both': is in '1.safetensors', too\n"
            "DIR/2.safetensors: tensor 'elsewhere': the index says that it is in '1.safetensors'\n"
            "DIR/3.safetensors: no such file\n"
            "DIR/model.safetensors.index.json: weight_map: tensor 'missing' is not in "
            "'2.safetensors'\n");
}

TEST_F(Checkpoints, an_index_with_a_hostile_file_name_is_refused) {
  put("config.json", "{}");
  put("a.safetensors", shard({"a"}));
  for (const char* name :
       {"../a.safetensors", "/etc/passwd", "x/a.safetensors", "..", "", "..\\\\a.safetensors",
        "c:a.safetensors", "a.safetensors\\u0000", "a.bin", "a\\u0000.safetensors"}) {
    put("model.safetensors.index.json", index({{"a", name}}));
    EXPECT_TRUE(says(refused<FormatError>(path()),
                     "a plain name of a .safetensors file in the same directory is needed"))
        << name;
  }
  put("model.safetensors.index.json", R"({"weight_map":{"a":7}})");
  EXPECT_TRUE(says(refused<FormatError>(path()), "tensor 'a' has no file's name"));
  put("model.safetensors.index.json", R"({"weight_map":[]})");
  EXPECT_TRUE(says(refused<FormatError>(path()), "weight_map is missing, or is no object"));
  put("model.safetensors.index.json", R"({"weight_map":{"a":"a.safetensors","a":"b"}})");
  EXPECT_TRUE(says(refused<FormatError>(path()), "weight_map/a: occurs twice"));
}

TEST_F(Checkpoints, problems_of_all_files_are_said_at_once) {
  put("config.json", R"({"a": 1, "a": 2})");
  put("model.safetensors", shard({"a"}) + "more");
  EXPECT_EQ(refused<FormatError>(path()),
            "DIR/config.json: a: occurs twice\n"
            "DIR/model.safetensors: data: 8 bytes are there; the tensors need 4: the file goes on "
            "after them\n");
  fs::remove(path("config.json"));
  put("model.safetensors", "");
  EXPECT_EQ(refused<IoError>(path()),
            "DIR/config.json: no such file; it says what the weights beside it are\n"
            "DIR/model.safetensors: header length: the file has 0 bytes; a .safetensors file "
            "begins with 8 bytes that say it\n");
}

TEST_F(Checkpoints, what_holds_no_model_is_refused_with_what_would) {
  EXPECT_EQ(refused<IoError>(path("absent")), "DIR/absent: no such file\n");
  const std::string neither = "holds neither model.safetensors nor model.safetensors.index.json";
  EXPECT_EQ(refused<FormatError>(path()), "DIR: " + neither + "\n");
  put("pytorch_model.bin", "PK\3\4");
  EXPECT_TRUE(says(refused<FormatError>(path()), "'pytorch_model.bin' is a pickle"));
  EXPECT_EQ(refused<FormatError>(path("pytorch_model.bin")),
            "DIR/pytorch_model.bin: begins with 'PK\\x03\\x04'; a model is a directory, a "
            ".safetensors or a .gguf file\n");
  put("adapter.safetensors", shard({"a"}));
  EXPECT_TRUE(says(refused<FormatError>(path()), "'adapter.safetensors' is opened by its own"));
  put("m.gguf", "GGUF");
  EXPECT_TRUE(says(refused<FormatError>(path()), "'m.gguf' is opened by its own path"));
  EXPECT_TRUE(says(refused<FormatError>(path("m.gguf")), "DIR/m.gguf: version: the file ends"));
}

TEST_F(Checkpoints, bytes_in_memory_are_parsed_with_all_problems) {
  const std::vector<std::byte> bytes = bytes_of(shard({"a"}));
  Checkpoint files;
  std::vector<Problem> problems;
  EXPECT_TRUE(Checkpoint::parse_safetensors(bytes, R"({"k":1})", files, problems));
  EXPECT_EQ(names(files), std::vector<std::string>{"a"});
  EXPECT_EQ(files.path(), "");
  EXPECT_TRUE(files.beside("config.json").empty());
  const std::span<const std::byte> cut(bytes.data(), bytes.size() - 1);
  EXPECT_FALSE(Checkpoint::parse_safetensors(cut, "[]", files, problems));
  EXPECT_EQ(problems.size(), 2U) << lines(problems);
}

}  // namespace
}  // namespace glasshead::test
