"""Models: what they are, and their files opened."""

from __future__ import annotations

import functools
import os

from . import _native
from ._given import Given
from ._tokenizer import Tokenizer


class Model(_native.Model):
    """A checkpoint's weights, read-only: any number of sessions may use it at once.

    path: a folder with config.json and .safetensors, or a .gguf file; docs/models.md says which families there are.
    context: how many tokens texts may grow to, where it matters (Phi-3's long and short rotary factors).
    """

    def __init__(self, path: str | os.PathLike[str], *, context: int = 0) -> None:
        given = Given("Model.load")
        tokens = given.whole("context", context)
        given.done()
        super().__init__(os.fspath(path), tokens)

    @functools.cached_property
    def tokenizer(self) -> Tokenizer:
        """The vocabulary beside the model, read when it is first asked for."""
        return Tokenizer(self.path)

    @functools.cached_property
    def facts(self) -> _native.ModelFacts:
        """Layer by layer what the model is, and `facts.cost(tokens)`."""
        return _native.model_facts(self.path)

    def __repr__(self) -> str:
        return f"<glasshead.Model {self.path!r}: {self.family}, {self.kind}, {self.parameters:,} parameters>"


def model_facts(path_or_name: str | os.PathLike[str]) -> _native.ModelFacts:
    """What a model is and costs, without running it: of its files (no weight is read), or of a published configuration
    that known_models() names.

    >>> glasshead.model_facts("llama-2-70b").cost(4096).cache_bytes
    2684354560
    """
    return _native.model_facts(os.fspath(path_or_name))
