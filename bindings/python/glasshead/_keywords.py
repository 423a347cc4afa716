"""Keywords that a function does not know are refused in its own name, with the one that was meant."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from . import _options

F = TypeVar("F", bound=Callable[..., Any])

# What a keyword is called here that is called otherwise elsewhere, where the names alone do not tell.
_CALLED = {
    "attention_mask": "attn_mask",
    "padding_mask": "mask",
    "rotary": "rope",
    "sliding_window": "window",
    "local_window_size": "window",
    "logits_soft_cap": "softcap",
    "attn_bias": "bias",
    "position_bias": "bias",
    "seed": "dropout_seed",
    "past_len": "query_start",
    "s_aux": "sinks",
}
_GROUPED = "key/value heads that several query heads share are read from the shapes"


def _unknown(function: str, keyword: str, known: Sequence[str]) -> str:
    text = f"{function}() got an unexpected keyword argument {keyword!r}"
    if keyword in ("enable_gqa", "kv_heads", "num_heads"):
        return f"{text}: {_GROUPED}"
    meant = [name for name in known if name == _CALLED.get(keyword)]
    nearest = meant or difflib.get_close_matches(keyword, known, n=1)
    if nearest:
        return f"{text}. Did you mean {nearest[0]!r}?"
    return f"{text}; there are {', '.join(known)}"


def named(**defaults: Any) -> Callable[[F], F]:
    """Makes a function refuse keywords that it does not have; its signature shows each of Options where it takes them.

    defaults: of options, where they are not those of every call.
    """

    def made(fn: F) -> F:
        signature = inspect.signature(fn)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        names = {p.name for p in own}
        if len(own) < len(signature.parameters):
            built = inspect.signature(_options.build).parameters
            for name, kind in _options.Options.__annotations__.items():
                if name not in names:
                    default = defaults.get(name, built[name].default)
                    own.append(inspect.Parameter(name, built[name].kind, default=default, annotation=kind))
        known = [p.name for p in own if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and p.name != "self"]
        accepts = frozenset(known).issuperset

        @functools.wraps(fn)
        def call(*args: Any, **given: Any) -> Any:
            __tracebackhide__ = True  # pytest shows the caller's line
            if not accepts(given):
                keyword = next(name for name in given if name not in known)
                raise TypeError(_unknown(fn.__qualname__, keyword, known))
            return fn(*args, **given)

        call.__signature__ = signature.replace(parameters=own)  # type: ignore[attr-defined]
        return cast(F, call)

    return made
