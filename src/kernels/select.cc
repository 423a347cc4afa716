#include "kernels/select.h"

#include "glasshead/cpu.h"

namespace glasshead {

#define GLASSHEAD_KERNEL_SET(name) extern const KernelSet kernel_set_##name;
#include "kernels/kernel_sets.inc"
#undef GLASSHEAD_KERNEL_SET

namespace {

bool has(const Cpu& processor, std::string_view name) {
  for (const CpuFeature& feature : processor.features)
    if (feature.name == name) return feature.is_supported;
  return false;
}

template <class F>
void fill(F& entry, F other) {
  if (entry == nullptr) entry = other;
}

// Kernels over a panel go together: another set's fill the gaps only where its panels have the same
// shape, or where this set has no panels of its own.
template <class T>
void fill_all(Kernels<T>& kernels, const Kernels<T>& other) {
  if (kernels.lanes == 0) {
    kernels.width = other.width;
    kernels.lanes = other.lanes;
    kernels.rows_below = other.rows_below;
  }
  if (kernels.width == other.width && kernels.lanes == other.lanes) {
    fill(kernels.pack, other.pack);
    fill(kernels.turn, other.turn);
    fill(kernels.scores, other.scores);
    fill(kernels.softmax, other.softmax);
    fill(kernels.accumulate, other.accumulate);
    fill(kernels.merge, other.merge);
    fill(kernels.finish, other.finish);
    fill(kernels.backward.differentiate, other.backward.differentiate);
    fill(kernels.backward.outer, other.backward.outer);
  }
  fill(kernels.are_finite, other.are_finite);
  fill(kernels.rows.scores, other.rows.scores);
  fill(kernels.rows.softmax, other.rows.softmax);
  fill(kernels.rows.accumulate, other.rows.accumulate);
  fill(kernels.rows.merge, other.rows.merge);
  fill(kernels.rows.finish, other.rows.finish);
  fill(kernels.exp, other.exp);
  fill(kernels.tanh, other.tanh);
  fill(kernels.multiply_adds, other.multiply_adds);
}

std::vector<const KernelSet*> sets_of_build(bool rounds) {
  std::vector<const KernelSet*> list{
#define GLASSHEAD_KERNEL_SET(name) &kernel_set_##name,
#include "kernels/kernel_sets.inc"
#undef GLASSHEAD_KERNEL_SET
  };
  std::erase_if(list, [&](const KernelSet* set) { return set->rounds != rounds; });
  return list;
}

}  // namespace

const std::vector<const KernelSet*>& kernel_set_list() {
  static const std::vector<const KernelSet*> list = sets_of_build(false);
  return list;
}

const std::vector<const KernelSet*>& rounding_set_list() {
  static const std::vector<const KernelSet*> list = sets_of_build(true);
  return list;
}

const KernelSet* find_kernel_set(std::string_view name) {
  for (const auto* list : {&kernel_set_list(), &rounding_set_list()})
    for (const KernelSet* set : *list)
      if (set->name == name) return set;
  return nullptr;
}

std::vector<std::string> missing_features(const KernelSet& set) {
  const Cpu processor = cpu();
  std::vector<std::string> missing;
  for (const char* const* feature = set.features; *feature != nullptr; ++feature)
    if (!has(processor, *feature)) missing.emplace_back(*feature);
  return missing;
}

KernelSet filled(const KernelSet& set) {
  KernelSet whole = set;
  const char* next = set.fallback;
  while (next != nullptr) {
    const KernelSet* other = find_kernel_set(next);
    if (other == nullptr) break;
    fill_all(whole.f32, other->f32);
    fill_all(whole.f64, other->f64);
    fill(whole.linear.row, other->linear.row);
    fill(whole.linear.unpack, other->linear.unpack);
    fill(whole.linear.tile, other->linear.tile);
    fill(whole.layers.bend, other->layers.bend);
    next = other->fallback;
  }
  return whole;
}

}  // namespace glasshead
