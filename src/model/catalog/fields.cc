#include "model/catalog/fields.h"

#include <utility>

#include <fmt/format.h>

namespace glasshead::model {
namespace {

using formats::ConfigValue;

std::string architecture_of(const formats::Checkpoint& files) {
  const ConfigValue* value = formats::find(files.config(), "general.architecture");
  const auto* text = value == nullptr ? nullptr : std::get_if<std::string>(&value->is);
  return text == nullptr ? "" : *text;
}

// false, 0, "", [] and {}: what a configuration writes for "there is none".
bool means_none(const ConfigValue& value) {
  if (const auto* flag = std::get_if<bool>(&value.is)) return !*flag;
  if (const auto* whole = std::get_if<std::int64_t>(&value.is)) return *whole == 0;
  if (const auto* number = std::get_if<double>(&value.is)) return *number == 0;
  if (const auto* text = std::get_if<std::string>(&value.is)) return text->empty();
  if (const auto* list = std::get_if<formats::ConfigList>(&value.is)) return list->empty();
  if (formats::is_list(value)) return false;
  if (const auto* object = std::get_if<formats::ConfigObject>(&value.is)) return object->empty();
  return true;
}

std::string shown(const ConfigValue& value) {
  if (const auto* flag = std::get_if<bool>(&value.is)) return *flag ? "true" : "false";
  if (const auto* whole = std::get_if<std::int64_t>(&value.is)) return std::to_string(*whole);
  if (std::holds_alternative<double>(value.is)) return "a number";
  if (const auto* text = std::get_if<std::string>(&value.is))
    return text->size() > 40 ? "a text" : "\"" + *text + "\"";
  return "given";
}

}  // namespace

Fields::Fields(const formats::Checkpoint& files, const LoadOptions& options,
               std::vector<Problem>& problems)
    : files_(files),
      options_(options),
      problems_(problems),
      problems_before_(problems.size()),
      is_gguf_(files.format() == formats::CheckpointFormat::gguf),
      root_(is_gguf_ ? architecture_of(files) + "." : "") {}

void Fields::enter(const std::string& object) {
  if (!is_gguf_) root_ += object + "/";
}

std::string Fields::path(Key key) const {
  const char* name = is_gguf_ ? key.gguf : key.hf;
  return name == nullptr ? "" : root_ + name;
}

const ConfigValue* Fields::find(Key key) const {
  const std::string where = path(key);
  return where.empty() ? nullptr : formats::find(files_.config(), where);
}

bool Fields::has(Key key) const { return find(key) != nullptr; }

bool Fields::is_null(Key key) const {
  // A null counts as absent to formats::find: the object that would hold it is looked through.
  const std::string where = path(key);
  const std::size_t slash = is_gguf_ ? std::string::npos : where.rfind('/');
  const formats::ConfigObject* object = &files_.config();
  std::string last = where;
  if (slash != std::string::npos) {
    const ConfigValue* value = formats::find(files_.config(), where.substr(0, slash));
    object = value == nullptr ? nullptr : std::get_if<formats::ConfigObject>(&value->is);
    last = where.substr(slash + 1);
  }
  if (object == nullptr) return false;
  for (const auto& [name, value] : *object)
    if (name == last) return std::holds_alternative<std::monostate>(value.is);
  return false;
}

void Fields::problem(Key key, const std::string& what) { problems_.push_back({path(key), what}); }

void Fields::problem_in(std::string where, std::string what) {
  problems_.push_back({std::move(where), std::move(what)});
}

bool Fields::is_fine() const { return problems_.size() == problems_before_; }

index_t Fields::size(Key key, index_t most) {
  const std::size_t before = problems_.size();
  const index_t value = formats::Reader(files_.config(), problems_).whole(path(key));
  if (problems_.size() > before) return 0;
  if (value >= 1 && value <= most) return value;
  problem(key, fmt::format("{}: must be from 1 to {}", value, most));
  return 0;
}

index_t Fields::size_or(Key key, index_t otherwise, index_t most) {
  return has(key) ? size(key, most) : otherwise;
}

index_t Fields::window(Key key, index_t otherwise) {
  if (is_null(key)) return 0;
  const index_t value = whole_or(key, otherwise);
  if (value <= kMostPositions) return value;
  problem(key, fmt::format("{}: must be at most {}", value, kMostPositions));
  return 0;
}

index_t Fields::whole_or(Key key, index_t otherwise) {
  if (!has(key)) return otherwise;
  return formats::Reader(files_.config(), problems_).whole_or(path(key), otherwise);
}

index_t Fields::layers(Key key) {
  const index_t count = size(key, kMostLayers);
  const auto tensors = static_cast<index_t>(files_.tensors().size());
  if (count <= tensors || !options_.has_tensors) return count;
  problem(key, fmt::format("{} layers, but the files have only {} tensors in all", count, tensors));
  return 0;
}

std::vector<index_t> Fields::sizes(Key key, index_t layers, index_t most,
                                   std::optional<index_t> otherwise) {
  const auto count = static_cast<std::size_t>(layers);
  const ConfigValue* value = find(key);
  if (value == nullptr && otherwise) return std::vector<index_t>(count, *otherwise);
  if (value == nullptr || !formats::is_list(*value))
    return std::vector<index_t>(count, size(key, most));
  const std::size_t before = problems_.size();
  std::vector<index_t> list = formats::Reader(files_.config(), problems_).wholes_or(path(key), {});
  if (problems_.size() == before && list.size() != count)
    problem(key, fmt::format("a list of {}; must be one number, or one for each of the {} layers",
                             list.size(), layers));
  list.resize(count, 0);
  for (const index_t one : list)
    if (problems_.size() == before && (one < 1 || one > most))
      problem(key, fmt::format("holds {}: each must be from 1 to {}", one, most));
  return problems_.size() == before ? list : std::vector<index_t>(count, 0);
}

double Fields::number_or(Key key, double otherwise) {
  if (!has(key)) return otherwise;
  return formats::Reader(files_.config(), problems_).number_or(path(key), otherwise);
}

double Fields::positive_or(Key key, double otherwise) {
  if (!has(key)) return otherwise;
  const std::size_t before = problems_.size();
  const double value = number_or(key, otherwise);
  if (problems_.size() > before) return otherwise;
  if (value > 0) return value;
  problem(key, "must be above 0");
  return otherwise;
}

bool Fields::flag_or(Key key, bool otherwise) {
  if (!has(key)) return otherwise;
  return formats::Reader(files_.config(), problems_).flag_or(path(key), otherwise);
}

std::string Fields::text_or(Key key, const std::string& otherwise) {
  if (!has(key)) return otherwise;
  return formats::Reader(files_.config(), problems_).text_or(path(key), otherwise);
}

std::vector<double> Fields::numbers(Key key) {
  if (!has(key)) return {};
  return formats::Reader(files_.config(), problems_).numbers_or(path(key), {});
}

std::vector<std::string> Fields::texts(Key key) {
  if (!has(key)) return {};
  return formats::Reader(files_.config(), problems_).texts_or(path(key), {});
}

std::vector<index_t> Fields::wholes(Key key) {
  if (!has(key)) return {};
  return formats::Reader(files_.config(), problems_).wholes_or(path(key), {});
}

bool Fields::has_list(Key key) const {
  const ConfigValue* value = find(key);
  return value != nullptr && formats::is_list(*value);
}

std::vector<bool> Fields::flags(Key key) {
  const ConfigValue* value = find(key);
  const auto* numbers =
      value == nullptr ? nullptr : std::get_if<formats::ConfigNumbers>(&value->is);
  std::vector<bool> out;
  if (numbers != nullptr && numbers->type == Stored::boolean)
    for (const std::byte byte : numbers->bytes) out.push_back(byte != std::byte{0});
  else
    for (const index_t whole : wholes(key)) out.push_back(whole != 0);
  return out;
}

std::optional<index_t> Fields::id(Key key) {
  const ConfigValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  // Some exporters write -1 for a token that there isn't.
  if (const auto* whole = std::get_if<std::int64_t>(&value->is))
    return *whole < 0 ? std::nullopt : std::optional<index_t>(*whole);
  return formats::Reader(files_.config(), problems_).whole(path(key));
}

nn::Activation Fields::activation(Key key, const char* otherwise) {
  const std::string name = text_or(key, otherwise);
  if (name == "gelu" || name == "gelu_python") return nn::Activation::gelu;
  if (name == "gelu_new" || name == "gelu_pytorch_tanh" || name == "gelu_python_tanh")
    return nn::Activation::gelu_tanh;
  if (name == "silu" || name == "swish") return nn::Activation::silu;
  if (name == "relu") return nn::Activation::relu;
  problem(key, fmt::format("{}: this activation is not built; must be gelu, gelu_new, "
                           "gelu_pytorch_tanh, silu, swish or relu",
                           shown(ConfigValue{name})));
  return nn::Activation::none;
}

void Fields::refuse(Key key, const char* why) {
  const ConfigValue* value = find(key);
  if (value != nullptr && !means_none(*value))
    problem(key, fmt::format("is {}: {}", shown(*value), why));
}

void Fields::refuse_unless(Key key, bool expected, const char* why) {
  if (has(key) && flag_or(key, expected) != expected)
    problem(key, fmt::format("is {}: {}", expected ? "false" : "true", why));
}

index_t Fields::tensor_extent(const std::string& name, std::size_t axis) const {
  const formats::StoredTensor* tensor = files_.find(name);
  return tensor == nullptr || axis >= tensor->shape.size() ? 0 : tensor->shape[axis];
}

std::optional<std::vector<double>> Fields::tensor_numbers(const std::string& name, index_t size) {
  const formats::StoredTensor* tensor = files_.find(name);
  if (tensor == nullptr) return std::nullopt;
  if (tensor->shape != std::vector<index_t>{size} || tensor->type != Stored::f32) {
    problems_.push_back({name, fmt::format("must be f32 of shape [{}]", size)});
    return std::nullopt;
  }
  std::vector<float> narrow(static_cast<std::size_t>(size));
  dequantise(tensor->type, tensor->bytes.data(), size, narrow.data());
  return std::vector<double>(narrow.begin(), narrow.end());
}

void refuse_what_is_not_built(Fields& fields) {
  constexpr const char* kExperts = "mixtures of experts are not built";
  for (const char* hf : {"num_experts", "num_local_experts", "n_routed_experts"})
    fields.refuse({hf}, kExperts);
  fields.refuse({nullptr, "expert_count"}, kExperts);
  fields.refuse({"quantization_config"},
                "weights quantised for other libraries are not read; take the plain weights, or a "
                "GGUF file");
  fields.refuse({"attention_chunk_size"}, "attention in chunks is not built");
  fields.refuse({"use_bidirectional_attention"}, "decoders that see later tokens are not built");
  fields.refuse({"is_decoder"}, "encoders run as decoders are not built");
  fields.refuse({"add_cross_attention"}, "decoders with another model's encoder are not built");
  fields.refuse({"pruned_heads"}, "pruned heads are not built");
  fields.refuse({"alibi"}, "ALiBi positions are not built");
  fields.refuse({"clip_qkv", "attention.clamp_kqv"}, "clipping q, k and v is not built");
  fields.refuse({nullptr, "attention.max_alibi_bias"}, "ALiBi positions are not built");
  for (const char* gguf : {"logit_scale", "residual_scale", "embedding_scale",
                           "attention.output_scale", "attention.temperature_scale"})
    fields.refuse({nullptr, gguf}, "this scale is not built");
  fields.refuse({nullptr, "use_parallel_residual"}, "parallel layers are not built");
  fields.refuse({nullptr, "rope.dimension_sections"},
                "positions of several dimensions are not built");
  fields.refuse({nullptr, "attention.shared_kv_layers"},
                "layers that share keys and values are not built");
  const std::string kind = fields.text_or({"position_embedding_type"}, "absolute");
  if (kind != "absolute")
    fields.problem({"position_embedding_type"}, "must be \"absolute\": other kinds are not built");
}

void read_ids(Fields& fields, Description& out) {
  if (fields.is_gguf()) {
    std::vector<Problem> none;
    const auto id = [&](const char* key) -> std::optional<index_t> {
      formats::Reader reader(fields.files().config(), none);
      if (!reader.has(key)) return std::nullopt;
      const index_t value = reader.whole(key);
      return none.empty() ? std::optional<index_t>(value) : std::nullopt;
    };
    out.bos = id("tokenizer.ggml.bos_token_id");
    out.pad = id("tokenizer.ggml.padding_token_id");
    for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"})
      if (const auto eos = id(key)) out.eos.push_back(*eos);
    out.decoder_start = fields.id({nullptr, "decoder_start_token_id"});
    return;
  }
  // What was read before stays where this object says nothing.
  const auto id = [&](Key key, std::optional<index_t>& to) {
    if (fields.has(key)) to = fields.id(key);
  };
  id({"bos_token_id"}, out.bos);
  id({"pad_token_id"}, out.pad);
  id({"decoder_start_token_id"}, out.decoder_start);
  if (fields.has({"eos_token_id"})) out.eos = fields.wholes({"eos_token_id"});
}

}  // namespace glasshead::model
