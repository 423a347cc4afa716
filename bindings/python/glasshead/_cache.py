"""Keys and values that stay while queries come and go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from . import _native, _options
from ._arrays import kind_of
from ._attention import AttendPlan, RowState, _refuse_both, heads_of, plan_of
from ._keywords import named

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import Options


class KvCache:
    """What decoding keeps between steps: the keys and values of some sequences.

    Key n of a sequence keeps position n for good, and a result has the bits of attention over plain arrays with the
    same numbers. Storage is in pages of `page_size` keys (128), shared by forks; or, with `capacity`, one run of
    memory for so many keys; or, with `ring`, the last so many keys, older ones overwritten. Any number of threads
    may use a cache: while one reads, none changes it.
    """

    def __init__(
        self,
        kv_heads: int,
        d_k: int,
        d_v: int | None = None,
        *,
        batch: int = 1,
        dtype: Literal["f64", "f32", "bf16", "f16", "int8"] = "f32",
        page_size: int | None = None,
        capacity: int | None = None,
        ring: int | None = None,
    ) -> None:
        self.d_v = d_k if d_v is None else d_v
        self._native = _native.KvCache(batch, kv_heads, d_k, self.d_v, dtype, page_size, capacity, ring)

    def append(self, key: Any, value: Any, sequence: int | None = None) -> None:
        """Adds keys and values, rounded once to the cache's type: [kv_heads, n, size] to one sequence, or
        [sequences, kv_heads, n, size] to all. Nothing is stored if anything is wrong."""
        self._native.append(sequence, key, value)

    def truncate(self, length: int, sequence: int = 0) -> None:
        """Forgets the keys from position `length` on."""
        self._native.truncate(sequence, length)

    def fork(self, sequence: int = 0) -> int:
        """A new sequence with the same keys, shared until either is appended to; its number."""
        return self._native.fork(sequence)

    def length(self, sequence: int = 0) -> int:
        """The position after the sequence's last key."""
        return self._native.length(sequence)

    def first(self, sequence: int = 0) -> int:
        """The first key still held: 0 but in a ring."""
        return self._native.first(sequence)

    @property
    def sequences(self) -> int:
        """How many sequences there are."""
        return self._native.sequences()

    @property
    def bytes(self) -> int:
        """Of the memory in use; what forks share counts once."""
        return self._native.bytes()

    @named()
    def attend(
        self,
        query: Any,
        *,
        sequences: Sequence[int] | None = None,
        return_lse: bool = False,
        return_rows: bool = False,
        context: _native.Context | None = None,
        **options: Unpack[Options],
    ) -> Any:
        """Attention of query [sequences, heads, q_len, d_k] over the cache: all its sequences, or those named.

        The last query row stands at the sequence's last key unless query_start says otherwise, so is_causal needs no
        `align`. Options and results as those of scaled_dot_product_attention.
        """
        kind, query = kind_of(query, "attend")
        native = _options.build(heads_of(query), **options)
        if return_lse and return_rows:
            _refuse_both("attend")
        rows = query.shape[:-1]
        out = kind.like(query, (*rows, self.d_v))
        lse = kind.state(query, rows) if return_lse or return_rows else None
        largest = kind.state(query, rows) if return_rows else None
        total = kind.state(query, rows) if return_rows else None
        chosen = None if sequences is None else list(sequences)
        self._native.attend(query, out, native, chosen, largest, total, lse, context)
        if return_rows:
            return kind.finish(out), RowState(kind.finish(largest), kind.finish(total), kind.finish(lse))
        if return_lse:
            return kind.finish(out), kind.finish(lse)
        return kind.finish(out)

    @named()
    def plan_attend(
        self,
        query: Any,
        *,
        sequences: Sequence[int] | None = None,
        context: _native.Context | None = None,
        **options: Unpack[Options],
    ) -> AttendPlan:
        """How `attend` would run this call, without running it; refuses what it refuses."""
        native = _options.build(heads_of(kind_of(query, "plan_attend")[1]), **options)
        chosen = None if sequences is None else list(sequences)
        return plan_of(self._native.plan(query, native, chosen, context))

    def __repr__(self) -> str:
        lengths = [self.length(sequence) for sequence in range(self.sequences)]
        return f"<glasshead.KvCache of {self.sequences} sequences, lengths {lengths}, {self.bytes} bytes>"
