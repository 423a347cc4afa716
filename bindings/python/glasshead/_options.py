"""The options of attention, from keywords to the native form."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict

import numpy as np

from . import _native

if TYPE_CHECKING:
    Integers = int | Sequence[Any] | Any  # a number, a list, or an array of whole numbers


class T5(NamedTuple):
    """T5's relative position bias: table[bucket(key - query), head] is added to the score."""

    table: Any  # [buckets, heads]
    is_bidirectional: bool = True  # an encoder's: half of the buckets for keys after the query
    max_distance: int = 128  # beyond it all distances share the last bucket


class Options(TypedDict, total=False):
    """What every call of attention takes by keyword.

    Masks say who may attend to whom, and intersect; biases are numbers, and add up.
    """

    attn_mask: Any  # PyTorch's: bool (True takes part) or floating (added); broadcast to [batch, heads, q_len, kv_len]
    dropout_p: float  # weights dropped after softmax; needs dropout_seed
    is_causal: bool  # key j <= the query's position
    scale: float | None  # None: 1 / sqrt(d_k)
    mask: Any  # booleans, True may attend; broadcast as attn_mask
    where: Callable[[Any, Any, Any, Any], Any]  # may attend, asked with whole-number arrays: see `allowed_where`
    window: tuple[int | None, int | None]  # earlier and later keys beside the query's own position; None: no limit
    key_lengths: Integers  # of each batch entry, or one for all
    segments: Any  # ids of packed documents, [length] or [batch, length]; a tuple (of queries, of keys) if they differ
    prefix: Integers  # so many first keys are seen by every query, the others causally
    query_start: int  # position of query row 0, where the lengths differ
    align: Literal["start", "end"]  # the same in words: row 0 at key 0, or the last row at the last key
    softcap: float  # scores become softcap * tanh(score / softcap); 0: off
    bias: Any  # an array, or a list of them, added to the scores; -inf hides
    alibi: Any  # True for the paper's slopes, or one slope per head
    alibi_form: Literal["distance", "key_index"]
    t5: T5
    sinks: Any  # one score per head that joins each row's sum and has no value
    empty_row: Literal["zero", "error"]  # a row with no allowed key: zeros, or an error that names it
    dropout_seed: int  # what is dropped depends on it alone


def _listed(value: Any) -> Any:
    tolist = getattr(value, "tolist", None)
    return tolist() if tolist is not None else value


