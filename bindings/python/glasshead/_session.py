"""Sequences being read or written with a model."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from . import _native
from ._given import Given
from ._heads import HeadStudy
from ._keywords import named
from ._logits import TokenProbability, most_probable, sampling_of
from ._model import Model
from ._taps import Change, Taps, changes_of

Floats = npt.NDArray[np.float32]
Text = str | Iterable[int]  # as the model's tokenizer encodes it; or ids
StopReason = Literal["length", "end", "stop", "callback", "position_limit"]


class Stream(Iterator[int]):
    """A text being written: its ids as they are asked for. After the last one `why` says what ended it."""

    def __init__(self, native: _native.Writer, taps: Taps | None) -> None:
        self._native = native
        self._taps = taps
        self.why: StopReason | None = None  # as Generation's; None while it goes on

    def __next__(self) -> int:
        if self._taps is not None:
            self._taps._results = None
        following = self._native.next()
        if following is None:
            self.why = self._native.why()  # type: ignore[assignment]  # a name the library gives
            raise StopIteration
        return following


@dataclasses.dataclass(frozen=True)
class Generation:
    """A text that was written."""

    ids: list[int]  # the new ones
    why: StopReason  # "length": max_tokens; "end": an end id, which is not among the ids; "stop": a stop text came;
    # "callback": on_token said so; "position_limit": the model's last position was read, before max_tokens
    _model: Model = dataclasses.field(repr=False, compare=False)

    @property
    def text(self) -> str:
        """By the model's tokenizer."""
        return self._model.tokenizer.decode(self.ids)


class Beam(NamedTuple):
    """One text of a beam search."""

    ids: list[int]  # without the end id
    log_probability: float
    is_finished: bool  # by an end id


class Filled(NamedTuple):
    """What fits one masked place."""

    position: int  # among the text's tokens
    candidates: list[TokenProbability]  # best first


