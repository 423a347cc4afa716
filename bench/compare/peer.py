"""What the comparison asks of a library. A peer is a file peer_NAME.py with

    version()   -> "2.15.0"                 what is measured, as the library names itself
    OPERATORS   -> {"sdpa": Operator(...)}  the ways of computing attention that it offers

and an operator's `prepare(case, threads)` returns a Prepared, or raises CannotRun with the reason why it does not have this row.
Everything that is done once (models, layouts, copies of the inputs) happens in `prepare`; what `run` does is timed."""
import dataclasses
import typing


class CannotRun(Exception):
    """The operator does not have this row; the text says why."""


@dataclasses.dataclass
class Prepared:
    run: typing.Callable       # one computation, finished when it returns
    results: typing.Callable   # [out] or [dq, dk, dv], laid out as the case's, any float type; of the last run
    layout: str                # what `prepare` changed or copied, and what `run` copies


@dataclasses.dataclass(frozen=True)
class Operator:
    name: str                  # exactly, as its library calls it
    prepare: typing.Callable


PEERS = ("glasshead", "torch", "onnxruntime", "openvino", "ggml", "jax")
# peer:operator, in the order of the tables.
OPERATORS = ("glasshead:attend", "torch:sdpa", "torch:sdpa-mask", "onnxruntime:attention", "onnxruntime:mha", "onnxruntime:gqa",
             "openvino:sdpa", "openvino:stateful", "ggml:flash", "jax:dpa")


def forward_only(case):
    if case.row.backward:
        raise CannotRun("it has no backward pass")

