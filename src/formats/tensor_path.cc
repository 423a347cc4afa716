// Tensors by the paths of their files.
#include <optional>
#include <string_view>

#include "base/fail.h"
#include "formats/in_file.h"
#include "formats/shown.h"
#include "glasshead/tensor_file.h"

namespace glasshead {
namespace {

constexpr std::string_view kNpy = ".npy";
constexpr std::string_view kSafetensors = ".safetensors";

// "qkv.safetensors:q" is a file and a tensor's name; other paths are whole.
struct TensorPath {
  std::string file;
  std::optional<std::string> tensor;
};

TensorPath split(const std::string& path) {
  const std::string mark = std::string(kSafetensors) + ":";
  const std::size_t at = path.find(mark);
  if (at == std::string::npos) return {path, std::nullopt};
  const std::size_t colon = at + kSafetensors.size();
  return {path.substr(0, colon), path.substr(colon + 1)};
}

void need_tensor_ending(const char* function, const std::string& path) {
  if (path.ends_with(".npz"))
    fail(ErrorKind::format, function, path,
         "an .npz is an archive of arrays; save them one by one, each as a .npy");
  if (!path.ends_with(kNpy) && !path.ends_with(kSafetensors))
    fail(ErrorKind::format, function, path, "a tensor's file must end in .npy or .safetensors");
}

std::string names_of(const NamedTensors& tensors) {
  constexpr std::size_t kShown = 10;
  std::string text;
  for (std::size_t n = 0; n < tensors.size() && n < kShown; ++n)
    text += (n > 0 ? ", " : "") + formats::shown(tensors[n].first);
  return tensors.size() > kShown ? text + ", ..." : text;
}

}  // namespace

FileTensor read_npy(const std::string& path) {
  FileTensor tensor;
  std::vector<Problem> problems;
  if (!parse_npy(read_bytes(path), tensor, problems))
    fail(ErrorKind::format, "read_npy", formats::in_file(path, std::move(problems)));
  return tensor;
}

NamedTensors read_safetensors(const std::string& path) {
  NamedTensors tensors;
  std::vector<Problem> problems;
  if (!parse_safetensors(read_bytes(path), tensors, problems))
    fail(ErrorKind::format, "read_safetensors", formats::in_file(path, std::move(problems)));
  return tensors;
}

FileTensor read_tensor(const std::string& path) {
  const TensorPath parts = split(path);
  need_tensor_ending("read_tensor", parts.file);
  if (parts.file.ends_with(kNpy)) return read_npy(parts.file);
  NamedTensors tensors = read_safetensors(parts.file);
  if (!parts.tensor) {
    if (tensors.size() == 1) return std::move(tensors.front().second);
    fail(ErrorKind::format, "read_tensor", path,
         "holds " + std::to_string(tensors.size()) + " tensors" +
             (tensors.empty() ? "" : " (" + names_of(tensors) + ")") + "; name one, as in " + path +
             ":NAME");
  }
  for (auto& [name, tensor] : tensors)
    if (name == *parts.tensor) return std::move(tensor);
  fail(ErrorKind::format, "read_tensor", parts.file,
       "holds no tensor " + formats::shown(*parts.tensor) + "; it holds " +
           (tensors.empty() ? "none" : names_of(tensors)));
}

void write_npy(const std::string& path, const FileTensor& tensor) {
  write_bytes(path, npy_bytes(tensor));
}

void write_safetensors(const std::string& path, const NamedTensors& tensors) {
  write_bytes(path, safetensors_bytes(tensors));
}

void write_tensor(const std::string& path, const FileTensor& tensor, const std::string& name) {
  need_tensor_ending("write_tensor", path);
  if (path.ends_with(kNpy))
    write_npy(path, tensor);
  else
    write_safetensors(path, {{name, tensor}});
}

}  // namespace glasshead
