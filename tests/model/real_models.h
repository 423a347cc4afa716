// The small trained checkpoints that lie beside the sources, in ../shared/models. Where they are
// not, tests of them are skipped, and say so.
#pragma once

#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "glasshead/model.h"

namespace glasshead {

inline std::string real_model(const std::string& name) {
  return GLASSHEAD_SOURCE_DIR "/../shared/models/" + name;
}

inline bool has_real_model(const std::string& name) {
  return std::ifstream(real_model(name) + "/config.json").good();
}

#define GLASSHEAD_NEED_MODEL(name) \
  if (!has_real_model(name)) GTEST_SKIP() << real_model(name) << " is not there"

// Bits, so that NaN equals itself and -0 is not 0.
inline std::vector<std::uint32_t> bits_of(const View<const float, 2>& rows) {
  std::vector<std::uint32_t> bits;
  for (index_t i = 0; i < rows.shape[0]; ++i)
    for (index_t n = 0; n < rows.shape[1]; ++n)
      bits.push_back(std::bit_cast<std::uint32_t>(rows(i, n)));
  return bits;
}

inline std::vector<std::uint32_t> row_bits(const View<const float, 2>& rows, index_t row) {
  return bits_of({rows.data + row * rows.strides[0], {1, rows.shape[1]}, rows.strides});
}

}  // namespace glasshead
