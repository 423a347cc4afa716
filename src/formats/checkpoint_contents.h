// What a Checkpoint and its copies share.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "formats/checkpoint.h"

namespace glasshead::formats {

struct Checkpoint::Files {
  CheckpointFormat format = CheckpointFormat::safetensors;
  std::string path;    // what was opened; "" if it was bytes
  std::string folder;  // where `beside` looks; "" for nowhere
  Config config;
  std::vector<StoredTensor> tensors;
  std::vector<std::size_t> by_name;                // indices of tensors, sorted by name
  std::vector<std::shared_ptr<const void>> owned;  // mappings that the tensors' bytes lie in

  void sort_names();  // fills by_name
};

// Appends a .safetensors file's tensors. False, and every problem found, if it is none.
bool append_safetensors(std::span<const std::byte> bytes, std::vector<StoredTensor>& tensors,
                        std::vector<Problem>& problems);

}  // namespace glasshead::formats
