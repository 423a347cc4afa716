#include "formats/checkpoint.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <utility>

#include "formats/checkpoint_contents.h"
#include "formats/gguf.h"
#include "formats/safetensors_layout.h"

namespace glasshead::formats {
namespace {

constexpr std::array<std::pair<std::string_view, Stored>, 15> kTypes{{
    {"F64", Stored::f64},
    {"F32", Stored::f32},
    {"F16", Stored::f16},
    {"BF16", Stored::bf16},
    {"I64", Stored::i64},
    {"I32", Stored::i32},
    {"I16", Stored::i16},
    {"I8", Stored::i8},
    {"U64", Stored::u64},
    {"U32", Stored::u32},
    {"U16", Stored::u16},
    {"U8", Stored::u8},
    {"BOOL", Stored::boolean},
    {"F8_E4M3", Stored::f8_e4m3},
    {"F8_E5M2", Stored::f8_e5m2},
}};

std::optional<Stored> stored_of(std::string_view dtype) {
  for (const auto& [word, stored] : kTypes)
    if (word == dtype) return stored;
  return std::nullopt;
}

std::size_t element_bytes(std::string_view dtype) {
  const std::optional<Stored> stored = stored_of(dtype);
  return stored ? static_cast<std::size_t>(block_bytes(*stored)) : 0;
}

}  // namespace

bool append_safetensors(std::span<const std::byte> bytes, std::vector<StoredTensor>& tensors,
                        std::vector<Problem>& problems) {
  SafetensorsLayout layout;
  if (!parse_safetensors_layout(bytes, element_bytes, layout, problems)) return false;
  for (SafetensorsEntry& entry : layout.entries)
    tensors.push_back({std::move(entry.name), *stored_of(entry.dtype), std::move(entry.shape),
                       layout.bytes_of(entry)});
  return true;
}

void Checkpoint::Files::sort_names() {
  by_name.resize(tensors.size());
  std::iota(by_name.begin(), by_name.end(), std::size_t{0});
  std::sort(by_name.begin(), by_name.end(),
            [&](std::size_t a, std::size_t b) { return tensors[a].name < tensors[b].name; });
}

Checkpoint::Checkpoint() : files_(std::make_shared<const Files>()) {}

bool Checkpoint::parse_gguf(std::span<const std::byte> bytes, Checkpoint& out,
                            std::vector<Problem>& problems) {
  const auto files = std::make_shared<Files>();
  files->format = CheckpointFormat::gguf;
  if (!formats::parse_gguf(bytes, files->config, files->tensors, problems)) return false;
  files->sort_names();
  out.files_ = files;
  return true;
}

bool Checkpoint::parse_safetensors(std::span<const std::byte> bytes, std::string_view config_json,
                                   Checkpoint& out, std::vector<Problem>& problems) {
  const auto files = std::make_shared<Files>();
  const bool is_config = parse_config(config_json, files->config, problems);
  if (!append_safetensors(bytes, files->tensors, problems) || !is_config) return false;
  files->sort_names();
  out.files_ = files;
  return true;
}

CheckpointFormat Checkpoint::format() const { return files_->format; }
const std::string& Checkpoint::path() const { return files_->path; }
const Config& Checkpoint::config() const { return files_->config; }
const std::vector<StoredTensor>& Checkpoint::tensors() const { return files_->tensors; }

const StoredTensor* Checkpoint::find(std::string_view name) const {
  const auto before = [&](std::size_t n, std::string_view wanted) {
    return files_->tensors[n].name < wanted;
  };
  const auto at = std::lower_bound(files_->by_name.begin(), files_->by_name.end(), name, before);
  if (at == files_->by_name.end() || files_->tensors[*at].name != name) return nullptr;
  return &files_->tensors[*at];
}

}  // namespace glasshead::formats
