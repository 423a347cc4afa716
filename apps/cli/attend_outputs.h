// What `attend` was asked to write, checked before anything is computed and written at the end.
#pragma once

#include <string>
#include <vector>

#include "glasshead/error.h"
#include "glasshead/tensor_file.h"

namespace glasshead::cli {

// One flag's file. Several outputs may share a .safetensors file; each has its own name there.
struct Output {
  const char* flag;  // "--lse"
  const char* name;  // "lse"
  std::string path;
  FileTensor tensor;
};

// Paths that cannot be written: a wrong ending, one .npy file for two outputs. Two ways to write
// one file's path become the first.
void check_paths(std::vector<Output>& outputs, std::vector<Problem>& problems);
void write_outputs(std::vector<Output> outputs);

// Rows of numbers, aligned by column, each number as short as reads back the same; a heading for
// each matrix where there are several. For small tensors.
std::string rows_text(const std::string& name, const FileTensor& tensor);
inline constexpr index_t kMostPrinted = 1000;  // numbers: a screenful or two

}  // namespace glasshead::cli
