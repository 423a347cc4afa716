#include "cli/trace_files.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/commands.h"
#include "glasshead/tensor_file.h"
#include "wire/decimal.h"
#include "wire/display.h"

namespace glasshead::cli {
namespace {

namespace fs = std::filesystem;

// Folders that hold cases, the installed one first.
std::vector<fs::path> case_folders() {
  std::vector<fs::path> folders;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error)
    folders.push_back(program.parent_path().parent_path() / "share" / "glasshead" / "cases");
  folders.emplace_back(GLASSHEAD_CASES);
  std::erase_if(folders, [](const fs::path& folder) {
    std::error_code ignored;
    return !fs::is_directory(folder, ignored);
  });
  return folders;
}

std::vector<fs::path> case_files() {
  std::vector<fs::path> files;
  const std::vector<fs::path> folders = case_folders();
  if (folders.empty()) return files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folders.front()))
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

std::string find_case(const std::string& name) {
  std::error_code error;
  if (fs::is_regular_file(name, error)) return name;
  if (name.find('/') == std::string::npos)
    for (const fs::path& folder : case_folders()) {
      const fs::path file = folder / (name + ".json");
      if (fs::is_regular_file(file, error)) return file.string();
    }
  std::vector<std::string> names;
  for (const fs::path& file : case_files()) names.push_back(file.stem().string());
  const std::string best = nearest(name, names);
  throw IoError("trace",
                {{name, "no such file, and no case of this name" +
                            (best.empty() ? std::string("; glasshead trace --list shows them")
                                          : "; did you mean " + best + "?")}});
}

std::string shape_text(const std::vector<index_t>& shape) {
  std::string text;
  for (const index_t extent : shape) text += (text.empty() ? "" : "x") + fmt::format("{}", extent);
  return text.empty() ? "one number" : text;
}

FileTensor file_tensor(const TraceTensor& value) {
  FileTensor tensor;
  tensor.shape = value.shape;
  tensor.bytes.resize(value.values.size() * sizeof(double));
  std::memcpy(tensor.bytes.data(), value.values.data(), tensor.bytes.size());
  return tensor;
}

bool ends_with(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

std::string compare_out(const std::string& path, const Trace& trace) {
  const FileTensor theirs = read_tensor(path);
  const TraceTensor& ours = trace.at("out");
  // Leading axes of size 1 are no difference.
  const auto trimmed = [](std::vector<index_t> shape) {
    while (shape.size() > 2 && shape.front() == 1) shape.erase(shape.begin());
    return shape;
  };
  if (trimmed(theirs.shape) != trimmed(ours.shape))
    return "out is " + shape_text(ours.shape) + ", " + path + " holds " + shape_text(theirs.shape);
  // The file's own rounding, and as much again for another order of summing.
  const double unit = theirs.dtype == DType::f64   ? 0x1p-50
                      : theirs.dtype == DType::f32 ? 0x1p-21
                                                   : 0x1p-7;
  for (std::size_t n = 0; n < ours.values.size(); ++n) {
    const double a = ours.values[n], b = theirs.load(static_cast<index_t>(n));
    const bool is_same = a == b || (std::isnan(a) && std::isnan(b)) ||
                         std::fabs(a - b) <= unit * std::max(1.0, std::fabs(a));
    if (is_same) continue;
    const auto columns = ours.shape.empty() ? 1 : ours.shape.back();
    return fmt::format("out, row {}, component {}: ", static_cast<index_t>(n) / columns,
                       static_cast<index_t>(n) % columns) +
           wire::shortest(a) + " here, " + wire::shortest(b) + " in " + path;
  }
  return {};
}

// The first place where two JSON values differ, as a path; "" if nowhere.
std::string first_difference(const nlohmann::json& a, const nlohmann::json& b, std::string where) {
  if (a.is_object() && b.is_object()) {
    for (const auto& [key, value] : a.items()) {
      const std::string at = where.empty() ? key : where + "." + key;
      if (!b.contains(key)) return at + ": missing there";
      const std::string found = first_difference(value, b[key], at);
      if (!found.empty()) return found;
    }
    for (const auto& [key, value] : b.items())
      if (!a.contains(key)) return (where.empty() ? key : where + "." + key) + ": only there";
    return {};
  }
  if (a.is_array() && b.is_array() && a.size() == b.size()) {
    for (std::size_t n = 0; n < a.size(); ++n) {
      const std::string found = first_difference(a[n], b[n], where + fmt::format("[{}]", n));
      if (!found.empty()) return found;
    }
    return {};
  }
  return a == b ? std::string() : where + ": " + a.dump() + " here, " + b.dump() + " there";
}

}  // namespace

