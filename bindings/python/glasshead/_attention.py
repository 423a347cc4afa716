"""Attention over arrays, and its weights when somebody looks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _native, _options
from ._arrays import kind_of
from ._errors import Problem, refuse
from ._keywords import named

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import Options

    Range = int | slice | range | None  # which heads or rows: one, some that follow each other, or all


class RowState(NamedTuple):
    """Each row's softmax, [batch, heads, q_len]: any weight can be made again from it."""

    max: Any  # the largest score
    sum: Any  # the sum of exp(score - max)
    lse: Any  # max + ln(sum)


def heads_of(query: Any) -> int:
    """How many heads a query has."""
    return query.shape[-3] if len(query.shape) > 2 else 1


def _refuse_both(function: str) -> None:
    refuse(function, ("return_lse", "return_rows has lse with it; one of them is enough"))


@named()
def scaled_dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    mask: Any = None,
    where: Any = None,
    window: tuple[int | None, int | None] | None = None,
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
    return_lse: bool = False,
    return_rows: bool = False,
    context: _native.Context | None = None,
) -> Any:
    """Exact attention: softmax(scale * query key^T) value, row by row, without a matrix of scores.

    query [batch, heads, q_len, d_k], key [batch, kv_heads, kv_len, d_k], value [batch, kv_heads, kv_len, d_v]; leading
    axes may be left out. float64, float32, bfloat16 or float16, any strides, nothing is copied. The result is of the
    query's kind (NumPy, PyTorch, JAX) and type. Positional arguments mean what they mean in PyTorch, but that
    is_causal over unequal lengths needs `align` or `query_start`, since there are two ways to read it, and dropout_p
    a dropout_seed. `glasshead.Options` says what the keywords mean; masks intersect, biases add up.

    return_lse: (out, lse). return_rows: (out, RowState). Raises glasshead.Error with everything that is wrong.
    """
    kind, query = kind_of(query, "attend")
    is_plain = (
        attn_mask is None
        and not is_causal
        and scale is None
        and not dropout_p
        and mask is None
        and where is None
        and window is None
        and key_lengths is None
        and segments is None
        and prefix is None
        and query_start is None
        and align is None
        and not softcap
        and bias is None
        and alibi is None
        and t5 is None
        and sinks is None
        and empty_row == "zero"
        and alibi_form == "distance"
    )
    options = None
    if not is_plain:
        options = _options.build(
            heads_of(query),
            where and _options.pairs_of(query, key),
            attn_mask=attn_mask,
            dropout_p=dropout_p,
            is_causal=is_causal,
            scale=scale,
            mask=mask,
            where=where,
            window=window,
            key_lengths=key_lengths,
            segments=segments,
            prefix=prefix,
            query_start=query_start,
            align=align,
            softcap=softcap,
            bias=bias,
            alibi=alibi,
            alibi_form=alibi_form,
            t5=t5,
            sinks=sinks,
            empty_row=empty_row,
            dropout_seed=dropout_seed,
        )
    rows = query.shape[:-1]
    out = kind.like(query, (*rows, *getattr(value, "shape", ())[-1:]))
    largest = total = lse = None
    if return_lse or return_rows:
        if return_lse and return_rows:
            _refuse_both("attend")
        lse = kind.state(query, rows)
        if return_rows:
            largest, total = kind.state(query, rows), kind.state(query, rows)
    _native.attend(query, key, value, out, options, largest, total, lse, context, enable_gqa)
    if return_rows:
        return kind.finish(out), RowState(kind.finish(largest), kind.finish(total), kind.finish(lse))
    if return_lse:
        return kind.finish(out), kind.finish(lse)
    return kind.finish(out)


@named()
def check(query: Any, key: Any, value: Any, enable_gqa: bool = False, **options: Unpack[Options]) -> list[Problem]:
    """Everything that is wrong with a call; empty: it will run. No number of query, key or value is read."""
    query = kind_of(query, "check")[1]
    native = _options.build(heads_of(query), _options.pairs_of(query, key), **options)
    return [Problem(*problem) for problem in _native.check(query, key, value, native, enable_gqa)]


class Tiles(NamedTuple):
    """A tile is one panel of query rows against one block of 128 keys: how many there are of each kind."""

    none: int  # no allowed pair: skipped
    all: int  # every pair allowed: no mask is made
    some: int  # a bit for each pair


class AttendPlan(NamedTuple):
    """How a call is run: which kernels and why, how the work is cut, what is skipped, how much memory it takes."""

    isa: str
    why_isa: str
    compute: str  # "f64" or "f32"
    form: str  # "panel": query rows stand in the vector lanes; "rows": keys do, where there are few query rows
    why_form: str
    rows_per_panel: int
    panels_per_item: int  # at most
    row_blocks: int
    nodes: int  # runs of keys that a row block is cut into, for more threads
    keys_per_node: int  # 0: an item walks all its keys
    items: int  # row_blocks * nodes: what threads take from the queue
    threads: int  # those that get an item
    tiles: Tiles
    scratch_bytes: int  # beside inputs and results, over all threads


