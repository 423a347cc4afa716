#include "cli/attend_outputs.h"

#include <algorithm>
#include <filesystem>

#include "cli/command.h"
#include "cli/values.h"

namespace glasshead::cli {
namespace {

// Whether two paths name one file, there already or not: r.npy and ./r.npy, a link and its target.
bool is_same_file(const std::string& a, const std::string& b) {
  namespace fs = std::filesystem;
  std::error_code error;  // a path that can't be resolved fails when it is written
  return a == b || fs::weakly_canonical(fs::absolute(a, error), error) ==
                       fs::weakly_canonical(fs::absolute(b, error), error);
}

}  // namespace

void check_paths(std::vector<Output>& outputs, std::vector<Problem>& problems) {
  for (std::size_t n = 0; n < outputs.size(); ++n) {
    Output& output = outputs[n];
    for (std::size_t other = 0; other < n; ++other)
      if (is_same_file(outputs[other].path, output.path)) output.path = outputs[other].path;
    const bool is_npy = output.path.ends_with(".npy");
    if (!is_npy && !output.path.ends_with(".safetensors"))
      problems.push_back({output.flag, output.path + ": must end in .npy or .safetensors"});
    need_writable(output.flag, output.path, problems);
    for (std::size_t other = 0; is_npy && other < n; ++other)
      if (outputs[other].path == output.path)
        problems.push_back({output.flag, output.path + ": is also the file of " +
                                             outputs[other].flag +
                                             "; a .npy file holds one tensor, .safetensors many"});
  }
}

void write_outputs(std::vector<Output> outputs) {
  for (std::size_t n = 0; n < outputs.size(); ++n) {
    if (outputs[n].path.empty()) continue;
    const std::string path = outputs[n].path, flag = outputs[n].flag;
    if (path.ends_with(".npy")) {
      write_for("attend", flag, [&] { write_npy(path, outputs[n].tensor); });
      continue;
    }
    NamedTensors together;
    for (Output& output : outputs) {
      if (output.path != path) continue;
      together.emplace_back(output.name, std::move(output.tensor));
      output.path.clear();  // written
    }
    write_for("attend", flag, [&] { write_safetensors(path, together); });
  }
}

std::string rows_text(const std::string& name, const FileTensor& tensor) {
  std::string text =
      name + " " + glasshead::name(tensor.dtype) + " " + shape_text(tensor.shape) + "\n";
  const auto columns = static_cast<std::size_t>(tensor.shape.empty() ? 1 : tensor.shape.back());
  if (columns == 0 || tensor.size() == 0) return text;
  std::vector<std::string> cells;
  for (index_t n = 0; n < tensor.size(); ++n)
    cells.push_back(number_text(tensor.load(n), tensor.dtype));
  std::vector<std::size_t> widths(columns);
  for (std::size_t n = 0; n < cells.size(); ++n)
    widths[n % columns] = std::max(widths[n % columns], cells[n].size());

  const std::size_t rank = tensor.shape.size();
  const auto rows = rank > 1 ? static_cast<std::size_t>(tensor.shape[rank - 2]) : 1;
  for (std::size_t row = 0; row < cells.size() / columns; ++row) {
    if (rank > 2 && row % rows == 0) {  // the heading "[1, 0]" of matrix number row / rows
      auto left = static_cast<index_t>(row / rows);
      std::vector<index_t> at(rank - 2);
      for (std::size_t axis = rank - 2; axis-- > 0;) {
        at[axis] = left % tensor.shape[axis];
        left /= tensor.shape[axis];
      }
      if (cells.size() > rows * columns) text += shape_text(at) + "\n";
    }
    for (std::size_t column = 0; column < columns; ++column) {
      const std::string& cell = cells[row * columns + column];
      text += "  " + std::string(widths[column] - cell.size(), ' ') + cell;
    }
    text += '\n';
  }
  return text;
}

}  // namespace glasshead::cli
