"""A report card for any attention: inputs that implementations get wrong, and what the doctor says of the answers.

A function runs in a process of its own, so that a crash or a hang is a row of the report. What it is called with is
decided by its keywords.
"""

from __future__ import annotations

import contextlib
import faulthandler
import inspect
import json
import os
import pickle
import re
import signal
import socket
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import Any

import numpy as np

from . import _native
from ._arrays import TYPES
from ._errors import refuse
from ._keywords import named

# What a keyword is called elsewhere. `attn_mask` takes booleans and numbers, `is_causal` is the top left corner.
_NAMES = {
    "mask": ("mask", "attn_mask"),
    "bias": ("bias", "attn_bias", "attn_mask"),
    "causal": ("causal", "is_causal"),
    "window": ("window", "local_window_size"),
    "key_lengths": ("key_lengths",),
    "scale": ("scale",),
    "softcap": ("softcap",),
    "threads": ("threads",),
}
_FEATURES = {
    "mask": ("mask",),
    "bias": ("bias",),
    "window": ("window",),
    "key_lengths": ("key-lengths",),
    "scale": ("scale",),
    "softcap": ("softcap",),
    "threads": ("threads",),
}
_UNNAMED = ("grouped-heads", "other-d-v", "f64", "bf16", "f16", "strides")  # no keyword says whether it takes these
_FIRST_ANSWER = 60.0  # seconds more for a process that has just started: it loads a library


@dataclass(frozen=True)
class AuditRow:
    """One input and what became of it."""

    group: str
    input: str
    what: str  #: shapes, types and options
    verdict: str  #: right, varies, wrong, refuses, crashes, hangs or not offered
    text: str = ""  #: where it is wrong, their error, or what is not offered
    mistakes: tuple[str, ...] = ()  #: that give their numbers
    ulps: float = 0.0  #: largest error against float64, in units of the last place
    plain_ulps: float = 0.0  #: the same of plain attention in that type
    file: str = ""  #: the input on disk
    command: str = ""  #: the doctor's command for it


@dataclass(frozen=True)
class AuditReport:
    """The rows, and the table that `print` shows."""

    subject: str
    takes: tuple[str, ...]
    rows: tuple[AuditRow, ...]
    text: str = field(repr=False)
    json: str = field(repr=False)

    def count(self, verdict: str) -> int:
        """How many rows have this verdict."""
        return sum(row.verdict == verdict for row in self.rows)

    @property
    def has_faults(self) -> bool:
        """Whether a row is wrong, crashes or hangs."""
        return any(row.verdict in ("wrong", "crashes", "hangs") for row in self.rows)

    def __str__(self) -> str:
        return self.text


def _report(native: Any) -> AuditReport:
    text = native.json()
    read = json.loads(text)
    rows = tuple(AuditRow(**{**row, "mistakes": tuple(row["mistakes"])}) for row in read["rows"])
    return AuditReport(read["subject"], tuple(read["takes"]), rows, native.text(), text)


# ---- how the function is called


def keywords_of(fn: Callable[..., Any]) -> set[str] | None:
    """The names that the function takes beyond three; None: any."""
    try:
        parameters = list(inspect.signature(fn).parameters.values())
    except (TypeError, ValueError):  # a function of C: the first line of its text shows them
        head = (getattr(fn, "__doc__", None) or "").strip().partition(") ->")[0]
        return set(re.findall(r"(\w+)\s*=", head))
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return None
    return {p.name for p in parameters[3:] if p.kind is not p.VAR_POSITIONAL}


def _plan(fn: Callable[..., Any], names: Mapping[str, str] | None) -> dict[str, str]:
    """For each of our options the function's keyword."""
    taken = keywords_of(fn)
    plan = {}
    for ours, theirs in _NAMES.items():
        for name in theirs if taken is not None else theirs[:1]:
            if taken is None or name in taken:
                plan[ours] = name
                break
    if taken is not None and "enable_gqa" in taken:
        plan["enable_gqa"] = "enable_gqa"
    return {**plan, **(names or {})}


def _takes_corner(plan: Mapping[str, str]) -> bool:
    """Whether its keyword says which corner; any other means one of them by True."""
    return plan["causal"] == "causal"