def plan_of(facts: Mapping[str, Any]) -> AttendPlan:
    """The plan that the native module tells."""
    tiles = Tiles(*(facts[f"tiles_{kind}"] for kind in Tiles._fields))
    members: list[Any] = [tiles if name == "tiles" else facts[name] for name in AttendPlan._fields]
    return AttendPlan(*members)


@named()
def plan_attend(
    query: Any,
    key: Any,
    value: Any,
    enable_gqa: bool = False,
    *,
    context: _native.Context | None = None,
    **options: Unpack[Options],
) -> AttendPlan:
    """How scaled_dot_product_attention would run this call, without running it; refuses what it refuses."""
    query = kind_of(query, "plan_attend")[1]
    native = _options.build(heads_of(query), _options.pairs_of(query, key), **options)
    return plan_of(_native.plan_attend(query, key, value, native, context, enable_gqa))


def _bounds(chosen: Range, count: int, where: str, function: str) -> tuple[int, int]:
    if chosen is None:
        return 0, count
    if isinstance(chosen, slice):
        begin, end, step = chosen.indices(count)
        if step == 1:
            return begin, max(begin, end)
    elif isinstance(chosen, range):
        if chosen.step == 1:
            return chosen.start, max(chosen.start, chosen.stop)
    elif isinstance(chosen, int) and not isinstance(chosen, bool):
        begin = chosen + count if chosen < 0 else chosen
        return begin, begin + 1
    refuse(function, (where, f"{chosen!r}; a number, or a slice or range with step 1"))


def _weights_call(function: str, query: Any, key: Any, options: Any, heads: Range, rows: Range) -> tuple[Any, ...]:
    kind, query = kind_of(query, function)
    native = _options.build(heads_of(query), _options.pairs_of(query, key), **options)
    h = _bounds(heads, heads_of(query), "heads", function)
    i = _bounds(rows, query.shape[-2] if len(query.shape) > 1 else 1, "rows", function)
    batch = tuple(query.shape[:-3])
    shape = (*batch, h[1] - h[0], i[1] - i[0]) if len(query.shape) > 2 else (i[1] - i[0],)
    return kind, query, native, h, i, shape


@named()
def attention_weights(
    query: Any,
    key: Any,
    *,
    heads: Range = None,
    rows: Range = None,
    state: RowState | None = None,
    context: _native.Context | None = None,
    **options: Unpack[Options],
) -> Any:
    """Weights of some rows of some heads, [batch, heads, rows, kv_len], made when asked for; 0 exactly where hidden.

    heads, rows: a number, a slice or range, or None for all; the axes stay. state: what scaled_dot_product_attention
    returned with return_rows=True for the same call; without it it is computed first. Weights are before dropout.
    """
    kind, query, native, h, i, shape = _weights_call("attention_weights", query, key, options, heads, rows)
    weights = kind.state(query, (*shape, *getattr(key, "shape", (0, 0))[-2:-1]))
    largest, total = (state.max, state.sum) if state is not None else (None, None)
    _native.attention_weights(query, key, native, largest, total, h, i, weights, context)
    return kind.finish(weights)


@named()
def top_weights(
    query: Any,
    key: Any,
    count: int,
    *,
    heads: Range = None,
    rows: Range = None,
    state: RowState | None = None,
    context: _native.Context | None = None,
    **options: Unpack[Options],
) -> tuple[Any, Any]:
    """(keys, weights) of the `count` largest weights of each row, largest first: both [batch, heads, rows, count].

    Where a row has fewer allowed keys the rest is key -1, weight 0. Else as attention_weights.
    """
    kind, query, native, h, i, shape = _weights_call("top_weights", query, key, options, heads, rows)
    keys, weights = kind.keys((*shape, count)), kind.state(query, (*shape, count))
    largest, total = (state.max, state.sum) if state is not None else (None, None)
    _native.top_weights(query, key, native, largest, total, h, i, keys, weights, context)
    return kind.finish(keys), kind.finish(weights)


@named()
def weight_maps(
    query: Any,
    key: Any,
    *,
    cell_rows: int = 64,
    cell_keys: int = 64,
    state: RowState | None = None,
    context: _native.Context | None = None,
    **options: Unpack[Options],
) -> tuple[Any, Any]:
    """(mean, max) of the weights in cells of cell_rows x cell_keys pairs: each head as a picture.

    Both are [batch, heads, ceil(q_len / cell_rows), ceil(kv_len / cell_keys)]; hidden pairs count as the 0 they are.
    """
    kind, query, native, _, _, _ = _weights_call("weight_maps", query, key, options, None, None)
    if cell_rows < 1 or cell_keys < 1:
        refuse("weight_maps", ("cell_rows, cell_keys", f"{cell_rows}, {cell_keys}; both are at least 1"))
    q_len = query.shape[-2] if len(query.shape) > 1 else 1
    kv_len = key.shape[-2] if len(key.shape) > 1 else 1
    shape = (*query.shape[:-2], -(-q_len // cell_rows), -(-kv_len // cell_keys))
    mean, largest = kind.state(query, shape), kind.state(query, shape)
    row_max, row_sum = (state.max, state.sum) if state is not None else (None, None)
    _native.weight_maps(query, key, native, row_max, row_sum, cell_rows, cell_keys, mean, largest, context)
    return kind.finish(mean), kind.finish(largest)
