"""The doctor: is somebody's attention right and, if not, which mistake gives exactly their numbers?"""

from __future__ import annotations

import dataclasses
import html
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from . import _native, _options
from ._arrays import TYPES, kind_of
from ._attention import heads_of
from ._errors import refuse
from ._keywords import named

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import Options

_CLAIMS = ("out", "weights", "scores", "lse", "dq", "dk", "dv", "d_out")
_TYPES = {theirs: ours for ours, theirs in TYPES.items()} | {"double": "f64", "float": "f32", "half": "f16"}


class Rotary(NamedTuple):
    """Rotary positions that the program under test applies to q and k itself (Su et al. 2021).

    Pairs (i, i + n/2), or (2i, 2i + 1), of the first n coordinates turn by position * base^(-2i/n).
    """

    is_adjacent: bool = False  # pairs (2i, 2i + 1)
    base: float = 10000.0
    size: int = 0  # coordinates that turn, even; 0: all


Rope = Literal["halves", "adjacent"] | Rotary | None


class NamedMistake(NamedTuple):
    """A mistake of the catalogue, docs/mistakes.md."""

    id: str  # "window-off"
    parameter: str  # "1"; empty if it has none
    title: str
    done: str  # what is done instead of the right thing
    cause: str  # a line of code as people write it
    fix_code: str  # the line as it should be
    fix: str  # in words

    @property
    def name(self) -> str:
        """ "window-off:1"."""
        return f"{self.id}:{self.parameter}" if self.parameter else self.id


class Cause(NamedTuple):
    """What explains every number: a mistake, or two made together."""

    name: str  # "mask-ignored + scale-missing"
    mistakes: tuple[NamedMistake, ...]
    worst: float  # largest distance from their numbers, in tolerances: at most 1
    telling: int  # numbers in which it differs from the right answer
    is_close: bool  # 1 to 4 tolerances away: not the best, not ruled out


@dataclasses.dataclass(frozen=True)
class Entry:
    """One number of theirs beside the right one."""

    claim: str  # "out", "weights", ...
    index: tuple[int, ...]
    found: float
    right: float
    tolerance: float  # what rounding can do to this number


class RowReport(NamedTuple):
    """One row of a small claim."""

    claim: str
    row: str  # its label
    is_right: bool
    found: tuple[float, ...]
    right: tuple[float, ...]


def _turned(rope: Rope, function: str) -> tuple[bool, float, int] | None:
    if isinstance(rope, str):
        if rope not in ("halves", "adjacent"):
            refuse(function, ("rope", f"found {rope!r}; 'halves', 'adjacent' or a glasshead.Rotary is needed"))
        rope = Rotary(is_adjacent=rope == "adjacent")
    return None if rope is None else (bool(rope[0]), float(rope[1]), int(rope[2]))


def _entry(told: Mapping[str, Any] | None) -> Entry | None:
    if told is None:
        return None
    numbers = (float(told[name]) for name in ("found", "right", "tolerance"))
    return Entry(told["claim"], tuple(told["index"]), *numbers)


def _cause(told: Mapping[str, Any]) -> Cause:
    mistakes = tuple(NamedMistake(**mistake) for mistake in told["mistakes"])
    return Cause(told["name"], mistakes, float(told["worst"]), told["telling"], told["is_close"])


def _row(told: Mapping[str, Any]) -> RowReport:
    found, right = (tuple(float(number) for number in told[name]) for name in ("found", "right"))
    return RowReport(told["claim"], told["row"], told["is_right"], found, right)


