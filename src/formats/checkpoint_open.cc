// A Checkpoint from the files that a path names. Not in the WebAssembly module.
#include <algorithm>
#include <cerrno>
#include <dirent.h>
#include <map>
#include <optional>
#include <unistd.h>
#include <utility>

#include "base/fail.h"
#include "base/mapped_file.h"
#include "formats/checkpoint_contents.h"
#include "formats/gguf.h"
#include "formats/in_file.h"
#include "formats/shown.h"
#include "glasshead/tensor_file.h"

namespace glasshead::formats {
namespace {

constexpr std::string_view kConfig = "config.json";
constexpr std::string_view kWhole = "model.safetensors";
constexpr std::string_view kIndex = "model.safetensors.index.json";
constexpr std::string_view kSafetensors = ".safetensors";

// The names in a directory; nullopt: it is none, or cannot be read.
std::optional<std::vector<std::string>> names_in(const std::string& path) {
  struct Close {
    void operator()(DIR* directory) const { ::closedir(directory); }
  };
  const std::unique_ptr<DIR, Close> directory(::opendir(path.c_str()));
  if (directory == nullptr) return std::nullopt;
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(directory.get())) names.emplace_back(entry->d_name);
  std::sort(names.begin(), names.end());
  return names;
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

std::string in_folder(const std::string& folder, std::string_view name) {
  return folder + (folder.ends_with('/') ? "" : "/") + std::string(name);
}

// A name that can only mean a file of the same directory.
bool is_plain(std::string_view name) {
  constexpr std::string_view kSeparators("/\\:\0", 4);
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(kSeparators) == std::string_view::npos;
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

// Collects what is wrong with all the files before anything is thrown.
class CheckpointOpening {
 public:
  explicit CheckpointOpening(const std::string& path) : path_(path) {}

  std::shared_ptr<const Checkpoint::Files> run();

 private:
  using Bytes = std::span<const std::byte>;

  void read_folder(const std::vector<std::string>& names);
  void read_file();
  void read_config();
  void read_safetensors(const std::string& path);
  void read_shards();
  using Home = std::map<std::string, std::string>;  // a tensor's shard
  Home read_index(const std::string& path);
  void check_shard(const std::string& shard, const std::string& path, std::size_t first,
                   const Home& home, Home& seen);
  void no_weights(const std::vector<std::string>& names);

  std::optional<Bytes> map(const std::string& path);
  void refuse(const std::string& path, std::string what) {
    problems_.push_back({path, std::move(what)});
  }
  void refuse(const std::string& path, std::vector<Problem> problems) {
    for (Problem& problem : in_file(path, std::move(problems)))
      problems_.push_back(std::move(problem));
  }

  std::string path_;
  std::shared_ptr<Checkpoint::Files> files_ = std::make_shared<Checkpoint::Files>();
  std::vector<Problem> problems_;
  bool is_unreadable_ = false;  // a file is missing, or the system refuses it
};

std::optional<CheckpointOpening::Bytes> CheckpointOpening::map(const std::string& path) {
  std::string what;
  std::optional<MappedFile> file = MappedFile::open(path, what);
  if (!file) {
    refuse(path, std::move(what));
    is_unreadable_ = true;
    return std::nullopt;
  }
  const auto owned = std::make_shared<const MappedFile>(std::move(*file));
  files_->owned.push_back(owned);
  return owned->bytes();
}

std::shared_ptr<const Checkpoint::Files> CheckpointOpening::run() {
  files_->path = path_;
  if (const auto names = names_in(path_)) {
    files_->folder = path_;
    read_folder(*names);
  } else {
    files_->folder = folder_of(path_);
    read_file();
  }
  if (!problems_.empty())
    fail(is_unreadable_ ? ErrorKind::io : ErrorKind::format, "Checkpoint::open",
         std::move(problems_));
  files_->sort_names();
  return files_;
}

void CheckpointOpening::read_folder(const std::vector<std::string>& names) {
  const auto has = [&](std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (has(kWhole) || has(kIndex)) read_config();
  if (has(kWhole))  // where both are, the index is a left-over: Hugging Face's loader does the same
    read_safetensors(in_folder(path_, kWhole));
  else if (has(kIndex))
    read_shards();
  else
    no_weights(names);
}

void CheckpointOpening::no_weights(const std::vector<std::string>& names) {
  const auto ending = [&](std::string_view with) -> const std::string* {
    for (const std::string& name : names)
      if (name.ends_with(with)) return &name;
    return nullptr;
  };
  std::string what = "holds neither model.safetensors nor model.safetensors.index.json";
  if (const std::string* name = ending(".gguf"))
    what += "; its " + shown(*name) + " is opened by its own path";
  else if (const std::string* other = ending(kSafetensors))
    what += "; its " + shown(*other) + " is opened by its own path";
  else if (const std::string* pickle = ending(".bin"))
    what += "; its " + shown(*pickle) +
            " is a pickle, which can run code and is never read: "
            "save it as safetensors";
  refuse(path_, std::move(what));
}

void CheckpointOpening::read_file() {
  if (path_.ends_with(kSafetensors)) {
    read_config();
    read_safetensors(path_);
    return;
  }
  const std::optional<Bytes> bytes = map(path_);
  if (!bytes) return;
  if (!path_.ends_with(".gguf") && !text_of(*bytes).starts_with("GGUF"))
    return refuse(path_, "begins with " + shown(text_of(*bytes).substr(0, 4)) +
                             "; a model is a directory, a .safetensors or a .gguf file");
  files_->format = CheckpointFormat::gguf;
  std::vector<Problem> problems;
  if (!parse_gguf(*bytes, files_->config, files_->tensors, problems))
    refuse(path_, std::move(problems));
}

void CheckpointOpening::read_config() {
  const std::string path = in_folder(files_->folder, kConfig);
  std::string what;
  const std::optional<MappedFile> file = MappedFile::open(path, what);
  if (!file) {
    is_unreadable_ = true;
    return refuse(path, what + "; it says what the weights beside it are");
  }
  std::vector<Problem> problems;
  if (!parse_config(text_of(file->bytes()), files_->config, problems))
    refuse(path, std::move(problems));
}

void CheckpointOpening::read_safetensors(const std::string& path) {
  const std::optional<Bytes> bytes = map(path);
  if (!bytes) return;
  std::vector<Problem> problems;
  if (!append_safetensors(*bytes, files_->tensors, problems)) refuse(path, std::move(problems));
}

CheckpointOpening::Home CheckpointOpening::read_index(const std::string& path) {
  std::string what;
  const std::optional<MappedFile> file = MappedFile::open(path, what);
  if (!file) {
    is_unreadable_ = true;
    refuse(path, what);
    return {};
  }
  Config index;
  std::vector<Problem> problems;
  if (!parse_config(text_of(file->bytes()), index, problems)) {
    refuse(path, std::move(problems));
    return {};
  }
  const ConfigValue* value = find(index, "weight_map");
  const auto* map = value == nullptr ? nullptr : std::get_if<ConfigObject>(&value->is);
  if (map == nullptr) {
    refuse(path, "weight_map is missing, or is no object; it names each tensor's file");
    return {};
  }
  Home home;
  for (const auto& [tensor, shard] : *map) {
    const auto* name = std::get_if<std::string>(&shard.is);
    if (name == nullptr)
      refuse(path, "weight_map: tensor " + shown(tensor) + " has no file's name");
    else if (!is_plain(*name) || !name->ends_with(kSafetensors))
      refuse(path, "weight_map: tensor " + shown(tensor) + " is in " + shown(*name) +
                       "; a plain name of a .safetensors file in the same directory is needed");
    else
      home.emplace(tensor, *name);
  }
  return home;
}

void CheckpointOpening::read_shards() {
  const std::string index = in_folder(path_, kIndex);
  const Home home = read_index(index);
  std::map<std::string, bool> shards;  // by name: whether its tensors are known
  for (const auto& [tensor, shard] : home) shards.emplace(shard, false);
  Home seen;
  for (auto& [shard, is_read] : shards) {
    const std::string path = in_folder(path_, shard);
    const std::size_t before = problems_.size(), first = files_->tensors.size();
    read_safetensors(path);
    is_read = problems_.size() == before;
    if (is_read) check_shard(shard, path, first, home, seen);
  }
  for (const auto& [tensor, shard] : home)
    if (shards.at(shard) && !seen.contains(tensor))
      refuse(index, "weight_map: tensor " + shown(tensor) + " is not in " + shown(shard));
}

// The tensors from `first` on are the shard's.
void CheckpointOpening::check_shard(const std::string& shard, const std::string& path,
                                    std::size_t first, const Home& home, Home& seen) {
  for (std::size_t n = first; n < files_->tensors.size(); ++n) {
    const std::string& tensor = files_->tensors[n].name;
    const auto [other, is_new] = seen.emplace(tensor, shard);
    const auto named = home.find(tensor);
    if (!is_new)
      refuse(path, "tensor " + shown(tensor) + ": is in " + shown(other->second) + ", too");
    else if (named == home.end())
      refuse(path, "tensor " + shown(tensor) + ": the index does not name it");
    else if (named->second != shard)
      refuse(path,
             "tensor " + shown(tensor) + ": the index says that it is in " + shown(named->second));
  }
}

Checkpoint Checkpoint::open(const std::string& path) {
  Checkpoint result;
  result.files_ = CheckpointOpening(path).run();
  return result;
}

std::vector<std::byte> Checkpoint::beside(const std::string& file) const {
  const std::size_t slash = file.find('/');
  const bool is_inside = slash == std::string::npos
                             ? is_plain(file)
                             : is_plain(file.substr(0, slash)) && is_plain(file.substr(slash + 1));
  if (!is_inside)
    fail(ErrorKind::option, "Checkpoint::beside", "file",
         "is " + shown(file) +
             "; a plain name of a file in the model's directory, or in a folder there, is needed");
  const std::string path = in_folder(files_->folder, file);
  if (files_->folder.empty() || (::access(path.c_str(), F_OK) != 0 && errno == ENOENT)) return {};
  return read_bytes(path);
}

}  // namespace glasshead::formats
