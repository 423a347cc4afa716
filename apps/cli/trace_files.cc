#include "cli/trace_files.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/commands.h"
#include "glasshead/tensor_file.h"
#include "wire/case_reader.h"
#include "wire/decimal.h"
#include "wire/display.h"

namespace glasshead::cli {
namespace {

namespace fs = std::filesystem;

fs::path this_program() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  return error ? fs::path() : program;
}

// Where cases may be, the installed folder first.
std::vector<fs::path> possible_folders() {
  std::vector<fs::path> folders;
  if (const std::string shared = shared_folder(); !shared.empty())
    folders.push_back(fs::path(shared) / "cases");
  folders.emplace_back(GLASSHEAD_CASES);
  return folders;
}

std::vector<fs::path> case_folders() {
  std::vector<fs::path> folders = possible_folders();
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

std::string find_case(const std::string& name, const char* command) {
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
  throw IoError(command,
                {{name, "no such file, and no case of this name" +
                            (best.empty() ? std::string("; glasshead trace --list shows them")
                                          : "; did you mean " + best + "?")}});
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
  const TraceTensor* const found = trace.find("out");
  if (!found)
    throw OptionError("trace", {{"--check",
                                 "a .npy or .safetensors holds one \"out\", and this case "
                                 "has several blocks; compare with a .json trace"}});
  const TraceTensor& ours = *found;
  // Leading axes of size 1 are no difference.
  const auto trimmed = [](std::vector<index_t> shape) {
    while (shape.size() > 2 && shape.front() == 1) shape.erase(shape.begin());
    return shape;
  };
  if (trimmed(theirs.shape) != trimmed(ours.shape))
    return "out is " + wire::shape_text(ours.shape) + ", " + path + " holds " +
           wire::shape_text(theirs.shape);
  // The file's own rounding, and as much again for another order of summing.
  const double unit = theirs.dtype == DType::f64   ? 0x1p-50
                      : theirs.dtype == DType::f32 ? 0x1p-21
                      : theirs.dtype == DType::f16 ? 0x1p-10
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

// A result written piece by piece, by the rules of write_bytes: a regular file, or one that a link
// names, is written beside and renamed when it is complete; a device or pipe is written to.
class OutputFile {
 public:
  explicit OutputFile(const std::string& path) : name_(path) {
    if (path.empty() || path == "-") {
      name_ = "stdout";
      file_ = stdout;
      return;
    }
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (fs::is_directory(status))
      throw IoError("write", {{path, "is a directory; a file is needed"}});
    const bool is_device = fs::exists(status) && !fs::is_regular_file(status);
    target_ = fs::exists(status) ? fs::canonical(path, error).string() : path;
    if (!is_device) beside_ = target_ + "." + std::to_string(::getpid()) + ".part";
    owned_.reset(std::fopen((is_device ? path : beside_).c_str(), is_device ? "wb" : "wbx"));
    file_ = owned_.get();
    if (file_) return;
    beside_.clear();  // another's
    refuse("opened");
  }
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile() {
    if (!beside_.empty()) std::remove(beside_.c_str());
  }

  void put(std::string_view piece) {
    if (std::fwrite(piece.data(), 1, piece.size(), file_) != piece.size()) refuse("written");
  }
  void finish() {
    if (std::fflush(file_) != 0) refuse("written");
    // Before the rename: after a crash of the machine the target must not be an empty file.
    if (!beside_.empty() && ::fsync(::fileno(file_)) != 0) refuse("written");
    if (owned_ && std::fclose(owned_.release()) != 0) refuse("written");
    if (!beside_.empty() && std::rename(beside_.c_str(), target_.c_str()) != 0) refuse("replaced");
    beside_.clear();
  }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  [[noreturn]] void refuse(const char* what) const {
    throw IoError("write", {{name_, fmt::format("cannot be {}: {}", what, std::strerror(errno))}});
  }

  std::string name_, target_, beside_;
  std::unique_ptr<std::FILE, Close> owned_;
  std::FILE* file_ = nullptr;
};

// The first place where two JSON values differ, as a path; "" if nowhere.
std::string first_difference(const nlohmann::json& a, const nlohmann::json& b,
                             const std::string& where) {
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

std::string shared_folder() {
  const fs::path program = this_program();
  if (program.empty()) return {};
  return (program.parent_path().parent_path() / "share" / "glasshead").string();
}

std::string helper_program(const std::string& name) {
  const fs::path folder = this_program().parent_path();
  std::error_code ignored;
  if (fs::exists(folder / name, ignored)) return (folder / name).string();
  return (folder.parent_path() / "libexec" / "glasshead" / name).string();
}

CaseText load_case_text(const std::string& name_or_path, const char* command) {
  const fs::path path = find_case(name_or_path, command);
  std::vector<Problem> problems;
  CaseText found{path.stem().string(), path.string(), read_file(path.string()), {}};
  std::optional<wire::Case> c = wire::parse_case(found.text, found.name, problems);
  if (!c) {
    for (Problem& problem : problems)
      problem.where = path.filename().string() + ": " + problem.where;
    throw FormatError(command, std::move(problems));
  }
  found.parsed = std::move(*c);
  return found;
}

wire::Case load_case(const std::string& name_or_path, const char* command) {
  return load_case_text(name_or_path, command).parsed;
}

std::string list_cases() {
  if (case_folders().empty()) {
    std::vector<Problem> problems;
    for (const fs::path& folder : possible_folders())
      problems.push_back({"--list", folder.string() + ": no such folder of cases"});
    throw IoError("trace", std::move(problems));
  }
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
  OutputFile file(path);
  write([&](std::string_view piece) { file.put(piece); });
  file.finish();
}

void write_taps(const std::string& path, const Trace& trace,
                const std::vector<std::string>& steps) {
  const bool is_npy = ends_with(path, ".npy");
  std::vector<std::string> names = steps;
  if (names.empty() && is_npy) names = {"out"};
  NamedTensors all;
  std::vector<char> is_found(names.size(), 0);
  const auto add = [&](const std::string& tap, const TraceTensor& value) {
    bool is_wanted = names.empty();
    for (std::size_t n = 0; n < names.size(); ++n)
      if (names[n] == tap || names[n] == wire::leaf_of(tap)) {
        is_found[n] = 1;
        is_wanted = true;
      }
    if (is_wanted) all.emplace_back(tap, file_tensor(value));
  };
  for (const auto& [tap, value] : trace.inputs) add(tap, value);
  for (const TracedStep& traced : trace.steps) add(traced.step.tap, traced.value);
  std::vector<Problem> problems;
  for (std::size_t n = 0; n < names.size(); ++n)
    if (is_found[n] == 0)
      problems.push_back({"--steps", names[n] + ": no step or matrix of this name"});
  // "out" is the first run's, where later runs have their own.
  if (is_npy && names.size() == 1 && all.size() > 1)
    std::erase_if(all, [&, has_exact = trace.find(names[0]) != nullptr](const auto& tensor) {
      return has_exact && tensor.first != names[0];
    });
  if (is_npy && problems.empty() && all.size() > 1) {
    std::string found;
    for (const auto& [tap, tensor] : all) found += (found.empty() ? "" : ", ") + tap;
    problems.push_back({"--steps", "a .npy holds one matrix, and these are " + found +
                                       "; choose one, or write a .safetensors"});
  }
  if (!problems.empty()) throw OptionError("trace", std::move(problems));
  if (is_npy)
    write_npy(path, all.front().second);
  else
    write_safetensors(path, all);
}

std::string compare_with(const std::string& path, const Trace& trace, const std::string& json) {
  if (!ends_with(path, ".json")) return compare_out(path, trace);
  const nlohmann::json theirs = nlohmann::json::parse(read_file(path), nullptr, false);
  if (theirs.is_discarded())
    throw FormatError(
        "trace",
        {{"--check", path + ": not JSON; give an earlier --format json, or a .npy of out"}});
  const std::string found = first_difference(nlohmann::json::parse(json), theirs, "");
  return found.empty() ? std::string() : found;
}

}  // namespace glasshead::cli
