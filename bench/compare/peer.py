"""What the comparison asks of a library. A peer is a file peer_NAME.py with

    version()   -> "2.15.0"                 what is measured, as the library names itself
    OPERATORS   -> {"sdpa": Operator(...)}  the ways of computing attention that it offers

and an operator's `prepare(case, threads)` returns a Prepared, or raises CannotRun with the reason why it does not have this row.
Everything that is done once (models, layouts, copies of the inputs) happens in `prepare`; what `run` does is timed."""
import dataclasses
import typing

import case as cases


class CannotRun(Exception):
    """The operator does not have this row; the text says why."""


@dataclasses.dataclass
class Prepared:
    run: typing.Callable       # one computation, finished when it returns
    results: typing.Callable   # [out] or [dq, dk, dv], laid out as the case's, any float type; of the last run
    layout: str                # what `prepare` changed or copied, and what `run` copies
    keeps: object = None       # what must live as long as this does


@dataclasses.dataclass(frozen=True)
class Operator:
    name: str                  # exactly, as its library calls it
    prepare: typing.Callable


def forward_only(case):
    if case.row.backward:
        raise CannotRun("it has no backward pass")


def no_eight_bits(case):
    if case.row.dtype == "int8":
        raise CannotRun("it takes no 8-bit keys and values")


def rows_of_a_group(operator):
    """The operator on a grouped decode step written as rows (case.group_as_rows): what a careful caller would do."""
    def prepare(case, threads):
        if not case.row.is_decode or case.row.heads == case.row.kv_heads:
            raise CannotRun("it is a form for grouped decoding")
        inner = operator.prepare(cases.group_as_rows(case), threads)
        return dataclasses.replace(inner, results=lambda: [x.reshape(case.q.shape) for x in inner.results()],
                                   layout=inner.layout + "; a group's query heads as rows of one head")
    return Operator(operator.name + ", a group's query heads as rows", prepare)