def _takes(plan: Mapping[str, str], corner: str | None, arrays: str) -> list[str]:
    takes = [feature for ours in plan for feature in _FEATURES.get(ours, ())]
    if "causal" in plan:
        corners = (corner,) if corner else ("start", "end") if _takes_corner(plan) else ("start",)
        takes += [f"causal-{name}" for name in corners]
    takes += _UNNAMED
    if arrays == "numpy":
        try:
            import ml_dtypes  # noqa: F401
        except ImportError:
            takes.remove("bf16")
    return takes


def _words(given: str | Iterable[str]) -> list[str]:
    words = [word.strip() for word in (given.split(",") if isinstance(given, str) else given)]
    return [word for word in words if word]


class _NotOffered(Exception):
    """These arrays can't be made for this library."""


def _array(memory: tuple[bytes, str, tuple[int, ...], tuple[int, ...], int], arrays: str) -> Any:
    data, dtype, shape, strides, offset = memory
    if dtype == "bf16":
        if arrays == "torch":
            import torch

            if any(step < 0 for step in strides):
                raise _NotOffered("a tensor has no negative strides")
            raw = np.ndarray(shape, np.int16, bytearray(data) or bytearray(2), offset, strides)
            return torch.from_numpy(raw).view(torch.bfloat16)
        import ml_dtypes

        kind: Any = ml_dtypes.bfloat16
    else:
        kind = TYPES[dtype]
    # An array of no elements needs room all the same.
    array = np.ndarray(shape, kind, bytearray(data) or bytearray(8), offset, strides)
    if arrays == "torch":
        import torch

        if any(step < 0 for step in strides):
            raise _NotOffered("a tensor has no negative strides")
        return torch.from_numpy(array)
    if arrays == "jax":
        import jax.numpy

        with warnings.catch_warnings():  # that it cuts the type is said by the row
            warnings.simplefilter("ignore")
            made = jax.numpy.asarray(array)
        if made.dtype != array.dtype:
            raise _NotOffered(f"JAX makes {made.dtype} of {array.dtype}")
        return made
    return array


def _bytes_of(out: Any) -> tuple[str, tuple[int, ...], bytes]:
    """An answer of any library: dtype, shape, bytes."""
    if type(out).__module__.partition(".")[0] == "torch":
        import torch

        out = out.detach().cpu().contiguous()
        if out.dtype == torch.bfloat16:
            return "bf16", tuple(out.shape), out.view(torch.int16).numpy().tobytes()
        out = out.numpy()
    out = np.asarray(out)
    ours = next((ours for ours, theirs in TYPES.items() if out.dtype.name == theirs), None)
    if ours is None:
        raise TypeError(f"the result has dtype {out.dtype}")
    if not out.dtype.isnative:
        out = out.astype(out.dtype.newbyteorder("="))
    return ours, out.shape, np.ascontiguousarray(out).tobytes()


def _answer(fn: Callable[..., Any], call: Mapping[str, Any], plan: Mapping[str, str], arrays: str) -> tuple[Any, ...]:
    """("out", dtype, shape, bytes), ("refused", text) or ("not_offered", text)."""
    try:
        tensors = [_array(call[name], arrays) for name in "qkv"]
        keywords: dict[str, Any] = {}
        for ours in ("mask", "bias"):
            if call[ours] is not None:
                keywords[plan[ours]] = _array(call[ours], arrays)
        if call["causal"] is not None:
            keywords[plan["causal"]] = call["causal"] if _takes_corner(plan) else True
        for ours in ("window", "key_lengths", "scale"):
            if call[ours] is not None:
                keywords[plan[ours]] = call[ours]
        for ours in ("softcap", "threads"):
            if call[ours]:
                keywords[plan[ours]] = call[ours]
        if "enable_gqa" in plan and call["q"][2][1] != call["k"][2][1]:
            keywords[plan["enable_gqa"]] = True
    except _NotOffered as reason:
        return "not_offered", str(reason)
    try:
        out = fn(*tensors, **keywords)
        if isinstance(out, (tuple, list)):  # out and what comes beside it
            out = out[0]
        return "out", *_bytes_of(out)
    except Exception as error:  # their refusal, whatever it is
        return "refused", f"{type(error).__name__}: {error}"


# ---- a process of its own


