// A configuration as a family asks for it: one question for both of its spellings.
//
//   out.d_model = fields.size({"hidden_size", "embedding_length"});
//   fields.number_or({"rms_norm_eps", "attention.layer_norm_rms_epsilon"}, 1e-6)
//
// The first name is a path into config.json, the second one into GGUF's metadata, after the
// architecture's name and a dot. Nothing fails: problems are collected, and a value that is wrong
// reads as 0, or as its default.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/checkpoint.h"
#include "glasshead/error.h"
#include "model/description.h"
#include "model/weights.h"

namespace glasshead::model {

// Sizes in a configuration are hostile until checked. With these bounds no product of three of them
// overflows, and what is allocated before the tensors are checked stays below a megabyte or so.
inline constexpr index_t kMostSize = index_t{1} << 20;  // widths: d_model, d_ff
inline constexpr index_t kMostVocabulary = index_t{1} << 24;
inline constexpr index_t kMostHeads = index_t{1} << 14;
inline constexpr index_t kMostHeadSize = index_t{1} << 14;
inline constexpr index_t kMostLayers = index_t{1} << 12;
inline constexpr index_t kMostPositions = index_t{1} << 40;

struct Key {
  const char* hf;              // null: config.json has no such field
  const char* gguf = nullptr;  // null: GGUF has none
};

class Fields {
 public:
  Fields(const formats::Checkpoint& files, const LoadOptions& options,
         std::vector<Problem>& problems);

  bool is_gguf() const { return is_gguf_; }
  const formats::Checkpoint& files() const { return files_; }
  const LoadOptions& options() const { return options_; }
  bool has_tensor(const std::string& name) const { return files_.find(name) != nullptr; }
  // Reads config.json's fields from an object inside of it ("text_config") from here on.
  void enter(const std::string& object);

  bool has(Key key) const;              // there, and not null
  bool is_null(Key key) const;          // written as null, which is not the same as left out
  index_t size(Key key, index_t most);  // 1 .. most, required
  index_t size_or(Key key, index_t otherwise, index_t most);
  index_t whole_or(Key key, index_t otherwise);
  // How many keys a query sees; 0, and null: all.
  index_t window(Key key, index_t otherwise);
  // A number of layers: not more than there are tensors, or the files belong to something else.
  index_t layers(Key key);
  // One number for all layers, or a list of one for each.
  std::vector<index_t> sizes(Key key, index_t layers, index_t most,
                             std::optional<index_t> otherwise = std::nullopt);
  double number_or(Key key, double otherwise);
  double positive_or(Key key, double otherwise);  // a finite number above 0
  bool flag_or(Key key, bool otherwise);
  std::string text_or(Key key, const std::string& otherwise);
  std::vector<double> numbers(Key key);     // empty: absent
  std::vector<std::string> texts(Key key);  // empty: absent
  std::vector<index_t> wholes(Key key);     // empty: absent; one number is a list of one
  std::vector<bool> flags(Key key);         // of GGUF: booleans, or 0 and 1
  bool has_list(Key key) const;
  std::optional<index_t> id(Key key);  // nullopt: absent
  nn::Activation activation(Key key, const char* otherwise);

  // A field that changes the arithmetic and is not built: a problem, unless it is absent or has
  // the value that means nothing.
  void refuse(Key key, const char* why);                        // unless absent, false, 0 or empty
  void refuse_unless(Key key, bool expected, const char* why);  // a flag
  void problem(Key key, const std::string& what);
  void problem_in(std::string where, std::string what);  // of what is no field
  bool is_fine() const;                                  // no problem since construction
  std::string path(Key key) const;                       // as the file spells it

  // The numbers of a one-dimensional tensor of the files (GGUF's rotary factors); nullopt: absent.
  std::optional<std::vector<double>> tensor_numbers(const std::string& name, index_t size);
  index_t tensor_extent(const std::string& name, std::size_t axis) const;  // 0: there is none

 private:
  const formats::ConfigValue* find(Key key) const;

  const formats::Checkpoint& files_;
  LoadOptions options_;
  std::vector<Problem>& problems_;
  std::size_t problems_before_;
  bool is_gguf_;
  std::string root_;
};

// What every configuration is asked, whatever its family: fields that would change the arithmetic.
void refuse_what_is_not_built(Fields& fields);
// bos, eos, pad and decoder_start of either format.
void read_ids(Fields& fields, Description& out);

}  // namespace glasshead::model
