#include "glasshead/model.h"

#include <fmt/format.h>

#include "base/fail.h"
#include "formats/checkpoint.h"
#include "model/model_impl.h"
#include "model/places.h"

namespace glasshead {

const char* name(ModelKind kind) {
  constexpr const char* kNames[] = {"decoder", "encoder", "encoder-decoder"};
  return kNames[static_cast<int>(kind)];
}

Model model_of(const formats::Checkpoint& files, const ModelOptions& options) {
  model::Loaded loaded = model::load(files, model::LoadOptions{.context = options.context});
  auto impl = std::make_shared<Model::Impl>();
  impl->path = files.path();
  impl->description = std::move(loaded.description);
  impl->weights = std::move(loaded.weights);
  impl->parameters = loaded.inventory.parameters;
  return Model(std::move(impl));
}

Model Model::load(const std::string& path, const ModelOptions& options) {
  if (options.context < 0)
    fail(ErrorKind::option, "Model::load", "context",
         fmt::format("{}; a number of tokens, or 0 for what the model was made for",
                     options.context));
  return model_of(formats::Checkpoint::open(path), options);
}

const std::string& Model::path() const { return impl_->path; }
const std::string& Model::family() const { return impl_->description.family; }

ModelKind Model::kind() const { return impl_->description.kind; }

index_t Model::d_model() const { return impl_->description.d_model; }
index_t Model::vocab() const { return impl_->description.vocab; }
index_t Model::layers() const { return static_cast<index_t>(impl_->last_stack().layers.size()); }

index_t Model::heads(index_t layer) const {
  if (layer < 0 || layer >= layers())
    fail(ErrorKind::option, "Model::heads", "layer",
         fmt::format("{}; there are {}, numbered from 0", layer, layers()));
  return impl_->last_stack().layers[static_cast<std::size_t>(layer)].self.heads;
}

index_t Model::position_limit() const { return impl_->description.position_limit; }
index_t Model::context_length() const { return impl_->description.context_length; }
bool Model::has_logits() const { return impl_->description.head.has_logits; }
bool Model::has_pooling() const { return impl_->description.pooling != model::Pooling::none; }
index_t Model::parameters() const { return impl_->parameters; }
index_t Model::bytes() const { return impl_->weights.bytes; }
index_t Model::bytes_per_token() const {
  const model::HeadWeights& head = impl_->weights.head;
  index_t bytes = head.logits.bytes() + head.transform.bytes();
  for (const model::LayerWeights& layer : impl_->weights.decoder.layers)
    bytes += layer.self.in.bytes() + layer.self.out.bytes() + layer.cross.in.bytes() +
             layer.cross.out.bytes() + layer.ffn.in.bytes() + layer.ffn.out.bytes();
  return bytes;
}
std::optional<index_t> Model::bos() const { return impl_->description.bos; }
std::optional<index_t> Model::pad() const { return impl_->description.pad; }
const std::vector<index_t>& Model::eos() const { return impl_->description.eos; }

index_t Model::decoder_start() const {
  const model::Description& description = impl_->description;
  return description.decoder_start.value_or(description.bos.value_or(0));
}

std::vector<std::string> Model::tap_names() const {
  std::vector<std::string> names;
  for (const model::NamedPlace& place : model::places_of(impl_->description))
    names.push_back(place.name);
  return names;
}

}  // namespace glasshead
