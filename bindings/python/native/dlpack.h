// What a DLPack capsule holds, as far as it is read here:
// https://dmlc.github.io/dlpack/latest/c_api.html. The capsule is looked into, not taken over:
// whoever holds it keeps the tensor alive.
#pragma once

#include <Python.h>
#include <cstdint>
#include <optional>

#include "glasshead/tensor.h"

namespace glasshead::python::dlpack {

inline constexpr std::int32_t kCpu = 1, kCudaHost = 3;  // DLDeviceType

struct Device {
  std::int32_t type, id;
};
struct Type {
  std::uint8_t code, bits;
  std::uint16_t lanes;
};
struct Tensor {  // DLTensor
  void* data;
  Device device;
  std::int32_t ndim;
  Type dtype;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements; null: row-major
  std::uint64_t byte_offset;
};
struct Managed {  // DLManagedTensor, in a capsule called "dltensor"
  Tensor tensor;
  void* context;
  void (*deleter)(Managed*);
};
struct Versioned {  // DLManagedTensorVersioned, in a capsule called "dltensor_versioned"
  std::uint32_t major, minor;
  void* context;
  void (*deleter)(Versioned*);
  std::uint64_t flags;
  Tensor tensor;
};

inline std::optional<Tensor> tensor_of(PyObject* capsule) {
  constexpr std::uint32_t kMajor = 1;
  if (PyCapsule_IsValid(capsule, "dltensor") != 0)
    return static_cast<Managed*>(PyCapsule_GetPointer(capsule, "dltensor"))->tensor;
  if (PyCapsule_IsValid(capsule, "dltensor_versioned") == 0) return std::nullopt;
  const auto* held = static_cast<Versioned*>(PyCapsule_GetPointer(capsule, "dltensor_versioned"));
  return held->major == kMajor ? std::optional(held->tensor) : std::nullopt;
}

inline std::optional<DType> type_of(Type type) {
  enum Code : std::uint8_t { kInt = 0, kFloat = 2, kBfloat = 4, kBool = 6 };
  if (type.lanes != 1) return std::nullopt;
  if (type.code == kFloat && type.bits == 64) return DType::f64;
  if (type.code == kFloat && type.bits == 32) return DType::f32;
  if (type.code == kFloat && type.bits == 16) return DType::f16;
  if (type.code == kBfloat && type.bits == 16) return DType::bf16;
  if (type.code == kBool && type.bits == 8) return DType::u8;
  if (type.code == kInt && type.bits == 64) return DType::i64;
  return std::nullopt;
}

}  // namespace glasshead::python::dlpack