class Diagnosis:
    """A verdict, and why: str() is what the command `glasshead doctor` prints, to_json() what it writes.

    verdict: "right", every number is within what rounding can do; "mistaken", wrong, and each of `causes` gives every
    number (more than one: this input can't tell them apart); "unexplained", wrong, and nothing in the catalogue does.
    """

    verdict: Literal["right", "mistaken", "unexplained"]
    causes: tuple[Cause, ...]  # best first
    first_wrong: Entry | None
    worst: Entry | None  # by tolerances, of a right answer too
    worst_ulps: float  # of the numbers of out, in units in the last place of `arithmetic`
    plain_ulps: float  # the same of plain attention in that type on these inputs
    arithmetic: str  # "f64", "f32", "bf16", "f16"
    rows: int  # query rows of all heads
    rows_checked: int  # fewer for large inputs
    numbers: int  # that were compared
    wrong: int  # of them
    small_rows: tuple[RowReport, ...]  # row by row, of claims of at most 16 x 16 numbers
    pattern: tuple[str, ...]  # where the wrong numbers are
    proven: tuple[str, ...]  # what is right about them all the same
    next: tuple[str, ...]  # what to look at or try next
    blind: tuple[str, ...]  # mistakes that this input could not have shown
    not_tried: tuple[str, ...]  # and why
    tried: int  # mistakes, each parameter counted, and pairs

    def __init__(self, text: str, told: str) -> None:
        self._text, self._json = text, told
        facts = json.loads(told)
        self.verdict = facts["verdict"]
        self.causes = tuple(_cause(cause) for cause in facts["causes"])
        self.first_wrong, self.worst = _entry(facts["first_wrong"]), _entry(facts["worst"])
        self.worst_ulps, self.plain_ulps = float(facts["worst_ulps"]), float(facts["plain_ulps"])
        self.arithmetic = facts["arithmetic"]
        self.rows, self.rows_checked = facts["rows"], facts["rows_checked"]
        self.numbers, self.wrong, self.tried = facts["numbers"], facts["wrong"], facts["tried"]
        self.small_rows = tuple(_row(row) for row in facts["small_rows"])
        self.pattern, self.proven, self.next = (tuple(facts[name]) for name in ("pattern", "proven", "next"))
        self.blind, self.not_tried = tuple(facts["blind"]), tuple(facts["not_tried"])

    @property
    def is_right(self) -> bool:
        """Every number is within what rounding can do."""
        return self.verdict == "right"

    def to_json(self) -> str:
        """All of it in the schema glasshead.diagnosis/1."""
        return self._json

    def _repr_html_(self) -> str:
        return f'<pre style="white-space:pre-wrap">{html.escape(self._text)}</pre>'

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        names = " or ".join(cause.name for cause in self.causes)
        return f"<glasshead.Diagnosis {self.verdict}{': ' if names else ''}{names}>"


_MOST_DECIMALS = 17


def _digits_after_point(word: str) -> int:
    """The digits after the point, fewer or more by the exponent: 2 of 1.25, 6 of 1.25e-4, 0 of 1.25e2."""
    mantissa, _, exponent = word.lower().partition("e")
    digits = len(mantissa.partition(".")[2]) - int(exponent or 0)
    return min(max(digits, 0), _MOST_DECIMALS)


def _numbers_of(text: str, where: str) -> tuple[Any, int]:
    """Numbers as a page shows them, rows apart by ; or line ends, and the most digits after a point."""
    rows = [
        row.replace(",", " ").split() for row in text.replace("[", " ").replace("]", " ").replace("\n", ";").split(";")
    ]
    words = [row for row in rows if row]
    try:
        values = np.array(words, dtype=np.float64)
    except ValueError:
        refuse("diagnose", (where, f"{text!r} does not read as rows of numbers, the rows apart by ; or line ends"))
    return values, max((_digits_after_point(word) for row in words for word in row), default=0)


def _readable(array: Any) -> Any:
    """Without the gradient that it may require; lists as arrays."""
    if getattr(array, "requires_grad", False):
        return array.detach()
    return np.asarray(array, np.float64) if isinstance(array, (list, tuple)) else array


def _claimed(
    claims: Mapping[str, Any], dtype: Any, decimals: int | None, pairs: bool, query_labels: Sequence[str]
) -> _native.Claims:
    native = _native.Claims()
    digits = 0
    for name in _CLAIMS:
        given = claims.get(name)
        if given is None:
            continue
        if isinstance(given, str):
            given, places = _numbers_of(given, name)
            digits = max(digits, places)
            if name == "lse":
                given = given.reshape(-1)
        native.claim(name, _readable(given))
    if decimals is not None or digits:
        native.decimals(digits if decimals is None else decimals)
    if dtype is not None:
        name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)  # NumPy's, PyTorch's
        native.dtype(_TYPES.get(name.rpartition(".")[2], name))
    native.pairs(pairs)
    native.labels([str(label) for label in query_labels])
    return native