def _serve(connection: Connection, fn: Callable[..., Any], plan: Mapping[str, str], arrays: str) -> None:
    connection.send("ready")
    while (call := connection.recv()) is not None:
        connection.send(_answer(fn, call, plan, arrays))


def _serve_new(descriptor: int) -> None:
    """The life of a new interpreter: the function comes first."""
    connection = Connection(descriptor)
    for entry in connection.recv():
        if entry not in sys.path:
            sys.path.append(entry)
    fn, plan, arrays = pickle.loads(connection.recv_bytes())
    _serve(connection, fn, plan, arrays)


def _can_be_sent(fn: Callable[..., Any]) -> bool:
    """Whether another interpreter finds it by importing its module."""
    if getattr(fn, "__module__", None) == "__main__":
        return False
    try:
        pickle.dumps(fn)
    except Exception:  # pickle raises what it likes
        return False
    return True


class _Child:
    """A process that calls the function; another one after it has ended."""

    def __init__(self, fn: Callable[..., Any], plan: Mapping[str, str], arrays: str, timeout: float) -> None:
        self.fn, self.plan, self.arrays, self.timeout = fn, dict(plan), arrays, timeout
        self.is_new = _can_be_sent(fn)
        self.pid = 0
        self.has_answered = False
        self.popen: subprocess.Popen[bytes] | None = None
        self.connection: Connection | None = None

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        if self.is_new:
            code = f"from glasshead._audit import _serve_new; _serve_new({theirs.fileno()})"
            search = os.pathsep.join(
                [os.path.dirname(os.path.dirname(__file__)), *filter(None, [os.environ.get("PYTHONPATH")])]
            )
            self.popen = subprocess.Popen(
                [sys.executable, "-c", code],
                pass_fds=[theirs.fileno()],
                env={**os.environ, "PYTHONPATH": search},
                start_new_session=True,
            )
            self.pid = self.popen.pid
            self.connection = Connection(ours.detach())
            self.connection.send(sys.path)
            self.connection.send_bytes(pickle.dumps((self.fn, self.plan, self.arrays)))
        else:
            with warnings.catch_warnings():  # threads that are lost in the fork are told of below, where they matter
                warnings.simplefilter("ignore")
                self.pid = os.fork()
            if self.pid == 0:
                status = 1
                try:
                    os.setsid()
                    faulthandler.disable()  # a crash is a row, not a page of text
                    ours.close()
                    _serve(Connection(theirs.detach()), self.fn, self.plan, self.arrays)
                    status = 0
                finally:
                    os._exit(status)
            self.connection = Connection(ours.detach())
        theirs.close()
        self.is_first = True

    def _end(self) -> int:
        """Ends it, and whatever it has started; its exit code, negative for a signal."""
        with contextlib.suppress(OSError):
            os.killpg(self.pid, signal.SIGKILL)
        code = self.popen.wait() if self.popen else os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        assert self.connection is not None
        self.connection.close()
        self.connection, self.popen, self.pid = None, None, 0
        return code

    def _how_it_ended(self) -> str:
        if self.popen is not None:
            try:
                code = self.popen.wait(5)
            except subprocess.TimeoutExpired:
                code = -signal.SIGKILL
            self._end()
        else:
            code = self._end()  # its end of the line is closed: it is gone, and the signal comes too late
        return f"signal {-code} ({signal.strsignal(-code)})" if code < 0 else f"exit code {code}"

    def ask(self, call: Mapping[str, Any]) -> tuple[Any, ...]:
        try:
            if self.connection is None:
                self._start()
            assert self.connection is not None
            limit = self.timeout + (_FIRST_ANSWER if self.is_first else 0)
            # A new process says that it listens: until then a large call would wait, without an end, to be taken.
            is_there = not self.is_first or wait([self.connection], limit)
            if is_there:
                if self.is_first:
                    self.connection.recv()
                self.connection.send(call)
            if not is_there or not wait([self.connection], limit):
                if not self.has_answered and not self.is_new:
                    self._end()
                    raise RuntimeError(
                        "audit: the function hangs in a forked process, as some libraries' threads make it: "
                        "put it into a module of its own, or say isolate=False"
                    )
                self._end()
                return "hung", f"no answer in {self.timeout:g} s"
            answer: tuple[Any, ...] = self.connection.recv()
        except (EOFError, ConnectionError):
            how = self._how_it_ended()
            if not self.has_answered and how == "exit code 1":
                raise RuntimeError("audit: the process that calls the function ended before its first answer") from None
            return "crashed", how
        self.is_first = False
        self.has_answered = True
        return answer

    def close(self) -> None:
        if self.connection is not None:
            self._end()


