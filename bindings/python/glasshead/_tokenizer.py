"""Text to token ids and back."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

from . import _native
from ._given import Given

Turn = tuple[Literal["system", "user", "assistant"], str]


class Encoding(NamedTuple):
    """A text as tokens."""

    ids: list[int]
    bytes: list[tuple[int, int]]  # [begin, end) in the text's UTF-8 that each covers; empty for tokens that were added


class Tokenizer:
    """A model's vocabulary, by Hugging Face's `tokenizers`; docs/tokenizers.md says which files are read.

    path: a model's folder (tokenizer.json; vocab.json and merges.txt; vocab.txt; tok512.bin), one of these files, or a
    .gguf with its vocabulary inside. `Tokenizer.is_available()` says whether the package was built with it.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._native = _native.Tokenizer(os.fspath(path))

    @staticmethod
    def is_available() -> bool:
        """Whether the package was built with tokenizers; without them models take token ids."""
        return _native.has_tokenizers()

    def encode(self, text: str | bytes, *, adds_special: bool = True) -> Encoding:
        """The text's ids, and which bytes each covers. adds_special: what the model puts around a text (BOS, [CLS] and
        [SEP]); special tokens that the text spells are recognised either way."""
        given = Given("encode")
        if not isinstance(text, (str, bytes)):
            given.wrong("text", f"a {type(text).__name__}; a string, or bytes, is needed")
        given.done()
        data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        return Encoding(*self._native.encode(data, bool(adds_special)))

    def decode(self, ids: Iterable[int], *, skips_special: bool = True) -> str:
        """The text of ids; bytes that are no UTF-8 become U+FFFD."""
        given = Given("decode")
        numbers = given.wholes("ids", ids)
        given.done()
        return self._native.decode(numbers, bool(skips_special))

    def decode_stream(self, ids: Iterable[int]) -> Iterator[str]:
        """The text as ids come, never half a character: the pieces are, put together, decode(ids)."""
        stream = _native.Utf8Stream(self._native)
        for one in ids:
            if piece := stream.push(one):
                yield piece
        if piece := stream.finish():
            yield piece

    def token(self, id: int) -> str:
        """The token as the vocabulary spells it."""
        return self._native.token(self._id("token", id))

    def bytes_of(self, id: int) -> bytes:
        """The bytes that the token stands for in a text."""
        return self._native.bytes_of(self._id("bytes_of", id))

    def id_of(self, token: str) -> int | None:
        """The id of a token as the vocabulary spells it."""
        given = Given("id_of")
        text = given.text("token", token)
        given.done()
        return self._native.id_of(text)

    def is_special(self, id: int) -> bool:
        """Whether it is no part of a text: BOS, [MASK], ..."""
        return self._native.is_special(self._id("is_special", id))

    def __len__(self) -> int:
        return self._native.size()

    @property
    def bos(self) -> int | None:
        return self._native.bos()

    @property
    def eos(self) -> int | None:
        return self._native.eos()

    @property
    def pad(self) -> int | None:
        return self._native.pad()

    @property
    def unk(self) -> int | None:
        return self._native.unk()

    @property
    def mask(self) -> int | None:
        return self._native.mask()

    @property
    def cls(self) -> int | None:
        return self._native.cls()

    @property
    def sep(self) -> int | None:
        return self._native.sep()

    @property
    def chat_template(self) -> str:
        """As the files have it; empty where they have none."""
        return self._native.chat_template()

    def chat_prompt(self, turns: Sequence[Turn]) -> str:
        """A conversation, (role, text) pairs, in the form that the model was trained on."""
        return chat_prompt(self.chat_template, turns)

    def __repr__(self) -> str:
        return f"<glasshead.Tokenizer of {len(self)} tokens>"

    @staticmethod
    def _id(function: str, value: Any) -> int:
        given = Given(function)
        number = given.whole("id", value)
        given.done()
        return number


def chat_form(chat_template: str) -> str:
    """Which form a template is recognised as: "chatml", "llama3", "gemma", "phi3", "zephyr", "llama2" or "mistral";
    empty: none of these."""
    given = Given("chat_form")
    text = given.text("chat_template", chat_template)
    given.done()
    return _native.chat_form(text)


def chat_prompt(chat_template: str, turns: Sequence[Turn]) -> str:
    """The turns, (role, text) pairs of "system", "user" and "assistant", as the text that a chat model continues.

    The template, a program, is recognised and not run; an unknown one is refused.
    """
    given = Given("chat_prompt")
    template, pairs = given.text("chat_template", chat_template), []
    if isinstance(turns, str) or not isinstance(turns, Iterable):
        given.wrong("turns", f"{turns!r}; a list of (role, text) is needed")
        turns = ()
    for number, turn in enumerate(turns):
        if isinstance(turn, (tuple, list)) and len(turn) == 2 and all(isinstance(part, str) for part in turn):
            pairs.append((turn[0], turn[1]))
        else:
            given.wrong(f"turns[{number}]", f"{turn!r}; (role, text) is needed")
    given.done()
    return _native.chat_prompt(template, pairs)
