"""Random weights under which a fault in the wiring shows.

Norm weights lie in 0.5 .. 1.5 and no bias is 0, so that none can be left out; q and k are scaled up until most rows
have a weight above one half, so that attention decides something; activations are small beside epsilon."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import torch

QUERY_OR_KEY = re.compile(r"(^|[._])(q|k|q_proj|k_proj|query|key|q_lin|k_lin)\.(weight|bias)$")
PACKED = re.compile(r"(c_attn|qkv_proj)\.(weight|bias)$")
HEAD_NORM = re.compile(r"(q|k)_norm\.weight$")
NORM = re.compile(r"(norm|ln_\d|ln_f|LayerNorm)\.weight$")
SMALL = re.compile(
    r"(o_proj|down_proj|c_proj|out_lin|lin2|output\.dense|ffn_output|attention\.dense|\.o|\.wo)\.weight$"
)


def uniform(shape: torch.Size, low: float, high: float, seed: torch.Generator) -> torch.Tensor:
    return low + (high - low) * torch.rand(shape, generator=seed, dtype=torch.float64)


def randomise(model: torch.nn.Module, seed: torch.Generator, offset_norms: bool) -> None:
    """offset_norms: the family multiplies by 1 + w."""
    for name, parameter in sorted(model.named_parameters()):
        shape = parameter.shape
        if NORM.search(name):
            value = uniform(shape, 0.5, 1.5, seed) - (1.0 if offset_norms else 0.0)
        elif parameter.dim() == 1:
            value = uniform(shape, 0.1, 0.4, seed) * torch.sign(uniform(shape, -1, 1, seed))
        elif "relative_attention_bias" in name:
            value = uniform(shape, -2, 2, seed)
        elif "embed" in name or name.endswith(("wte.weight", "wpe.weight", "shared.weight")):
            value = torch.randn(shape, generator=seed, dtype=torch.float64) * 0.25
        else:
            conv1d = re.search(r"\.(c_attn|c_proj|c_fc)\.weight$", name)
            inputs = shape[0] if conv1d else shape[1]
            gain = 0.6 if SMALL.search(name) else 1.2
            value = torch.randn(shape, generator=seed, dtype=torch.float64) * (gain / math.sqrt(inputs))
        with torch.no_grad():
            parameter.copy_(value)


def scale_scores(model: torch.nn.Module, factor: float, key_width: int, offset_norms: bool) -> None:
    """Multiplies every score by about factor^2."""
    parameters = dict(model.named_parameters())
    with torch.no_grad():
        head_norms = [p for name, p in parameters.items() if HEAD_NORM.search(name)]
        for p in head_norms:
            p.copy_((p + 1) * factor - 1 if offset_norms else p * factor)
        if head_norms:
            return
        for name, p in parameters.items():
            if QUERY_OR_KEY.search(name):
                p.mul_(factor)
            elif PACKED.search(name):
                values = p.shape[-1] if "c_attn" in name else p.shape[0]
                part = p[..., : values - key_width] if "c_attn" in name else p[: values - key_width]
                part.mul_(factor)


def sharpen(
    model: torch.nn.Module,
    weights: Callable[[], list[torch.Tensor]],
    key_width: int,
    offset: bool,
    steps: int,
    enough: float,
) -> float:
    """Scales q and k until in `enough` of the rows with a choice one key has more than half, or `steps` times (a
    softcap allows no more, however large the scores, and large scores are imprecise ones); returns the share."""
    share = 0.0
    for _ in range(steps):
        rows = torch.cat([w[..., 2:, :].amax(-1).flatten() for w in weights()])
        share = (rows > 0.5).double().mean().item()
        if share > enough:
            break
        scale_scores(model, 1.15, key_width, offset)
    return share


def stored_exactly(model: torch.nn.Module, dtype: torch.dtype) -> None:
    """Rounds every parameter to what the file will hold."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.to(dtype).to(parameter.dtype))
