// A model's files as named tensors and a configuration, whatever format they came in.
//
//   Checkpoint files = Checkpoint::open("stories260K");        // a directory, or one .gguf file
//   const StoredTensor* q = files.find("model.layers.0.self_attn.q_proj.weight");
//   files.config().text("model_type", problems)                // config.json, or GGUF metadata
//
// Files are memory-mapped: a tensor's bytes are those of the file and live as long as the
// Checkpoint (or a copy of it: copies share the mapping). They are hostile input: every count,
// length, offset and shape is checked against the bytes there are before anything is allocated.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/stored.h"
#include "formats/config.h"
#include "glasshead/error.h"

namespace glasshead::formats {

struct StoredTensor {
  std::string name;
  Stored type = Stored::f32;
  std::vector<index_t> shape;  // outermost first; a GGUF's reversed dims are put in this order
  std::span<const std::byte> bytes;  // dense, row-major; no alignment is promised
};

enum class CheckpointFormat { safetensors, gguf };

class Checkpoint {
 public:
  Checkpoint();  // without tensors and keys
  // A directory with config.json and model.safetensors, or the shards that
  // model.safetensors.index.json names; a .safetensors file with config.json beside it; or a .gguf
  // file. Throws IoError or FormatError with everything that is wrong.
  static Checkpoint open(const std::string& path);
  // From bytes in memory, which must outlive it, without throwing: false, and one or more problems.
  static bool parse_gguf(std::span<const std::byte> bytes, Checkpoint& out,
                         std::vector<Problem>& problems);
  static bool parse_safetensors(std::span<const std::byte> bytes, std::string_view config_json,
                                Checkpoint& out, std::vector<Problem>& problems);

  CheckpointFormat format() const;
  const std::string& path() const;                   // what was opened
  const Config& config() const;                      // config.json whole, or the GGUF's key-values
  const std::vector<StoredTensor>& tensors() const;  // in file order
  const StoredTensor* find(std::string_view name) const;  // null: there is none
  // The bytes of another file of the directory ("vocab.txt", "1_Pooling/config.json"); empty if
  // absent, or if this was not opened from a path. Throws IoError if it is there and cannot be
  // read.
  std::vector<std::byte> beside(const std::string& file) const;

 private:
  friend class CheckpointOpening;
  struct Files;
  std::shared_ptr<const Files> files_;
};

}  // namespace glasshead::formats
