"""Glasshead: exact attention that can be read.

    out = glasshead.scaled_dot_product_attention(query, key, value, is_causal=True)
    weights = glasshead.attention_weights(query, key, heads=3, rows=-1, is_causal=True)
    print(glasshead.trace_case("three-tokens-causal"))
    print(glasshead.Session(glasshead.Model("stories260K")).generate("Once upon a time").text)

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
from ._heads import HeadMetrics, HeadStudy
from ._interactive import Interactive
from ._logits import TokenProbability, kl_divergence, most_probable, sample
from ._model import Model, model_facts
from ._native import (
    AttentionFacts,
    Context,
    FamilyFacts,
    LayerFacts,
    ModelCost,
    ModelFacts,
    StackFacts,
    StoredFacts,
    alibi_slopes,
    kernel_sets,
    known_models,
    model_families,
    rounding_kernel_sets,
)
from ._options import T5, Options, allowed_where
from ._page import Page, Printing
from ._session import Beam, Filled, Generation, Session, Stream
from ._taps import HidePairs, Patch, ReplaceHead, Tap, Taps, mean_of_head
from ._tokenizer import Encoding, Tokenizer, chat_form, chat_prompt
from ._trace import Step, Trace, cases, trace, trace_case

try:
    __version__ = version("glasshead")
except PackageNotFoundError:  # imported from a build tree
    __version__ = "0"

__all__ = [
    "AttendPlan",
    "AttentionFacts",
    "AuditReport",
    "AuditRow",
    "Beam",
    "Cause",
    "Context",
    "Diagnosis",
    "Encoding",
    "Entry",
    "Error",
    "FamilyFacts",
    "Filled",
    "FormatError",
    "Generation",
    "HeadMetrics",
    "HeadStudy",
    "HidePairs",
    "Interactive",
    "IoError",
    "KvCache",
    "LayerFacts",
    "Model",
    "ModelCost",
    "ModelFacts",
    "NamedMistake",
    "OptionError",
    "Options",
    "Page",
    "Patch",
    "Printing",
    "Probe",
    "Problem",
    "ReplaceHead",
    "Rotary",
    "RowReport",
    "RowState",
    "Session",
    "ShapeError",
    "StackFacts",
    "Step",
    "StoredFacts",
    "Stream",
    "T5",
    "Tap",
    "Taps",
    "Tiles",
    "TokenProbability",
    "Tokenizer",
    "Trace",
    "alibi_slopes",
    "allowed_where",
    "attention_weights",
    "audit",
    "cases",
    "chat_form",
    "chat_prompt",
    "check",
    "diagnose",
    "kernel_sets",
    "kl_divergence",
    "known_models",
    "make_probe",
    "mean_of_head",
    "model_facts",
    "model_families",
    "most_probable",
    "plan_attend",
    "rounding_kernel_sets",
    "sample",
    "scaled_dot_product_attention",
    "top_weights",
    "trace",
    "trace_case",
    "weight_maps",
]
