"""Glasshead: exact attention that can be read.

    out = glasshead.scaled_dot_product_attention(query, key, value, is_causal=True)
    weights = glasshead.attention_weights(query, key, heads=3, rows=-1, is_causal=True)
    print(glasshead.trace_case("three-tokens-causal"))

Arrays of NumPy, PyTorch and JAX are read where they lie, and results are of the same kind. What is computed, and what
is promised of it, is docs/conventions.md; `glasshead.torch` has the same with gradients, `glasshead.diagnose` judges
somebody else's numbers, and `glasshead.testing` does so in tests.
"""

from importlib.metadata import PackageNotFoundError, version

from ._attention import (
    AttendPlan,
    RowState,
    Tiles,
    attention_weights,
    check,
    plan_attend,
    scaled_dot_product_attention,
    top_weights,
    weight_maps,
)
from ._audit import AuditReport, AuditRow, audit
from ._cache import KvCache
from ._doctor import Cause, Diagnosis, Entry, NamedMistake, Probe, Rotary, RowReport, diagnose, make_probe
from ._errors import Error, FormatError, IoError, OptionError, Problem, ShapeError
from ._interactive import Interactive
from ._native import Context, alibi_slopes, kernel_sets
from ._options import T5, Options, allowed_where
from ._page import Page, Printing
from ._trace import Step, Trace, cases, trace, trace_case

try:
    __version__ = version("glasshead")
except PackageNotFoundError:  # imported from a build tree
    __version__ = "0"

__all__ = [
    "AttendPlan",
    "AuditReport",
    "AuditRow",
    "Cause",
    "Context",
    "Diagnosis",
    "Entry",
    "Error",
    "FormatError",
    "Interactive",
    "IoError",
    "KvCache",
    "NamedMistake",
    "OptionError",
    "Options",
    "Page",
    "Printing",
    "Probe",
    "Problem",
    "Rotary",
    "RowReport",
    "RowState",
    "ShapeError",
    "Step",
    "T5",
    "Tiles",
    "Trace",
    "alibi_slopes",
    "allowed_where",
    "attention_weights",
    "audit",
    "cases",
    "check",
    "diagnose",
    "kernel_sets",
    "make_probe",
    "plan_attend",
    "scaled_dot_product_attention",
    "top_weights",
    "trace",
    "trace_case",
    "weight_maps",
]
