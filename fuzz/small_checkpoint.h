// What holds of every checkpoint that was not refused.
#pragma once

#include <cmath>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "base/checked.h"
#include "formats/checkpoint.h"

namespace glasshead::fuzz {

// Every way of reading a key gives a value, or a problem; never both, never neither.
inline void check_key(const formats::Config& config, const std::string& key) {
  std::vector<Problem> problems;
  formats::Reader read(config, problems);
  const auto once = [&](bool is_default) {
    if (problems.size() > 1 || (!problems.empty() && !is_default)) std::abort();
    problems.clear();
  };
  const index_t whole = read.whole_or(key, -1);
  once(whole == -1);
  const double number = read.number_or(key, HUGE_VAL);
  once(number == HUGE_VAL);
  read.flag_or(key, true);
  once(true);
  once(read.text_or(key, "?") == "?");
  once(read.wholes_or(key, {-1}) == std::vector<index_t>{-1});
  once(read.numbers_or(key, {HUGE_VAL}) == std::vector<double>{HUGE_VAL});
  once(read.texts_or(key, {"?"}) == std::vector<std::string>{"?"});
}

inline void check_tensor(const formats::StoredTensor& tensor, std::span<const std::byte> bytes) {
  const std::less_equal<const std::byte*> before;
  if (!before(bytes.data(), tensor.bytes.data()) ||
      !before(tensor.bytes.data() + tensor.bytes.size(), bytes.data() + bytes.size()))
    std::abort();
  const std::optional<index_t> count = checked_size(tensor.shape);
  if (!count || *count % block_elements(tensor.type) != 0 ||
      *count / block_elements(tensor.type) * block_bytes(tensor.type) !=
          static_cast<index_t>(tensor.bytes.size()))
    std::abort();
  if (!is_number(tensor.type)) return;
  std::vector<float> out(static_cast<std::size_t>(*count));
  dequantise(tensor.type, tensor.bytes.data(), *count, out.data());
}

inline void check_checkpoint(const formats::Checkpoint& files, std::span<const std::byte> bytes) {
  for (const formats::StoredTensor& tensor : files.tensors()) {
    if (files.find(tensor.name) != &tensor) std::abort();
    if (!tensor.bytes.empty()) check_tensor(tensor, bytes);
  }
  for (const auto& [key, value] : files.config()) check_key(files.config(), key);
}

}  // namespace glasshead::fuzz
