// A call as a .safetensors file.
#include <bit>
#include <cstring>
#include <utility>

#include "audit/inputs.h"
#include "wire/decimal.h"
#include "wire/json_writer.h"

namespace glasshead {
namespace {

// Dense, whatever the strides.
FileTensor dense(const ConstTensor<4>& x) {
  FileTensor file = make_tensor(x.dtype, {x.shape.begin(), x.shape.end()});
  index_t n = 0;
  for (index_t b = 0; b < x.shape[0]; ++b)
    for (index_t h = 0; h < x.shape[1]; ++h)
      for (index_t l = 0; l < x.shape[2]; ++l)
        for (index_t e = 0; e < x.shape[3]; ++e)
          store_element(file.bytes.data(), x.dtype, n++, x.load(b, h, l, e));
  return file;
}

FileTensor dense(const Broadcast& x) {
  const auto rank = static_cast<std::size_t>(x.rank);
  ConstTensor<4> view;
  view.data = x.data;
  view.dtype = x.dtype;
  view.shape.fill(1);
  view.strides.fill(0);
  for (std::size_t axis = 0; axis < rank; ++axis) {
    view.shape[4 - rank + axis] = x.shape[axis];
    view.strides[4 - rank + axis] = x.strides[axis];
  }
  FileTensor file = dense(view);
  file.shape.assign(x.shape.begin(), x.shape.begin() + x.rank);
  return file;
}

// The format keeps words about a file in its header: a length of 8 bytes, then JSON.
std::vector<std::byte> with_metadata(
    const std::vector<std::byte>& file,
    const std::vector<std::pair<std::string, std::string>>& words) {
  static_assert(std::endian::native == std::endian::little, "the length is stored little endian");
  if (words.empty()) return file;
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  const auto* text = reinterpret_cast<const char*>(file.data() + sizeof length);
  std::string header(text, text + length);
  std::string added;
  wire::JsonWriter json([&](std::string_view piece) { added.append(piece); });
  json.begin_object();
  for (const auto& [key, value] : words) json.key(key).value(value);
  json.end_object();
  json.flush();
  header = "{\"__metadata__\":" + added + "," + header.substr(1);
  while (header.size() % 8 != 0) header += ' ';
  std::vector<std::byte> bytes(sizeof length);
  const std::uint64_t size = header.size();
  std::memcpy(bytes.data(), &size, sizeof size);
  const auto* first = reinterpret_cast<const std::byte*>(header.data());
  bytes.insert(bytes.end(), first, first + header.size());
  bytes.insert(bytes.end(), file.begin() + static_cast<std::ptrdiff_t>(sizeof length + length),
               file.end());
  return bytes;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> audits::metadata(const AuditCall& call) {
  std::vector<std::pair<std::string, std::string>> words;
  if (call.causal) words.emplace_back("causal", *call.causal == Align::start ? "start" : "end");
  if (call.window) {
    const auto side = [](const std::optional<index_t>& n) {
      return n ? std::to_string(*n) : std::string();
    };
    words.emplace_back("window", side(call.window->left) + "," + side(call.window->right));
  }
  if (!call.key_lengths.empty()) {
    std::string text;
    for (const index_t n : call.key_lengths) text += (text.empty() ? "" : ",") + std::to_string(n);
    words.emplace_back("key_lengths", text);
  }
  if (call.scale) words.emplace_back("scale", wire::shortest(*call.scale));
  if (call.softcap > 0) words.emplace_back("softcap", wire::shortest(call.softcap));
  if (call.threads > 0) words.emplace_back("threads", std::to_string(call.threads));
  return words;
}

std::vector<std::byte> audit_file(const AuditCall& call, const FileTensor* out) {
  NamedTensors tensors{{"q", dense(call.q)}, {"k", dense(call.k)}, {"v", dense(call.v)}};
  if (call.mask.data != nullptr) tensors.emplace_back("mask", dense(call.mask));
  if (call.bias.data != nullptr) tensors.emplace_back("bias", dense(call.bias));
  if (out != nullptr) tensors.emplace_back("out", *out);
  return with_metadata(safetensors_bytes(tensors), audits::metadata(call));
}

}  // namespace glasshead
