"""Attention in tests: a wrong one fails with its diagnosis.

from glasshead.testing import assert_attention_close

def test_my_attention():
    q, k, v = ...
    assert_attention_close(my_attention(q, k, v), q, k, v, is_causal=True)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._doctor import Rope, diagnose
from ._keywords import named

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import Options


@named()
def assert_attention_close(
    out: Any,
    query: Any,
    key: Any,
    value: Any,
    *,
    weights: Any = None,
    scores: Any = None,
    lse: Any = None,
    dq: Any = None,
    dk: Any = None,
    dv: Any = None,
    d_out: Any = None,
    dtype: Any = None,
    rope: Rope = None,
    **options: Unpack[Options],
) -> None:
    """Raises AssertionError with the diagnosis unless `out`, and whatever else is given, is attention of query, key,
    value under the options, within what rounding can do to these very inputs in the type of the arrays (or `dtype`).

    There is no tolerance to choose. The arguments are those of `glasshead.diagnose`; out may be None where others are
    given.
    """
    __tracebackhide__ = True  # pytest shows the caller's line
    claims = {"out": out, "weights": weights, "scores": scores, "lse": lse, "dq": dq, "dk": dk, "dv": dv}
    diagnosis = diagnose(query, key, value, d_out=d_out, dtype=dtype, rope=rope, **claims, **options)
    if not diagnosis.is_right:
        raise AssertionError(f"not this attention\n{diagnosis}")