@named()
def diagnose(
    query: Any,
    key: Any,
    value: Any,
    *,
    out: Any = None,
    weights: Any = None,
    scores: Any = None,
    lse: Any = None,
    dq: Any = None,
    dk: Any = None,
    dv: Any = None,
    d_out: Any = None,
    dtype: Any = None,
    decimals: int | None = None,
    pairs: bool = True,
    query_labels: Sequence[str] = (),
    rope: Rope = None,
    unprojected: Any = None,
    **options: Unpack[Options],
) -> Diagnosis:
    """Whether somebody's attention is right and, if not, which mistake gives exactly their numbers.

    query, key, value and the options are what they believe to compute with, as in scaled_dot_product_attention; what
    their program gave is out [batch, heads, q_len, d_v], weights or scores [batch, heads, q_len, kv_len], lse [batch,
    heads, q_len], or gradients dq, dk, dv, in the shapes of query, key, value, with the d_out they came from: at least
    one of them, arrays, lists, or text as printed ("1 0 0; .5 .5 0"). scores are scaled, capped and biased; weights
    are before dropout.

    dtype: the type that their program computes in, where the arrays hold a wider one. decimals: their numbers are
    rounded to so many places (of text: as many as it has). pairs: two mistakes at once are tried where no single one
    fits. rope: their program turns query and key by positions itself, as pairs "halves" or "adjacent" with base 10000,
    or as a Rotary says. unprojected: what value was projected from. Takes seconds for [1, 8, 512, 64]; of larger inputs
    rows are sampled, and the diagnosis says so.
    """
    claims = {"out": out, "weights": weights, "scores": scores, "lse": lse, "dq": dq, "dk": dk, "dv": dv}
    claims["d_out"] = d_out
    query, key, value = _readable(query), _readable(key), _readable(value)
    query = kind_of(query, "diagnose")[1]
    native = _options.build(heads_of(query), _options.pairs_of(query, key), **options)
    turned = _turned(rope, "diagnose")
    claimed = _claimed(claims, dtype, decimals, pairs, query_labels)
    return Diagnosis(*_native.diagnose(query, key, value, native, turned, _readable(unprojected), claimed))


class Probe:
    """Inputs on which the catalogue's mistakes give different numbers.

    q, k, v: float32; mask: the pairs that may attend [batch, heads, q_len, kv_len], None without masks. alike: groups
    of mistakes that give the same numbers in this shape by their nature; those beside "right" can't be seen at all.
    least_distance: of any two others, in tolerances.
    """

    def __init__(self, native: _native.Probe, shapes: Mapping[str, tuple[int, ...]], more: Mapping[str, Any]) -> None:
        def array(name: str) -> Any:
            room = np.empty(shapes[name], bool if name == "mask" else np.float32)
            native.copy(name, room)
            return room

        self.q, self.k, self.v = array("q"), array("k"), array("v")
        self.mask = array("mask") if native.has_mask else None
        self.alike = tuple(tuple(group) for group in native.alike)
        self.least_distance = native.least_distance
        self._more = dict(more)

    def diagnose(self, out: Any = None, **claims: Any) -> Diagnosis:
        """What `glasshead.diagnose` says of numbers computed from q, k, v, with the options the probe is made for."""
        return diagnose(self.q, self.k, self.v, out=out, **{**self._more, **claims})

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name} {list(getattr(self, name).shape)}" for name in "qkv")
        return f"<glasshead.Probe {shapes}>"


@named()
def make_probe(
    *,
    batch: int = 1,
    heads: int = 1,
    kv_heads: int | None = None,
    q_len: int = 12,
    kv_len: int = 20,
    d_k: int = 8,
    d_v: int | None = None,
    seed: int = 1,
    rope: Rope = None,
    **options: Unpack[Options],
) -> Probe:
    """Inputs of a shape on which every mistake is far from the right answer and from every other.

    Run the attention in question on the probe's q, k, v (and mask), and hand its output to the probe's `diagnose`.
    rope: that attention turns q and k by positions itself, as in `diagnose`.
    """
    kv_heads, d_v = heads if kv_heads is None else kv_heads, d_k if d_v is None else d_v
    native = _options.build(heads, (batch, heads, q_len, kv_len), **options)
    made = _native.make_probe(
        [batch, heads, kv_heads, q_len, kv_len, d_k, d_v], native, seed, _turned(rope, "make_probe")
    )
    shapes = {
        "q": (batch, heads, q_len, d_k),
        "k": (batch, kv_heads, kv_len, d_k),
        "v": (batch, kv_heads, kv_len, d_v),
        "mask": (batch, heads, q_len, kv_len),
    }
    return Probe(made, shapes, {"rope": rope, **options})
