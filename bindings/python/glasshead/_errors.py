"""The library's refusals as exceptions. Every one carries all that was wrong."""

from __future__ import annotations

from typing import NamedTuple, NoReturn


class Problem(NamedTuple):
    """One thing that is wrong: where (an argument), and what was found and would be right."""

    where: str
    what: str


class Error(ValueError):
    """A call that was refused; its text has a line for each of `problems`."""

    function: str = ""
    problems: tuple[Problem, ...] = ()


class ShapeError(Error):
    """Sizes that do not fit together."""


class OptionError(Error):
    """A value outside its range, or options that contradict each other."""


class FormatError(Error):
    """A file or case that does not mean what it should."""


class IoError(Error, OSError):
    """A file that cannot be opened, read or written."""


_CLASSES = {kind.__name__: kind for kind in (ShapeError, OptionError, FormatError, IoError)}
for _kind in (Problem, Error, *_CLASSES.values()):
    _kind.__module__ = "glasshead"  # as callers know them, in tracebacks


def made(kind: str, text: str, function: str, problems: list[tuple[str, str]]) -> Error:
    """The exception for one of the library's errors."""
    spelled = function.replace("::", ".")  # Session.forward
    text, function = text.replace(function, spelled), spelled
    error = _CLASSES[kind](text)
    error.function = function
    error.problems = tuple(Problem(*problem) for problem in problems)
    return error


def refuse(function: str, *problems: tuple[str, str]) -> NoReturn:
    """Raises OptionError, worded as the library does it."""
    text = "\n".join(f"{function}: {where}: {what}" for where, what in problems)
    raise made("OptionError", text, function, list(problems))
