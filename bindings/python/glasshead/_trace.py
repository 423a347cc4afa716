"""Every intermediate of attention, as arrays and as pages: the printers are the command's."""

from __future__ import annotations

import functools
import json
import os
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from . import _native, _options
from ._arrays import kind_of
from ._attention import heads_of
from ._doctor import Diagnosis, _claimed
from ._errors import refuse
from ._interactive import Interactive, page_text
from ._keywords import named
from ._page import Page, Printing, _printing

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import Options

CASES = pathlib.Path(__file__).with_name("cases")  # the worked examples that come with the package
_NUMBERS = (".npy", ".safetensors")


class Step(NamedTuple):
    """One step: the matrix it makes, how, and from what."""

    name: str
    formula: str
    sentence: str
    reads: tuple[str, ...]


class Trace(Page, Mapping[str, np.ndarray]):
    """A run with every value kept: trace["weights"] is an array, str(trace) the page that the command prints.

    A mapping from names to float64 arrays, first what was given, then the steps in order. In a notebook it shows
    itself.
    """

    def __init__(self, native: _native.Trace) -> None:
        super().__init__(native.name, native.page)
        self._native = native
        self._steps = [Step(*step[:3], tuple(step[3])) for step in native.steps()]
        self._names = [*native.inputs(), *(step.name for step in self._steps)]
        self._arrays: dict[str, np.ndarray] = {}

    @property
    def name(self) -> str:
        """The case's name."""
        return self._native.name

    @property
    def query_labels(self) -> list[str]:
        """One for each query row."""
        return self._native.query_labels

    @property
    def key_labels(self) -> list[str]:
        """One for each key."""
        return self._native.key_labels

    @property
    def steps(self) -> list[Step]:
        """What was computed, in order."""
        return list(self._steps)

    def __getitem__(self, name: str) -> np.ndarray:
        array = self._arrays.get(name)
        if array is None:
            if name not in self._names:
                raise KeyError(f"{name}; there are {', '.join(self._names)}")
            flat = np.empty(int(np.prod(self._native.shape(name), dtype=np.int64)))
            self._native.copy(name, flat)
            array = flat.reshape(self._native.shape(name))
            array.flags.writeable = False  # it is kept
            self._arrays[name] = array
        return array

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def explain(self, **printing: Unpack[Printing]) -> str:
        """Each weight's derivation, from q and k to the last division; query="B" for one row."""
        return self._native.explain(_printing(printing))

    def save(self, path: str | os.PathLike[str], **printing: Unpack[Printing]) -> None:
        """Writes the page that the path's ending names (.txt .md .tex .html .svg .csv .json), or the numbers: .npy
        (out) or .safetensors (all). The target is complete or untouched."""
        ending = pathlib.Path(path).suffix
        if ending not in _NUMBERS:
            super().save(path, **printing)
            return
        if printing:
            refuse("trace", ("save", f"{', '.join(printing)}: no effect on the numbers in a {ending}"))
        self._native.write_numbers(os.fspath(path), ending == ".npy")

    def to_html(
        self, *, interactive: bool = False, web: str | os.PathLike[str] | None = None, **printing: Unpack[Printing]
    ) -> str:
        """As HTML: no scripts, nothing fetched; interactive: the page of `interactive`, as text."""
        if interactive:
            if printing:
                refuse("trace", ("to_html", f"{', '.join(printing)}: no effect on an interactive page"))
            return self.interactive(web=web).to_html()
        if web is not None:
            refuse("trace", ("to_html", "web: has an effect with interactive=True alone"))
        return super().to_html(**printing)

    def interactive(self, *, web: str | os.PathLike[str] | None = None) -> Interactive:
        """As a page to edit and walk through, one file that needs no network: `glasshead trace --interactive`.

        web: the folder of the built page, where the package came without it (`make web` makes it).
        """
        return Interactive(self.name, self._native.lesson(page_text(web)))

    def diff(self, before: Trace) -> Page:
        """What moved since `before`, a trace of the same case before a change, what did not, and why not."""
        return Page(self.name, functools.partial(self._native.diff, before._native))

    def by_hand(self, decimals: int = 2, *, is_shifted: bool = False) -> Page:
        """The arithmetic as on paper, every number rounded before the next step uses it, beside the exact numbers.

        is_shifted: the row maximum is subtracted first, which paper leaves out.
        """
        return Page(self.name, functools.partial(self._native.by_hand, decimals, is_shifted))

    def mistake(self, name: str) -> Page:
        """The same numbers with a mistake of docs/mistakes.md made, "id" or "id:parameter", beside the right ones."""
        return Page(self.name, functools.partial(self._native.mistake, name))

    def gradients(self) -> Page:
        """Gradients of the sum of out with respect to q, k, v, and how far each row's softmax is saturated."""
        return Page(self.name, self._native.gradients)

    @named()
    def diagnose(
        self,
        *,
        out: Any = None,
        weights: Any = None,
        scores: Any = None,
        lse: Any = None,
        dtype: Any = None,
        decimals: int | None = None,
        pairs: bool = True,
    ) -> Diagnosis:
        """What `glasshead.diagnose` says of numbers that somebody gives for the first attention of this trace."""
        claims = {"out": out, "weights": weights, "scores": scores, "lse": lse}
        return Diagnosis(*self._native.diagnose(_claimed(claims, dtype, decimals, pairs, ())))

    def __repr__(self) -> str:
        return f"<glasshead.Trace {self.name}: {' '.join(self._names)}>"


