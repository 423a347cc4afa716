"""What callers give, as the native module takes it; everything that is not what it should be is told at once."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

import numpy as np

from ._errors import refuse

_LEAST, _MOST = -(2**63), 2**63 - 1


class Given:
    """Values of one call of `function`. What each method gives for a wrong value is of the right type; `done` refuses
    the call then."""

    def __init__(self, function: str) -> None:
        self.function = function
        self.problems: list[tuple[str, str]] = []

    def wrong(self, where: str, what: str) -> None:
        self.problems.append((where, what))

    def done(self) -> None:
        __tracebackhide__ = True
        if self.problems:
            refuse(self.function, *self.problems)

    def whole(self, where: str, value: Any, least: int = _LEAST, most: int = _MOST) -> int:
        """A whole number in [least, most]."""
        number = 0
        if isinstance(value, (bool, np.bool_)) or not hasattr(type(value), "__index__"):
            self.wrong(where, f"{value!r}; a whole number is needed")
        else:
            try:
                number = operator.index(value)
            except TypeError:  # an array of several
                self.wrong(where, f"{value!r}; a whole number is needed")
        if not least <= number <= most:
            self.wrong(where, f"{number}; a whole number from {least} to {most} is needed")
            return max(least, 0)
        return number

    def number(self, where: str, value: Any) -> float:
        try:
            if isinstance(value, (str, bytes, bool)):
                raise TypeError
            return float(value)
        except (TypeError, ValueError, OverflowError):
            self.wrong(where, f"{value!r}; a number is needed")
            return 0.0

    def wholes(self, where: str, values: Any) -> list[int]:
        """Whole numbers: a list, a range, an array of one axis."""
        listed = values.tolist() if hasattr(values, "tolist") else values
        if isinstance(listed, (str, bytes, dict)) or not isinstance(listed, Iterable):
            self.wrong(where, f"{values!r}; a list of whole numbers is needed")
            return []
        found, listed = len(self.problems), list(listed)
        numbers = [n if type(n) is int and _LEAST <= n <= _MOST else self.whole(where, n) for n in listed]
        del self.problems[found + 1 :]  # the first will do
        return numbers

    def text(self, where: str, value: Any) -> str:
        if isinstance(value, str):
            return value
        self.wrong(where, f"{value!r}; a string is needed")
        return ""

    def texts(self, where: str, values: Any) -> list[str]:
        """Strings: one, or a list of them."""
        listed = [values] if isinstance(values, str) else values
        if not isinstance(listed, Iterable) or isinstance(listed, bytes):
            self.wrong(where, f"{values!r}; a string, or a list of them, is needed")
            return []
        listed = list(listed)
        if not all(isinstance(text, str) for text in listed):
            self.wrong(where, f"{values!r}; a string, or a list of them, is needed")
            return []
        return listed

    def floats(self, where: str, values: Any, axes: int | None = None) -> Any:
        """Numbers as an array of float32, without a copy where they are one; of so many axes."""
        try:
            array = np.ascontiguousarray(values, np.float32)
        except (TypeError, ValueError):
            self.wrong(where, f"a {type(values).__name__}; an array of numbers is needed")
            return np.zeros((1,) * (axes or 1), np.float32)
        if axes is not None and array.ndim != axes:
            self.wrong(where, f"has {array.ndim} axes; {axes} are needed")
        return array

    def choice(self, where: str, value: Any, *names: str) -> str:
        if isinstance(value, str) and value in names:
            return value
        self.wrong(where, f"{value!r} is none of {', '.join(names)}")
        return names[0]

    def kind(self, where: str, value: Any, wanted: type) -> bool:
        """Whether it is a `wanted`."""
        if not isinstance(value, wanted):
            self.wrong(where, f"a {type(value).__name__}; a glasshead.{wanted.__name__} is needed")
            return False
        return True
