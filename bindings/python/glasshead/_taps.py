"""Numbers of a run to keep, and changes of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from . import _native
from ._given import Given


class Tap(NamedTuple):
    """A number of a run to keep."""

    name: str  # one of Model.tap_names; a `*` stands for any layer: "decoder.*.self.q"
    heads: Sequence[int] = ()  # of weights and scores: these query heads; empty: all
    positions: tuple[int, int] | None = None  # of weights and scores: these query positions, first and last


class Taps(Mapping[str, npt.NDArray[np.float32]]):
    """What taps, or their names alone, have seen of one sequence since they were made: arrays by name, in the order of
    computation. Runs that follow each other add their tokens; no bit of a run depends on what is looked at.

        taps = Taps("decoder.*.out", Tap("decoder.2.self.weights", heads=[3]))
        session.forward(ids, taps=taps)
        taps["decoder.2.self.weights"]  # [1, tokens, keys]

    Rows are tokens in order: [tokens, size], of heads [heads, tokens, d], weights and scores [heads asked for,
    positions asked for, keys], 0 and -inf where hidden. sequence: of a batch, which one is looked at (its place in the
    call).
    """

    def __init__(self, *taps: str | Tap, sequence: int = 0) -> None:
        given = Given("Taps")
        wanted = []
        for number, tap in enumerate(Tap(tap) if isinstance(tap, str) else tap for tap in taps):
            where = f"taps[{number}]"
            if not given.kind(where, tap, Tap):
                continue
            span = tap.positions
            if span is not None and not (isinstance(span, (tuple, list)) and len(span) == 2):
                given.wrong(where + ".positions", f"{span!r}; (first, last) is needed")
                span = None
            ends = None if span is None else given.wholes(where + ".positions", span)
            name = given.text(where + ".name", tap.name)
            wanted.append(
                (name, given.wholes(where + ".heads", tap.heads), None if ends is None else (ends[0], ends[1]))
            )
        place = given.whole("sequence", sequence)
        given.done()
        self._native = _native.Taps(wanted, place)
        self._results: dict[str, npt.NDArray[np.float32]] | None = None

    def _seen(self) -> dict[str, npt.NDArray[np.float32]]:
        if self._results is None:
            self._results = dict(self._native.results())
        return self._results

    def __getitem__(self, name: str) -> npt.NDArray[np.float32]:
        return self._seen()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._seen())

    def __len__(self) -> int:
        return len(self._seen())

    def __repr__(self) -> str:
        seen = ", ".join(f"{name} {list(array.shape)}" for name, array in self.items())
        return f"<glasshead.Taps {seen or 'of no run'}>"


class HidePairs(NamedTuple):
    """Pairs that self-attention may not read, beside those its mask hides; a row left without a key has out 0."""

    keys: Sequence[int]  # keys at these positions, from 0
    queries: Sequence[
        int
    ] = ()  # by these alone; empty: by all, but for a hidden key's own row, which still reads itself
    layers: Sequence[int] = ()  # empty: all
    heads: Sequence[int] = ()  # empty: all


class ReplaceHead(NamedTuple):
    """A head's out (weights·v, before W_O) is this vector at every position."""

    layer: int
    head: int
    out: Any = None  # [d_v]; None: zeros


def mean_of_head(layer: int, head: int, out: Any) -> ReplaceHead:
    """A head's mean in the place of what it says at each position.

    out: what a tap of its layer's self.out has kept, [heads, tokens, d_v]; sums over tokens are made in float64, in
        order.
    """
    given = Given("mean_of_head")
    place, number = given.whole("layer", layer), given.whole("head", head)
    rows = given.floats("out", out, 3)
    given.done()
    return ReplaceHead(place, number, _native.mean_of_head(place, number, rows))


class Patch(NamedTuple):
    """The rows of a place, from `position` on, are these: what a tap of another run has kept, in the same shape."""

    name: str  # one of Model.tap_names, but for scores, weights, lse and logits
    values: Any
    position: int = 0


Change = HidePairs | ReplaceHead | Patch


def changes_of(changes: Sequence[Change]) -> _native.Changes:
    """As the native session takes them."""
    native, given = _native.Changes(), Given("Session.change")
    for number, change in enumerate(changes):
        where = f"changes[{number}]"
        if isinstance(change, HidePairs):
            lists = [given.wholes(f"{where}.{name}", getattr(change, name)) for name in change._fields]
            native.hide(*lists)
        elif isinstance(change, ReplaceHead):
            out = [] if change.out is None else given.floats(where + ".out", change.out, 1).tolist()
            native.replace(given.whole(where + ".layer", change.layer), given.whole(where + ".head", change.head), out)
        elif isinstance(change, Patch):
            values = given.floats(where + ".values", change.values)
            name = given.text(where + ".name", change.name)
            native.patch(name, values, given.whole(where + ".position", change.position))
        else:
            given.wrong(where, f"a {type(change).__name__}; HidePairs, ReplaceHead or Patch is needed")
    given.done()
    return native