@named(empty_row="error")
def trace(
    query: Any,
    key: Any,
    value: Any,
    *,
    query_labels: Sequence[str] = (),
    key_labels: Sequence[str] = (),
    name: str = "trace",
    title: str = "",
    **options: Unpack[Options],
) -> Trace:
    """Attention over arrays with every step kept, in float64, in the order it would be written on paper.

    One sequence: query [heads, q_len, d_k] or [q_len, d_k] (a batch of one will do), the rest as in
    scaled_dot_product_attention. Labels default to 0, 1, 2, ... A row with no allowed key is an error unless empty_row
    is "zero". At most 2^24 scores.
    """
    query = kind_of(query, "trace")[1]
    options.setdefault("empty_row", "error")
    native = _options.build(heads_of(query), _options.pairs_of(query, key), **options)
    labels = ([str(label) for label in query_labels], [str(label) for label in key_labels])
    return Trace(_native.trace_arrays(query, key, value, native, *labels, name, title))


def cases() -> list[str]:
    """Names of the worked examples that come with the package."""
    return sorted(path.stem for path in CASES.glob("*.json"))


def _case_text(case: str | os.PathLike[str] | Mapping[str, Any]) -> tuple[str, str]:
    if isinstance(case, Mapping):
        return json.dumps(case), "case"
    path = os.fspath(case)
    if not os.path.isfile(path) and os.sep not in path:
        known = CASES / f"{path}.json"
        if known.is_file():
            path = str(known)
        elif not path.endswith(".json"):
            refuse("trace", (path, "no such file, and no case of this name; glasshead.cases() lists them"))
    return _native.read_text(path), pathlib.Path(path).stem


@named()
def trace_case(
    case: str | os.PathLike[str] | Mapping[str, Any],
    *,
    set: Sequence[str] = (),
    hide: Sequence[str] = (),
    mask: str | None = None,
    scale: float | None = None,
    empty_row: Literal["zero", "error"] | None = None,
) -> Trace:
    """Runs a case: one of cases(), a file, or a dict in the case format.

    The others change it first, as the command's flags do: set=["X[B]=1,1"], hide=["C"], mask="causal" ("none",
    "window:L,R", "prefix:N"), scale=1.
    """
    text, name = _case_text(case)
    for argument, given in (("set", set), ("hide", hide)):
        if isinstance(given, str):
            refuse("trace", (argument, f"{given!r}; a list of them is needed: [{given!r}]"))
    hidden = [str(key) for key in hide]
    return Trace(_native.trace_case(text, name, list(set), hidden, mask, scale, empty_row))