wire::Case load_case(const std::string& name_or_path) {
  const std::string path = find_case(name_or_path);
  std::vector<Problem> problems;
  std::optional<wire::Case> c =
      wire::parse_case(read_file(path), fs::path(path).stem().string(), problems);
  if (!c) throw FormatError(fs::path(path).filename().string(), std::move(problems));
  return std::move(*c);
}

std::string list_cases() {
  std::string text;
  std::size_t widest = 0;
  for (const fs::path& file : case_files()) widest = std::max(widest, file.stem().string().size());
  for (const fs::path& file : case_files()) {
    std::vector<Problem> problems;
    const std::optional<wire::Case> c =
        wire::parse_case(read_file(file.string()), file.stem().string(), problems);
    text += wire::pad_right(file.stem().string(), static_cast<int>(widest) + 2) +
            (c ? wire::escape_controls(c->title) : std::string("(cannot be read)")) + "\n";
  }
  return text;
}

void write_pieces(const std::string& path,
                  const std::function<void(const std::function<void(std::string_view)>&)>& write) {
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  const bool is_stdout = path.empty() || path == "-";
  const std::string partial = path + ".partial";
  std::unique_ptr<std::FILE, Close> owned;
  if (!is_stdout) owned.reset(std::fopen(partial.c_str(), "wb"));
  std::FILE* file = is_stdout ? stdout : owned.get();
  const std::string name = is_stdout ? "stdout" : path;
  const auto refuse = [&] {
    const std::string why = std::strerror(errno);
    if (!is_stdout) std::remove(partial.c_str());
    throw IoError("write", {{name, "cannot be written: " + why}});
  };
  if (!file) refuse();
  try {
    write([&](std::string_view piece) {
      if (std::fwrite(piece.data(), 1, piece.size(), file) != piece.size()) refuse();
    });
  } catch (...) {
    owned.reset();
    if (!is_stdout) std::remove(partial.c_str());
    throw;
  }
  if (std::fflush(file) != 0) refuse();
  owned.reset();
  if (!is_stdout && std::rename(partial.c_str(), path.c_str()) != 0) refuse();
}

void write_taps(const std::string& path, const Trace& trace,
                const std::vector<std::string>& steps) {
  if (ends_with(path, ".npy")) {
    write_npy(path, file_tensor(trace.at(steps.empty() ? "out" : steps.front())));
    return;
  }
  NamedTensors all;
  const auto is_wanted = [&](const std::string& tap) {
    return steps.empty() || std::find(steps.begin(), steps.end(), tap) != steps.end();
  };
  for (const auto& [tap, value] : trace.inputs)
    if (is_wanted(tap)) all.emplace_back(tap, file_tensor(value));
  for (const TracedStep& traced : trace.steps)
    if (is_wanted(traced.step.tap)) all.emplace_back(traced.step.tap, file_tensor(traced.value));
  write_safetensors(path, all);
}

std::string compare_with(const std::string& path, const Trace& trace, const std::string& json) {
  if (!ends_with(path, ".json")) return compare_out(path, trace);
  const nlohmann::json theirs = nlohmann::json::parse(read_file(path), nullptr, false);
  if (theirs.is_discarded())
    throw FormatError("--check",
                      {{path, "not JSON; give an earlier --format json, or a .npy of out"}});
  const std::string found = first_difference(nlohmann::json::parse(json), theirs, "");
  return found.empty() ? std::string() : found;
}

}  // namespace glasshead::cli
