// GGUF, llama.cpp's file of keys, values and tensors: "GGUF", u32 version, u64 tensor count, u64
// key count, the keys and values, the tensors' descriptions, the data. Source: ggml-org/ggml
// docs/gguf.md and src/gguf.cpp.
//
//   Config config;  std::vector<StoredTensor> tensors;
//   parse_gguf(file.bytes(), config, tensors, problems)
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "formats/checkpoint.h"

namespace glasshead::formats {

// False, and every problem found until reading had to stop. Read are versions 2 and 3, little
// endian, and tensors of F32 F16 BF16 Q8_0 Q4_0 Q4_1 Q5_0 Q5_1 Q4_K Q5_K Q6_K. The tensors' bytes
// are those of `bytes`. What is allocated is in proportion to the bytes read, never to a count that
// the file claims. Bytes after the last tensor are no problem: writers pad the file.
bool parse_gguf(std::span<const std::byte> bytes, Config& config,
                std::vector<StoredTensor>& tensors, std::vector<Problem>& problems);

}  // namespace glasshead::formats