def _flat(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [number for part in value for number in _flat(part)]
    return [value]


def _integers(native: _native.Options, value: Any, where: str) -> list[int]:
    numbers = _flat(_listed(value))
    try:
        if any(isinstance(number, bool) for number in numbers):
            raise TypeError
        whole = [operator.index(number) for number in numbers]
    except TypeError:
        native.problem(where, f"{value!r} is not made of whole numbers")
        return [0]
    if all(-(2**63) <= number < 2**63 for number in whole):
        return whole
    native.problem(where, f"{value!r} is beyond 64 bits")
    return [0]


def _integer(native: _native.Options, value: Any, where: str) -> int:
    numbers = _integers(native, value, where)
    if len(numbers) != 1:
        native.problem(where, f"{value!r} is not one whole number")
    return numbers[0] if numbers else 0


def _number(native: _native.Options, value: Any, where: str) -> float:
    numbers = _floats(native, value, where)
    if len(numbers) != 1:
        native.problem(where, f"{value!r} is not one number")
    return numbers[0] if numbers else 0.0


def _is_on(value: Any) -> bool:
    """Whether it is anything but 0 or None, which turn an option off."""
    try:
        return value is not None and float(value) != 0
    except (TypeError, ValueError):
        return True


def _floats(native: _native.Options, value: Any, where: str) -> list[float]:
    if getattr(value, "requires_grad", False):
        native.problem(where, "requires a gradient, which is not computed for it; give it detached")
        value = value.detach()
    try:
        return [float(number) for number in _flat(_listed(value))]
    except (TypeError, ValueError):
        native.problem(where, f"{value!r} is not made of numbers")
        return [0.0]


def _add_segments(native: _native.Options, segments: Any) -> None:
    queries, keys = segments if isinstance(segments, tuple) and len(segments) == 2 else (segments, segments)
    queries, keys = _listed(queries), _listed(keys)
    has_batch = isinstance(queries, (list, tuple)) and bool(queries) and isinstance(queries[0], (list, tuple))
    native.segments(
        len(queries) if has_batch else 1,
        _integers(native, queries, "segments"),
        _integers(native, keys, "segments"),
    )


_PAIRS_AT_ONCE = 1 << 24


def allowed_where(
    function: Callable[[Any, Any, Any, Any], Any], batch: int, heads: int, q_len: int, kv_len: int, query_start: int = 0
) -> Any:
    """The mask that a rule gives: function(b, h, position, key) -> bool, of arrays of whole numbers that broadcast to
    [batch, heads, q_len, kv_len], as `lambda b, h, i, j: (i - j) % 64 == 0`. Positions count from query_start.

    Axes that the function does not look at stay 1. What `where=function` asks at every call: keep it as `mask`.
    """
    b, h = np.arange(batch).reshape(-1, 1, 1, 1), np.arange(heads).reshape(1, -1, 1, 1)
    j = np.arange(kv_len).reshape(1, 1, 1, -1)
    rows = max(1, _PAIRS_AT_ONCE // max(1, batch * heads * kv_len))
    parts = []
    for first in range(0, max(q_len, 1), rows):
        i = np.arange(query_start + first, query_start + min(first + rows, q_len)).reshape(1, 1, -1, 1)
        part = np.asarray(function(b, h, i, j))
        if part.dtype != np.bool_:
            raise TypeError(f"a rule answers with booleans; this one's answer has dtype {part.dtype}")
        part = part.reshape((1,) * (4 - part.ndim) + part.shape)
        if part.shape[2] == 1 and q_len > 1 and rows < q_len:
            part = np.broadcast_to(part, (*part.shape[:2], i.shape[2], part.shape[3]))
        parts.append(part)
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=2)


def _add_where(
    native: _native.Options, function: Any, pairs: tuple[int, int, int, int] | None, query_start: Any, align: str | None
) -> None:
    if pairs is None:
        native.problem("where", "is asked for the pairs of one call, and a cache has no fixed number; give a mask")
        return
    q_len, kv_len = pairs[2:]
    start = kv_len - q_len if align == "end" else 0
    if query_start is not None:
        start = _integer(native, query_start, "query_start")
    elif align is None and q_len != kv_len:
        native.problem("where", f"speaks of positions; q_len is {q_len}, kv_len {kv_len}: state align or query_start")
        return
    native.mask(allowed_where(function, *pairs, query_start=start), "where")


def _add_masks(
    native: _native.Options, is_causal: bool, mask: Any, window: Any, key_lengths: Any, segments: Any, prefix: Any
) -> None:
    if is_causal:
        native.causal()
    if mask is not None:
        native.mask(mask, "mask")
    if window is not None:
        sides = _listed(window)
        if isinstance(sides, (list, tuple)) and len(sides) == 2:
            native.window(*(None if side is None else _integer(native, side, "window") for side in sides))
        else:
            native.problem("window", f"{window!r}; (left, right), each a number of keys or None for no limit")
    if key_lengths is not None:
        native.key_lengths(_integers(native, key_lengths, "key_lengths"))
    if segments is not None:
        _add_segments(native, segments)
    if prefix is not None:
        native.prefix(_integers(native, prefix, "prefix"))


def _add_biases(native: _native.Options, heads: int, bias: Any, alibi: Any, alibi_form: str, t5: Any) -> None:
    if bias is not None:
        for number, term in enumerate(bias if isinstance(bias, (list, tuple)) else [bias]):
            native.bias(term, f"bias[{number}]" if isinstance(bias, (list, tuple)) else "bias")
    if alibi_form not in ("distance", "key_index"):
        native.problem("alibi_form", f"{alibi_form!r} is neither 'distance' nor 'key_index'")
    if alibi is not None and alibi is not False:
        slopes = _native.alibi_slopes(heads) if alibi is True else _floats(native, alibi, "alibi")
        native.alibi(slopes, alibi_form == "key_index")
    if t5 is not None:
        t5 = t5 if isinstance(t5, T5) else T5(t5)
        rows = _listed(t5.table)
        numbers = _floats(native, t5.table, "t5")
        distance = _integer(native, t5.max_distance, "t5")
        buckets = len(rows) if isinstance(rows, (list, tuple)) else 0
        if buckets == 0 or not numbers or len(numbers) % buckets != 0:
            native.problem("t5", "the table has a row for each bucket, and in it a number for each head")
        else:
            native.t5(buckets, len(numbers) // buckets, numbers, bool(t5.is_bidirectional), distance)


def _add_position(native: _native.Options, query_start: int | None, align: str | None) -> None:
    if query_start is not None and align is not None:
        native.problem("align", "contradicts query_start; one of them says where query row 0 stands")
    if query_start is not None:
        native.query_start(_integer(native, query_start, "query_start"))
    elif align in ("start", "end"):
        native.align(align == "end")
    elif align is not None:
        native.problem("align", f"{align!r} is neither 'start' nor 'end'")


def _seed(native: _native.Options, value: Any) -> int:
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool) and 0 <= value < 2**64:
        return int(value)
    if value is None:
        native.problem("dropout_seed", "missing; dropout_p needs it, a whole number that decides what is dropped")
    else:
        native.problem("dropout_seed", f"{value!r}; 0 to 2^64 - 1 are possible")
    return 0


def pairs_of(query: Any, key: Any) -> tuple[int, int, int, int]:
    """[batch, heads, q_len, kv_len] of a call; of what is no array nothing is asked."""
    q, k = (tuple(getattr(x, "shape", ())) for x in (query, key))
    q, k = (1,) * (4 - len(q)) + q, (1,) * (4 - len(k)) + k
    return q[0], q[1], q[-2], k[-2]


def build(
    heads: int,
    pairs: tuple[int, int, int, int] | None = None,
    *,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    mask: Any = None,
    where: Any = None,
    window: Any = None,
    key_lengths: Any = None,
    segments: Any = None,
    prefix: Any = None,
    query_start: int | None = None,
    align: str | None = None,
    softcap: float = 0.0,
    bias: Any = None,
    alibi: Any = None,
    alibi_form: str = "distance",
    t5: Any = None,
    sinks: Any = None,
    empty_row: str = "zero",
    dropout_seed: int | None = None,
) -> _native.Options:
    """The native options; what is wrong with them is told by the call that gets them.

    pairs: sizes of the call, [batch, heads, q_len, kv_len], which `where` needs.
    """
    native = _native.Options()
    if attn_mask is not None:
        native.attn_mask(attn_mask)  # first, so that its bias is term 0
    _add_masks(native, is_causal, mask, window, key_lengths, segments, prefix)
    if where is not None:
        _add_where(native, where, pairs, query_start, align)
    _add_biases(native, heads, bias, alibi, alibi_form, t5)
    _add_position(native, query_start, align)
    if scale is not None:
        native.scale(_number(native, scale, "scale"))
    if _is_on(softcap):
        native.softcap(_number(native, softcap, "softcap"))
    if sinks is not None:
        native.sinks(_floats(native, sinks, "sinks"))
    if empty_row not in ("zero", "error"):
        native.problem("empty_row", f"{empty_row!r} is neither 'zero' nor 'error'")
    native.empty_row(empty_row == "error")
    if _is_on(dropout_p):
        native.dropout(_number(native, dropout_p, "dropout_p"), _seed(native, dropout_seed))
    return native
