"""Every head of a model at a glance."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from . import _native
from ._given import Given


class HeadMetrics(NamedTuple):
    """What one head does with a text; w[i, j] is its weight of query i on key j. NaN where no query counts."""

    attention: str  # "decoder.9.self"
    layer: int
    head: int
    first: float  # the mean of w[i, 0]: the attention sink
    previous: float  # of w[i, i-1]
    self: float  # of w[i, i]
    entropy: float  # of each row, in nats
    distance: float  # of sum_j w[i, j] |i - j|, in tokens
    induction: float  # of what lies behind earlier occurrences of token i, over the i that have any


class HeadStudy:
    """Looks at every head while a text is read from its first token on: what each attends to on average, and pictures.

        heads = HeadStudy()
        session.forward(ids, rows="none", heads=heads)
        max(heads.metrics(), key=lambda one: one.previous)

    It goes on while a text is written: session.generate(prompt, heads=heads).

    cell: the pictures have cells of cell x cell pairs; 0: none. keeps_rows: q, k and row states are kept, so that
    `weights` can make any weight, and each row's own numbers for `rows`. sequence: of a batch, which text is looked at
    (its place in the call).
    """

    def __init__(self, *, cell: int = 64, keeps_rows: bool = False, sequence: int = 0) -> None:
        given = Given("HeadStudy")
        size, place = given.whole("cell", cell), given.whole("sequence", sequence)
        given.done()
        self._native = _native.HeadStudy(size, bool(keeps_rows), place)

    def metrics(self) -> list[HeadMetrics]:
        """Of every head that has been seen, in the order of computation."""
        return [HeadMetrics(*one) for one in self._native.metrics()]

    def maps(self) -> dict[str, npt.NDArray[np.float32]]:
        """Of every attention two pictures, "decoder.9.self.mean_map" and ".max_map": [heads, cells, cells]."""
        return dict(self._native.maps())

    def rows(self, attention: str) -> npt.NDArray[np.float64]:
        """What `metrics` is the mean of, query by query: [heads, queries, 6], the numbers as HeadMetrics has them from
        `first` on; NaN where a query does not count. Needs keeps_rows."""
        given = Given("HeadStudy.rows")
        name = given.text("attention", attention)
        given.done()
        return self._native.rows(name)

    def weights(
        self,
        attention: str,
        head: int,
        *,
        queries: tuple[int, int],
        keys: tuple[int, int],
        context: _native.Context | None = None,
    ) -> npt.NDArray[np.float32]:
        """The weights of queries [first, end) on keys [first, end) of one head, to the bit those of a tap. Needs
        keeps_rows."""
        given = Given("HeadStudy.weights")
        name, number = given.text("attention", attention), given.whole("head", head)
        rows, columns = _bounds(given, "queries", queries), _bounds(given, "keys", keys)
        given.done()
        return self._native.weights(name, number, rows, columns, context)

    @property
    def bytes(self) -> int:
        """Of the memory it holds: what is kept, and room for the next run's tiles."""
        return self._native.bytes()

    def __repr__(self) -> str:
        return f"<glasshead.HeadStudy of {len(self._native.metrics())} heads, {self.bytes} bytes>"


def _bounds(given: Given, where: str, bounds: Any) -> tuple[int, int]:
    if isinstance(bounds, (tuple, list)) and len(bounds) == 2:
        return given.whole(where, bounds[0]), given.whole(where, bounds[1])
    given.wrong(where, f"{bounds!r}; (first, end) is needed")
    return 0, 0
