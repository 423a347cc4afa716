"""Every intermediate of attention, as arrays and as pages: the printers are the command's."""

from __future__ import annotations

import html
import json
import os
import pathlib
from typing import TYPE_CHECKING, Any, Iterator, Literal, Mapping, NamedTuple, Sequence, TypedDict

import numpy as np

from . import _native, _options
from ._arrays import kind_of
from ._attention import heads_of
from ._errors import refuse

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import Options

CASES = pathlib.Path(__file__).with_name("cases")  # the worked examples that come with the package
_FORMATS = {f".{ending}": ending for ending in ("md", "html", "svg", "csv", "json")}
_FORMATS.update({".txt": "text", ".tex": "latex"})
_NUMBERS = (".npy", ".safetensors")


class Printing(TypedDict, total=False):
    """How a page is printed: the command's options of these names."""

    decimals: int  # digits after the point, 0 to 12; 4
    percent: bool  # weights times 100
    full: bool  # rows of more than 16 keys whole
    round: Literal["sum1", "nearest"]  # sum1: an entry moves by a unit where a printed row would not add to 1
    steps: Sequence[str]  # only these steps or matrices
    query: str | int  # only this row, by its label or index
    head: int  # only this head


class Step(NamedTuple):
    """One step: the matrix it makes, how, and from what."""

    name: str
    formula: str
    sentence: str
    reads: tuple[str, ...]


def _printing(options: Mapping[str, Any], **more: Any) -> _native.Printing:
    printing = _native.Printing()
    known = Printing.__annotations__
    for name, value in {**options, **more}.items():
        if name not in known and name not in more:
            raise TypeError(f"no printing option {name!r}; there are {', '.join(known)}")
        if name == "round":
            if value not in ("sum1", "nearest"):
                refuse("trace", ("round", f"{value!r} is neither 'sum1' nor 'nearest'"))
            printing.nearest = value == "nearest"
        elif name == "query":
            printing.query = None if value is None else str(value)
        else:
            setattr(printing, name, list(value) if name == "steps" else value)
    return printing


class Trace(Mapping[str, np.ndarray]):
    """A run with every value kept: trace["weights"] is an array, str(trace) the page that the command prints.

    A mapping from names to float64 arrays, first what was given, then the steps in order. In a notebook it shows
    itself.
    """

    def __init__(self, native: _native.Trace) -> None:
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

    def to_text(self, *, width: int = 100, ascii: bool = False, **printing: Unpack[Printing]) -> str:
        """The page as text, lines of at most `width`."""
        return self._native.page("text", _printing(printing, width=width, ascii=ascii))

    def to_markdown(self, *, math: bool = False, **printing: Unpack[Printing]) -> str:
        """The page as Markdown; math: formulas and matrices as $$ blocks."""
        return self._native.page("md", _printing(printing, math=math))

    def to_latex(self, *, standalone: bool = False, **printing: Unpack[Printing]) -> str:
        """The page as LaTeX; standalone: with a preamble, ready to compile."""
        return self._native.page("latex", _printing(printing, standalone=standalone))

    def to_html(self, **printing: Unpack[Printing]) -> str:
        """The page as HTML: no scripts, nothing fetched."""
        return self._native.page("html", _printing(printing))

    def to_svg(self, **printing: Unpack[Printing]) -> str:
        """Every matrix as a picture."""
        return self._native.page("svg", _printing(printing))

    def to_csv(self, **printing: Unpack[Printing]) -> str:
        """The first matrix shown, with all its digits."""
        return self._native.page("csv", _printing(printing))

    def to_json(self, **printing: Unpack[Printing]) -> str:
        """Every number as a double that reads back the same (glasshead.trace/1)."""
        return self._native.page("json", _printing(printing))

    def explain(self, *, query: str | int | None = None, head: int | None = None, **printing: Unpack[Printing]) -> str:
        """Each weight's derivation, from q and k to the last division."""
        return self._native.explain(_printing(printing, query=query, head=head))

    def save(self, path: str | os.PathLike[str], **printing: Unpack[Printing]) -> None:
        """Writes the page that the path's ending names (.txt .md .tex .html .svg .csv .json), or the numbers: .npy
        (out) or .safetensors (all). The target is complete or untouched."""
        path = os.fspath(path)
        ending = os.path.splitext(path)[1]
        if ending in _NUMBERS:
            if printing:
                refuse("trace", ("save", f"{', '.join(printing)}: no effect on the numbers in a {ending}"))
            self._native.write_numbers(path, ending == ".npy")
        elif ending in _FORMATS:
            _native.write_text(path, self._native.page(_FORMATS[ending], _printing(printing)))
        else:
            endings = " ".join([*_FORMATS, *_NUMBERS])
            refuse("trace", ("save", f"{path}: nothing is known about '{ending}'; there are {endings}"))

    def _repr_html_(self) -> str:
        """The page in a frame of its own, so that its style stays there."""
        page = html.escape(self.to_html(), quote=True)
        height = min(48.0, 6 + 1.9 * self.to_text().count("\n"))
        return (
            f'<iframe title="{html.escape(self.name, quote=True)}" sandbox="" srcdoc="{page}" '
            f'style="width:100%;height:{height:.0f}em;border:0;resize:vertical"></iframe>'
        )

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"<glasshead.Trace {self.name}: {' '.join(self._names)}>"


def trace(
    query: Any,
    key: Any,
    value: Any,
    *,
    query_labels: Sequence[str] = (),
    key_labels: Sequence[str] = (),
    name: str = "trace",
    title: str = "",
    empty_row: Literal["zero", "error"] = "error",
    **options: Unpack[Options],
) -> Trace:
    """Attention over arrays with every step kept, in float64, in the order it would be written on paper.

    One sequence: query [heads, q_len, d_k] or [q_len, d_k] (a batch of one will do), the rest as in
    scaled_dot_product_attention. Labels default to 0, 1, 2, ... A row with no allowed key is an error unless empty_row
    is "zero". At most 2^24 scores.
    """
    native = _options.build(heads_of(kind_of(query, "trace")[1]), empty_row=empty_row, **options)
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
