// Numbers as checkpoints store them: single elements, or blocks of quantised ones.
//
//   Stored::q4_1  ->  block_elements 32, block_bytes 20: f16 d, f16 m, 16 bytes of nibbles
//   dequantise(Stored::q4_1, bytes, 64, out);    // two blocks: out[e] = nibble·d + m
//
// Block formats: ggml-org/ggml src/ggml-common.h and ggml-quants.c.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "glasshead/tensor.h"

namespace glasshead {

// The integers and booleans occur in checkpoints beside the weights (position ids, masks): they are
// named so that a loader can say what it found, and never computed with.
enum class Stored : std::uint8_t {
  f64,
  f32,
  f16,
  bf16,
  q8_0,
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q4_k,
  q5_k,
  q6_k,
  i64,
  i32,
  i16,
  i8,
  u64,
  u32,
  u16,
  u8,
  boolean,
  f8_e4m3,
  f8_e5m2
};

const char* name(Stored type);        // "f32", "q4_1", "q6_k", "bool"
index_t block_elements(Stored type);  // 1, 32 or 256
index_t block_bytes(Stored type);     // of one block: 4, 20, 210
bool is_number(Stored type);          // one that dequantise takes: f64 to q6_k
bool is_quantised(Stored type);       // q8_0 to q6_k

// out[e] = element e of `bytes`, widened exactly (f16, bf16), rounded once (f64), or by the block's
// formula, each operation rounded once to f32. count is a multiple of block_elements; `bytes` needs
// no alignment and is_number(type) holds.
void dequantise(Stored type, const std::byte* bytes, index_t count, float* out);

}  // namespace glasshead