@named()
def audit(
    fn: Callable[..., Any],
    *,
    names: Mapping[str, str] | None = None,
    takes: str | Iterable[str] | None = None,
    corner: str | None = None,
    arrays: str = "numpy",
    groups: str | Iterable[str] = (),
    isolate: bool = True,
    timeout: float = 20.0,
    seed: int = 1,
    failing: str | os.PathLike[str] | None = None,
    name: str | None = None,
    progress: Callable[[int, int, str], Any] | None = None,
) -> AuditReport:
    """Runs `fn(q, k, v, ...) -> out` on the inputs that implementations get wrong, and judges every answer.

    q [batch, heads, q_len, d_k], k [batch, kv_heads, kv_len, d_k], v [batch, kv_heads, kv_len, d_v]; out
    [batch, heads, q_len, d_v], or a tuple that begins with it. An exception is a refusal.

    Which options it knows is read from its signature: `mask` (booleans, True takes part), `bias` (numbers that are
    added), `attn_mask` (both), `causal` ("start" or "end"), `is_causal` (True; the corner is `corner`, "start" if not
    given), `window` ((left, right)), `key_lengths`, `scale`, `softcap`, `threads`, `enable_gqa`. `names` gives others:
    {"mask": "keep"}; for "causal" such a keyword is True, as is_causal is. What no keyword tells (grouped-heads,
    other-d-v, f64, bf16, f16, strides) is tried; `takes` replaces the list of features altogether.

    arrays: "numpy", "torch" or "jax", what fn is called with. isolate: in a process of its own, so that crashes and
    hangs (timeout, in seconds) are rows of the report; a function that can be imported runs in a new interpreter,
    others in a fork. failing: a folder for the smallest failing input of each fault. takes and groups are lists, or
    text with commas. progress: called with (inputs done, inputs, the name of the next) before each that is asked.
    An audit of which nothing could be asked is refused.
    """
    if arrays not in ("numpy", "torch", "jax"):
        refuse("audit", ("arrays", f"found {arrays!r}; 'numpy', 'torch' or 'jax' is needed"))
    if corner not in (None, "start", "end"):
        refuse("audit", ("corner", f"found {corner!r}; 'start' or 'end' is needed"))
    plan = _plan(fn, names)
    features = _words(takes) if takes is not None else _takes(plan, corner, arrays)
    for feature in features:
        if feature not in _native.audit_features():
            refuse("audit", ("takes", f"found {feature!r}; there are {', '.join(_native.audit_features())}"))
        keyword = next(
            (ours for ours, its in _FEATURES.items() if feature in its),
            "causal" if feature.startswith("causal") else None,
        )
        if keyword is not None and keyword not in plan:
            refuse(
                "audit",
                (
                    "takes",
                    f"{feature!r} has no keyword of the function; names={{{keyword!r}: ...}} tells which",
                ),
            )
    if {"causal-start", "causal-end"} <= set(features) and not _takes_corner(plan):
        refuse("audit", ("takes", f"{plan['causal']!r} is True for either corner; say which one it means"))
    folder = "" if failing is None else os.fspath(failing)
    if folder:
        os.makedirs(folder, exist_ok=True)
    subject = name or getattr(fn, "__qualname__", None) or type(fn).__name__
    run = _native.AuditRun(subject, features, _words(groups), seed, folder)
    child = _Child(fn, plan, arrays, timeout) if isolate else None
    last = -1  # a call that is compared with another is no new input
    try:
        while True:
            call: Any = run.next()
            if call is None:
                break
            if progress is not None and run.done != last:
                last = run.done
                progress(last, run.inputs, call["input"])
            kind, *rest = child.ask(call) if child else _answer(fn, call, plan, arrays)
            if kind == "out":
                dtype, shape, data = rest
                run.answer(dtype, list(shape), data)
            else:
                getattr(run, kind)(*rest)
    finally:
        if child:
            child.close()
    report = run.report()
    if why := report.why_nothing():
        refuse("audit", ("takes", why))
    return _report(report)
