#include "wasm/roles.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace glasshead::wasm {
namespace {

constexpr std::array<std::string_view, 13> kRoles{
    "q", "k", "v", "mask", "bias", "out", "weights", "scores", "lse", "dq", "dk", "dv", "d_out"};

struct Word {
  std::string_view word, role;
};
constexpr Word kWords[] = {{"q", "q"},
                           {"query", "q"},
                           {"queries", "q"},
                           {"k", "k"},
                           {"key", "k"},
                           {"keys", "k"},
                           {"v", "v"},
                           {"value", "v"},
                           {"values", "v"},
                           {"mask", "mask"},
                           {"bias", "bias"},
                           {"out", "out"},
                           {"output", "out"},
                           {"outputs", "out"},
                           {"o", "out"},
                           {"theirs", "out"},
                           {"result", "out"},
                           {"context", "out"},
                           {"actual", "out"},
                           {"weights", "weights"},
                           {"weight", "weights"},
                           {"attn", "weights"},
                           {"attention", "weights"},
                           {"probs", "weights"},
                           {"probabilities", "weights"},
                           {"p", "weights"},
                           {"scores", "scores"},
                           {"score", "scores"},
                           {"logits", "scores"},
                           {"s", "scores"},
                           {"lse", "lse"},
                           {"logsumexp", "lse"},
                           {"dq", "dq"},
                           {"dk", "dk"},
                           {"dv", "dv"},
                           {"dout", "d_out"},
                           {"do", "d_out"}};

std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words(1);
  for (char c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
    const bool is_letter = (c >= 'a' && c <= 'z');
    if (is_letter)
      words.back() += c;
    else if (!words.back().empty())
      words.emplace_back();
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

std::string of_gradient(const std::string& role) {
  return role == "q"     ? "dq"
         : role == "k"   ? "dk"
         : role == "v"   ? "dv"
         : role == "out" ? "d_out"
                         : "";
}

// The sizes that claims are measured by.
struct Sizes {
  index_t batch = 0, heads = 0, q_len = 0, kv_len = 0, d_v = 0;
};

index_t extent(const std::vector<index_t>& shape, std::size_t from_last) {
  return shape.size() > from_last ? shape[shape.size() - 1 - from_last] : 1;
}

std::optional<Sizes> sizes_of(const std::vector<SourceTensor>& tensors,
                              const std::vector<std::string>& found,
                              const std::optional<AttentionCase>& known) {
  if (known)
    return Sizes{known->q.shape[0], known->q.shape[1], known->q.shape[2], known->k.shape[2],
                 known->v.shape[3]};
  const auto shape_of = [&](std::string_view role) -> const std::vector<index_t>* {
    const auto at = std::find(found.begin(), found.end(), role);
    if (at == found.end()) return nullptr;
    return &tensors[static_cast<std::size_t>(at - found.begin())].tensor.shape;
  };
  const auto *q = shape_of("q"), *v = shape_of("v");
  if (q == nullptr || v == nullptr) return std::nullopt;
  return Sizes{extent(*q, 3), extent(*q, 2), extent(*q, 1), extent(*v, 1), extent(*v, 0)};
}

// Weights lie from 0 to 1, as far as printed digits tell.
bool may_be_weights(const FileTensor& tensor) {
  constexpr double kAbout = 0.05;
  for (index_t n = 0; n < tensor.size(); ++n)
    if (!(tensor.load(n) >= 0 && tensor.load(n) <= 1 + kAbout)) return false;
  return true;
}

bool has_first_row_of_shares(const FileTensor& tensor) {
  constexpr double kAbout = 0.05;
  double sum = 0;
  for (index_t n = 0; n < std::min(tensor.shape.back(), tensor.size()); ++n) sum += tensor.load(n);
  return sum > 1 - kAbout && sum < 1 + kAbout;
}

using Shape = std::vector<index_t>;

Shape without_ones(Shape shape) {
  std::erase(shape, 1);
  return shape;
}

// As many programs keep out, and fit_claims reads it: [batch, length, heads, size], or with all
// heads side by side. Of pairs the former alone.
bool is_by_length(bool is_pairs, const Shape& shape, const Sizes& sizes) {
  if (sizes.heads < 2) return false;
  const index_t size = is_pairs ? sizes.kv_len : sizes.d_v, width = extent(shape, 0);
  const Shape found = without_ones(shape);
  if (found == without_ones({sizes.batch, sizes.q_len, sizes.heads, size})) return true;
  return !is_pairs && width % sizes.heads == 0 && width / sizes.heads == size &&
         found == without_ones({sizes.batch, sizes.q_len, width});
}

std::string role_of_shape(const FileTensor& tensor, const Sizes& sizes) {
  const std::vector<index_t>& shape = tensor.shape;
  if (shape.empty() || tensor.dtype == DType::u8 || tensor.dtype == DType::i64) return {};
  const index_t rows = extent(shape, 1), columns = extent(shape, 0);
  const bool is_pairs = rows == sizes.q_len && columns == sizes.kv_len;
  const bool is_out = rows == sizes.q_len && columns == sizes.d_v;
  if (is_pairs && is_out)
    return may_be_weights(tensor) && has_first_row_of_shares(tensor) ? "weights" : "out";
  if (is_pairs) return may_be_weights(tensor) ? "weights" : "scores";
  if (is_out || is_by_length(false, shape, sizes)) return "out";
  if (is_by_length(true, shape, sizes)) return may_be_weights(tensor) ? "weights" : "scores";
  const bool is_column = shape.size() <= 2 && tensor.size() == sizes.heads * sizes.q_len &&
                         (shape.size() == 1 || rows == 1 || columns == 1);
  return is_column ? "lse" : "";
}

Shape in_order(Shape shape) {
  std::sort(shape.begin(), shape.end());
  return shape;
}

// Of the claims that are as large as the inputs say, by pairs or by rows.
Shape shape_of_role(std::string_view role, const Sizes& sizes) {
  const bool is_pairs = role == "weights" || role == "scores";
  return {sizes.batch, sizes.heads, sizes.q_len, is_pairs ? sizes.kv_len : sizes.d_v};
}

std::string another_order(std::string_view role, const Shape& shape, const Sizes& sizes) {
  const Shape wanted = without_ones(shape_of_role(role, sizes)), found = without_ones(shape);
  if (found == wanted || in_order(found) != in_order(wanted)) return {};
  return "has the sizes of " + std::string(role) + ", " + shape_words(wanted) +
         ", in another order: two axes are swapped";
}

std::string shape_hint(const SourceTensor& tensor, const std::string& role, const Sizes& sizes) {
  const Shape& shape = tensor.tensor.shape;
  if (role == "out" || role == "weights" || role == "scores")
    return is_by_length(role != "out", shape, sizes) ? "" : another_order(role, shape, sizes);
  if (!role.empty() || tensor.tensor.dtype == DType::u8 || tensor.tensor.dtype == DType::i64)
    return {};
  for (const char* claim : {"out", "weights"})
    if (std::string words = another_order(claim, shape, sizes); !words.empty()) return words;
  return "has the shape of nothing that these inputs give: out is " +
         shape_words(without_ones(shape_of_role("out", sizes))) + ", weights " +
         shape_words(without_ones(shape_of_role("weights", sizes)));
}

}  // namespace

std::span<const std::string_view> roles() { return kRoles; }

bool is_claim(std::string_view role) {
  constexpr std::ptrdiff_t kFirstClaim = 5;
  const auto at = std::find(kRoles.begin(), kRoles.end(), role);
  return at != kRoles.end() && at - kRoles.begin() >= kFirstClaim && role != "d_out";
}

std::string role_of_name(std::string_view name) {
  for (const std::string_view ending : {".npy", ".safetensors", ".csv", ".txt", ".json"})
    if (name.ends_with(ending)) name.remove_suffix(ending.size());
  const std::vector<std::string> words = words_of(name);
  for (std::size_t n = words.size(); n-- > 0;) {
    const auto known = std::find_if(std::begin(kWords), std::end(kWords),
                                    [&](const Word& w) { return w.word == words[n]; });
    if (known == std::end(kWords)) continue;
    const std::string role(known->role);
    const bool is_gradient =
        n > 0 && (words[n - 1] == "d" || words[n - 1] == "grad" || words[n - 1] == "gradient");
    return is_gradient ? of_gradient(role) : role;
  }
  return {};
}

std::vector<std::string> guess_roles(const std::vector<SourceTensor>& tensors,
                                     const std::optional<AttentionCase>& known) {
  std::vector<std::string> found(tensors.size());
  const auto is_free = [&](const std::string& role) {
    return std::find(found.begin(), found.end(), role) == found.end() &&
           !(known &&
             (role == "q" || role == "k" || role == "v" || role == "mask" || role == "bias"));
  };
  for (std::size_t n = 0; n < tensors.size(); ++n) {
    const std::string role =
        role_of_name(tensors[n].name.empty() ? tensors[n].source_name : tensors[n].name);
    if (!role.empty() && is_free(role)) found[n] = role;
  }
  // Numbers without a name, in the order of a call.
  const auto without = std::count(found.begin(), found.end(), "");
  if (!known && without >= 3 && is_free("q") && is_free("k") && is_free("v"))
    for (std::size_t n = 0; n < tensors.size(); ++n)
      for (const char* role : {"q", "k", "v"})
        if (found[n].empty() && is_free(role)) found[n] = role;
  const std::optional<Sizes> sizes = sizes_of(tensors, found, known);
  for (std::size_t n = 0; sizes && n < tensors.size(); ++n) {
    if (!found[n].empty()) continue;
    const std::string role = role_of_shape(tensors[n].tensor, *sizes);
    if (!role.empty() && is_free(role)) found[n] = role;
  }
  return found;
}

std::vector<std::string> shape_hints(const std::vector<SourceTensor>& tensors,
                                     const std::vector<std::string>& role_of,
                                     const std::optional<AttentionCase>& known) {
  std::vector<std::string> hints(tensors.size());
  const std::optional<Sizes> sizes = sizes_of(tensors, role_of, known);
  for (std::size_t n = 0; sizes && n < tensors.size(); ++n)
    hints[n] = shape_hint(tensors[n], role_of[n], *sizes);
  return hints;
}

}  // namespace glasshead::wasm
