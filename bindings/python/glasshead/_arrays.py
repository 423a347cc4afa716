"""Which kind of array a call was given, and how results of the same kind are made.

The native module reads NumPy's, PyTorch's and JAX's arrays where they lie. Results are allocated here, by the
library that the query comes from, and written in place.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ._errors import refuse

# The library's names of types, and NumPy's.
TYPES = {"f64": "float64", "f32": "float32", "bf16": "bfloat16", "f16": "float16", "bool": "bool", "i64": "int64"}


class NumpyKind:
    """ndarray in, ndarray out; also for whatever else has DLPack or the buffer protocol."""

    def like(self, query: Any, shape: tuple[int, ...]) -> Any:
        """Room for numbers of the query's type."""
        return np.empty(shape, query.dtype)

    def state(self, query: Any, shape: tuple[int, ...]) -> Any:
        """Room for numbers of the type that is computed in: float64 for float64, else float32."""
        return np.empty(shape, np.float64 if query.dtype == np.float64 else np.float32)

    def keys(self, shape: tuple[int, ...]) -> Any:
        """Room for numbers of keys."""
        return np.empty(shape, np.int64)

    def finish(self, result: Any) -> Any:
        """The result as the caller gets it."""
        return result


class JaxKind(NumpyKind):
    """JAX's arrays cannot be written: a NumPy array is, and then handed over."""

    def finish(self, result: Any) -> Any:
        import jax

        if result.dtype == np.int64 and not jax.config.jax_enable_x64:
            result = result.astype(np.int32)  # all that JAX has; keys fit
        return jax.numpy.asarray(result)


class TorchKind(NumpyKind):
    """PyTorch's tensors, in the processor's memory."""

    def __init__(self) -> None:
        import torch

        self.torch = torch

    def like(self, query: Any, shape: tuple[int, ...]) -> Any:
        return self.torch.empty(shape, dtype=query.dtype)

    def state(self, query: Any, shape: tuple[int, ...]) -> Any:
        double = self.torch.float64
        return self.torch.empty(shape, dtype=double if query.dtype == double else self.torch.float32)

    def keys(self, shape: tuple[int, ...]) -> Any:
        return self.torch.empty(shape, dtype=self.torch.int64)


_KINDS: dict[type, NumpyKind] = {np.ndarray: NumpyKind()}


def _learn(array_type: type) -> NumpyKind | None:
    for base in array_type.__mro__:
        library = base.__module__.partition(".")[0]
        if base is np.ndarray:
            return _KINDS[np.ndarray]
        if library == "torch" and base.__name__ == "Tensor":
            return TorchKind()
        if library in ("jax", "jaxlib") and "jax" in sys.modules:
            return JaxKind()
    return None


def kind_of(query: Any, function: str) -> tuple[NumpyKind, Any]:
    """The kind of results for this query, and the query with a shape and a dtype."""
    kind = _KINDS.get(type(query))
    if kind is not None:
        return kind, query
    kind = _learn(type(query))
    if kind is not None:
        _KINDS[type(query)] = kind
        return kind, query
    if hasattr(query, "__dlpack__"):
        return _KINDS[np.ndarray], np.from_dlpack(query)
    try:
        return _KINDS[np.ndarray], np.asarray(memoryview(query))
    except TypeError:
        refuse(
            function,
            (
                "q",
                f"a {type(query).__name__}; an array is needed: NumPy's, PyTorch's, JAX's, or another with DLPack "
                "or the buffer protocol",
            ),
        )
