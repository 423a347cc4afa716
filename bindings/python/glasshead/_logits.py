"""What a row of logits says."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from . import _native
from ._given import Given
from ._keywords import named
from ._tokenizer import Tokenizer


class TokenProbability(NamedTuple):
    """A token as a row of logits sees it."""

    id: int
    logit: float
    probability: float
    token: str | None = None  # as the vocabulary spells it, where one was given


def sampling_of(
    given: Given, temperature: Any, top_k: Any, top_p: Any, min_p: Any, repetition_penalty: Any, seed: Any
) -> _native.Sampling:
    """How the next token is chosen; what is out of range is told by the call that gets it."""
    return _native.Sampling(
        given.number("temperature", temperature),
        given.whole("top_k", top_k),
        given.number("top_p", top_p),
        given.number("min_p", min_p),
        given.number("repetition_penalty", repetition_penalty),
        given.whole("seed", seed, 0, 2**64 - 1),
    )


@named()
def most_probable(logits: Any, count: int = 10, *, tokenizer: Tokenizer | None = None) -> list[TokenProbability]:
    """The `count` most probable tokens of logits [vocab], best first; of equal ones the lower id first."""
    given = Given("most_probable")
    row, most = given.floats("logits", logits, 1), given.whole("count", count)
    given.done()
    spelled = (lambda _: None) if tokenizer is None else tokenizer.token
    return [TokenProbability(*one, spelled(one[0])) for one in _native.most_probable(row, most)]


def kl_divergence(before: Any, after: Any) -> float:
    """How far the next token's probabilities moved, in nats: the sum of p (ln p - ln q) over tokens, p those of the
    logits `before` [vocab], q those of `after`."""
    given = Given("kl_divergence")
    rows = given.floats("before", before, 1), given.floats("after", after, 1)
    given.done()
    return _native.kl_divergence(*rows)


@named()
def sample(
    logits: Any,
    *,
    temperature: float = 0.0,
    top_k: int = 0,
    top_p: float = 1.0,
    min_p: float = 0.0,
    repetition_penalty: float = 1.0,
    seed: int = 0,
    text: Iterable[int] = (),
    draw: int = 0,
) -> int:
    """The next token of logits [vocab], chosen as Session.generate does. text: all ids so far, for the penalty; draw:
    the number of this choice."""
    given = Given("sample")
    row = given.floats("logits", logits, 1)
    sampling = sampling_of(given, temperature, top_k, top_p, min_p, repetition_penalty, seed)
    ids, number = given.wholes("text", text), given.whole("draw", draw, 0, 2**64 - 1)
    given.done()
    return _native.sample(row, sampling, ids, number)