class Session:
    """Some sequences being read or written with one model: their keys and values, and room to compute.

    Sequences are numbered from 0; a decoder's session begins with sequence 0, empty. The bits of a token's numbers
    depend on its text alone: not on whether it was read in one go or token by token, on the other texts of a call, on
    threads or on what is tapped. Threads may share a session, and take turns in the order they come, between two tokens
    of a text that is being written; the interpreter's lock is released while it computes.

    rows_at_once: new tokens that are computed together; it changes no bit.
    """

    def __init__(self, model: Model, *, rows_at_once: int = 256, context: _native.Context | None = None) -> None:
        given = Given("Session")
        given.kind("model", model, Model)
        rows = given.whole("rows_at_once", rows_at_once)
        if context is not None:
            given.kind("context", context, _native.Context)
        given.done()
        self._model = model
        self._native = _native.Session(model, rows, context)

    @property
    def model(self) -> Model:
        return self._model

    def change(self, *changes: Change) -> None:
        """From the next run on, instead of the changes before; without any, the model is itself again.

        Keys and values that sequences hold already stay as they were computed: begin anew (truncate) where they
        should not."""
        self._native.change(changes_of(changes))

    def add(self) -> int:
        """A new, empty sequence; its number."""
        return self._native.add()

    def fork(self, sequence: int = 0) -> int:
        """A new sequence with the same tokens, sharing their memory; its number."""
        return self._native.fork(self._number("fork", "sequence", sequence))

    def truncate(self, length: int, sequence: int = 0) -> None:
        """Forgets the tokens from position `length` on."""
        number = self._number("truncate", "sequence", sequence)
        self._native.truncate(number, self._number("truncate", "length", length))

    def drop(self, sequence: int) -> None:
        """Forgets a sequence; `add` uses its number again."""
        self._native.drop(self._number("drop", "sequence", sequence))

    def length(self, sequence: int = 0) -> int:
        """How many tokens it holds."""
        return self._native.length(self._number("length", "sequence", sequence))

    @property
    def cache_bytes(self) -> int:
        """Of the keys and values of all sequences."""
        return self._native.cache_bytes()

    @named()
    def forward(
        self,
        parts: Iterable[int] | Mapping[int, Iterable[int]],
        *,
        sequence: int = 0,
        rows: Literal["last", "all", "none"] = "last",
        taps: Taps | None = None,
        heads: HeadStudy | None = None,
    ) -> Floats:
        """Appends ids to a sequence, or, as {sequence: ids}, to several at once, and returns logits [rows, vocab]: of
        each part's last id, of "all" ids, or of "none"."""
        given = Given("Session.forward")
        if isinstance(parts, Mapping):
            numbered = [
                (given.whole("parts", number), given.wholes(f"parts[{n}].ids", ids))
                for n, (number, ids) in enumerate(parts.items())
            ]
        else:
            numbered = [(given.whole("sequence", sequence), given.wholes("parts[0].ids", parts))]
        given.choice("rows", rows, "last", "all", "none")
        seen, study = _watched(given, taps), _studied(given, heads)
        given.done()
        return self._native.forward(numbered, rows, seen, study)

    @named()
    def encode(
        self,
        texts: Iterable[Text],
        *,
        segments: Iterable[Sequence[int]] | None = None,
        taps: Taps | None = None,
        heads: HeadStudy | None = None,
    ) -> list[Floats]:
        """An encoder's last rows, [tokens, d_model] for each text. segments: BERT's token types of each text, one for
        each id."""
        given = Given("Session.encode")
        read = self._texts(given, texts, segments)
        seen, study = _watched(given, taps), _studied(given, heads)
        given.done()
        rows = self._native.encode(read, seen, study)
        ends = np.cumsum([len(ids) for ids, _ in read])
        return np.split(rows, ends[:-1])

    def logits(self, rows: Any) -> Floats:
        """Logits [rows, vocab] of rows [rows, d_model] of the last layer, as an encoder's at a [MASK]."""
        return self._native.logits(self._rows("Session.logits", rows))

    def lens(self, rows: Any) -> Floats:
        """The same of rows that leave any layer, as if it were the last: through the final norm where there is one
        (nostalgebraist 2020, "interpreting GPT: the logit lens")."""
        return self._native.lens(self._rows("Session.lens", rows))

    @named()
    def embed(
        self, texts: Iterable[Text], *, segments: Iterable[Sequence[int]] | None = None, normalised: bool = True
    ) -> Floats:
        """An encoder's vector for each text, [texts, d_model]: the mean of its rows, or its first row if the files ask
        for that; of length 1 if `normalised`."""
        given = Given("Session.embed")
        read = self._texts(given, texts, segments)
        given.done()
        return self._native.embed(read, bool(normalised))

    @named()
    def read(self, text: Text, *, taps: Taps | None = None, heads: HeadStudy | None = None) -> int:
        """Of an encoder-decoder: reads a text, and adds an empty sequence to be written about it; its number."""
        given = Given("Session.read")
        ids = self._text(given, "text", text)
        seen, study = _watched(given, taps), _studied(given, heads)
        given.done()
        return self._native.read(ids, seen, study)

    @named()
    def stream(
        self,
        prompt: Text | None = None,
        *,
        max_tokens: int = 128,
        temperature: float = 0.0,
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
        repetition_penalty: float = 1.0,
        seed: int = 0,
        stops_at_eos: bool = True,
        stop_ids: Iterable[int] = (),
        stop: str | Iterable[str] = (),
        taps: Taps | None = None,
        heads: HeadStudy | None = None,
        sequence: int = 0,
    ) -> Stream:
        """`generate`, one id at a time:

        for piece in model.tokenizer.decode_stream(session.stream("Once upon a time")):
            print(piece, end="", flush=True)
        """
        given = Given("generate")
        sampling = sampling_of(given, temperature, top_k, top_p, min_p, repetition_penalty, seed)
        most = given.whole("max_tokens", max_tokens)
        ends, stops = given.wholes("stop_ids", stop_ids), given.texts("stop", stop)
        number = given.whole("sequence", sequence)
        ids = self._prompt(given, prompt)
        seen, study = _watched(given, taps), _studied(given, heads)
        given.done()
        words = self._model.tokenizer if isinstance(prompt, str) or stops else None
        if words is not None and words.eos is not None and stops_at_eos:
            ends.append(words.eos)
        native = None if words is None else words._native
        writer = _native.Writer(
            self._native, ids, most, sampling, bool(stops_at_eos), ends, stops, native, seen, study, number
        )
        return Stream(writer, taps)

    @named()
    def generate(
        self,
        prompt: Text | None = None,
        *,
        max_tokens: int = 128,
        temperature: float = 0.0,
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
        repetition_penalty: float = 1.0,
        seed: int = 0,
        stops_at_eos: bool = True,
        stop_ids: Iterable[int] = (),
        stop: str | Iterable[str] = (),
        on_token: Callable[[int], Any] | None = None,
        taps: Taps | None = None,
        heads: HeadStudy | None = None,
        sequence: int = 0,
    ) -> Generation:
        """Appends a prompt to a sequence, and then one token after another.

        prompt: a text, or ids; None: what the model's texts begin with.
        temperature: 0 takes the most probable token; above, one is drawn, after repetition_penalty (logits of ids that
            are there already: divided by it if positive, else multiplied), temperature, top_k (0: all), top_p, min_p.
        seed: draw n of a text is number n of this seed's stream.
        stops_at_eos: the model's own end ids end the text; stop_ids: beside them.
        stop: ends the text behind the id with which one of these has come; it stays in the text.
        on_token: called with every new id; an answer that is false (not None) ends the text.
        heads: looks at every token that is read, the prompt's and then those written, as if all were read at once: up
            to the last, which is read only if an end id follows it (at `length(sequence)` tokens).
        sequence: what it holds already is read before the prompt; penalties and draws count from the prompt.
        """
        stream = self.stream(
            prompt,
            max_tokens=max_tokens,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            min_p=min_p,
            repetition_penalty=repetition_penalty,
            seed=seed,
            stops_at_eos=stops_at_eos,
            stop_ids=stop_ids,
            stop=stop,
            taps=taps,
            heads=heads,
            sequence=sequence,
        )
        ids = []
        for one in stream:
            ids.append(one)
            answer = None if on_token is None else on_token(one)
            if answer is not None and not answer:
                return Generation(ids, "callback", self._model)
        return Generation(ids, stream.why or "length", self._model)

    @named()
    def beam_search(
        self,
        prompt: Text | None = None,
        *,
        beams: int = 4,
        max_tokens: int = 128,
        length_penalty: float = 1.0,
        sequence: int = 0,
    ) -> list[Beam]:
        """The best texts, best first, at most `beams`: a step keeps so many unfinished ones.

        length_penalty: texts are compared by log probability / length^penalty; above 1 prefers longer texts.
        sequence: the beginning of every beam; left as it was.
        """
        given = Given("beam_search")
        kept, most = given.whole("beams", beams), given.whole("max_tokens", max_tokens)
        penalty, number = given.number("length_penalty", length_penalty), given.whole("sequence", sequence)
        ids = self._prompt(given, prompt)
        given.done()
        found = _native.beam_search(self._native, ids, kept, most, penalty, number)
        return [Beam(*beam) for beam in found]

    @named()
    def fill(self, text: str, *, count: int = 5, taps: Taps | None = None) -> list[Filled]:
        """The `count` most probable tokens at every [MASK] of a text, for an encoder with a head. "[MASK]" may be
        written whatever the vocabulary calls it."""
        given = Given("fill")
        given.text("text", text)
        most = given.whole("count", count)
        given.done()
        words = self._model.tokenizer
        if words.mask is None:
            given.wrong("model", "this model's tokenizer has no mask token")
            given.done()
        mask: Any = words.mask
        ids = words.encode(text.replace("[MASK]", words.token(mask))).ids
        places = [n for n, one in enumerate(ids) if one == mask]
        if not places:
            given.wrong("text", "no [MASK] in it, which stands for the word to be found")
        given.done()
        rows = self.encode([ids], taps=taps)[0]
        logits = self.logits(rows[places])
        return [Filled(n, most_probable(row, most, tokenizer=words)) for n, row in zip(places, logits, strict=True)]

    def __repr__(self) -> str:
        return f"<glasshead.Session with {self._model!r}, {self.cache_bytes} bytes>"

    @staticmethod
    def _number(function: str, where: str, value: Any) -> int:
        given = Given("Session." + function)
        number = given.whole(where, value)
        given.done()
        return number

    @staticmethod
    def _rows(function: str, rows: Any) -> Floats:
        given = Given(function)
        array: Floats = given.floats("rows", rows, 2)
        given.done()
        return array

    def _text(self, given: Given, where: str, text: Text) -> list[int]:
        return self._model.tokenizer.encode(text).ids if isinstance(text, str) else given.wholes(where, text)

    def _texts(
        self, given: Given, texts: Iterable[Text], segments: Iterable[Sequence[int]] | None
    ) -> list[tuple[list[int], list[int]]]:
        if isinstance(texts, (str, bytes)) or not isinstance(texts, Iterable):
            given.wrong("texts", f"{texts!r}; a list of texts is needed, each a string or ids")
            return []
        read = [self._text(given, f"texts[{n}].ids", text) for n, text in enumerate(texts)]
        types = [[] for _ in read] if segments is None else [given.wholes("segments", one) for one in segments]
        if len(types) != len(read):
            given.wrong("segments", f"of {len(types)} texts where there are {len(read)}")
            return []
        return list(zip(read, types, strict=True))

    def _prompt(self, given: Given, prompt: Text | None) -> list[int]:
        if prompt is not None and (not isinstance(prompt, str) or prompt):
            return self._text(given, "prompt", prompt)
        model = self._model
        begin = model.decoder_start if model.kind == "encoder-decoder" else model.bos
        if begin is None:
            given.wrong("prompt", "missing; this model's texts begin with no token of their own")
            return []
        return [begin]


def _watched(given: Given, taps: Taps | None) -> _native.Taps | None:
    if taps is None or not given.kind("taps", taps, Taps):
        return None
    taps._results = None
    return taps._native


def _studied(given: Given, heads: HeadStudy | None) -> _native.HeadStudy | None:
    return heads._native if heads is not None and given.kind("heads", heads, HeadStudy) else None
