"""Attention for PyTorch with gradients, and for Hugging Face transformers.

    from glasshead.torch import scaled_dot_product_attention       # in place of torch.nn.functional's
    glasshead.torch.register()                                      # then attn_implementation="glasshead"

Computes on the processor, forward and backward, by the same fused path as glasshead itself.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd.function import once_differentiable

from . import _native, _options
from ._attention import attention_weights, heads_of
from ._errors import refuse
from ._keywords import named

_SEEDS = 2**63 - 1
_FIRST_TERM = 7  # of the arguments of _Attend.forward


def _state_type(query: torch.Tensor) -> torch.dtype:
    return torch.float64 if query.dtype == torch.float64 else torch.float32


def _empty(like: torch.Tensor | None) -> torch.Tensor | None:
    return None if like is None else torch.empty(like.shape, dtype=like.dtype)


def _detached(tensor: Any) -> Any:
    return tensor.detach() if isinstance(tensor, torch.Tensor) else tensor


class _Attend(torch.autograd.Function):
    """out = softmax(scale * query key^T + terms) value; `native` holds the terms of the bias and sinks, too.

    terms: one for each term of the bias, in order, None for what has no gradient.
    """

    @staticmethod
    def forward(
        ctx: Any,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        sinks: torch.Tensor | None,
        native: _native.Options,
        enable_gqa: bool,
        context: _native.Context | None,
        *terms: torch.Tensor | None,
    ) -> torch.Tensor:
        query, key, value = query.detach(), key.detach(), value.detach()
        # Kept unrounded for the backward pass, which needs dot(d_out, out) of each row.
        out = torch.empty((*query.shape[:-1], *value.shape[-1:]), dtype=_state_type(query))
        largest = torch.empty(query.shape[:-1], dtype=_state_type(query))
        total = torch.empty_like(largest)
        _native.attend(query, key, value, out, native, largest, total, None, context, enable_gqa)
        ctx.save_for_backward(query, key, value, out, largest, total, sinks, *terms)
        ctx.native, ctx.context = native, context
        return out.to(query.dtype, copy=True)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_out: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        query, key, value, out, largest, total, sinks, *terms = ctx.saved_tensors
        dq, dk, dv = _empty(query), _empty(key), _empty(value)
        d_sinks = _empty(sinks) if ctx.needs_input_grad[3] else None
        is_wanted = ctx.needs_input_grad[_FIRST_TERM:]
        d_terms = [_empty(term) if wanted else None for term, wanted in zip(terms, is_wanted, strict=True)]
        gradients = (dq, dk, dv, d_terms, d_sinks)
        _native.attend_backward(
            d_out.detach(), query, key, value, out, largest, total, *gradients, ctx.native, ctx.context
        )
        return dq, dk, dv, d_sinks, None, None, None, *d_terms


def _differentiable(value: Any) -> torch.Tensor | None:
    return value if isinstance(value, torch.Tensor) and value.is_floating_point() else None


def _take_terms(attn_mask: Any, options: dict[str, Any]) -> list[torch.Tensor | None]:
    """The terms of the bias in the order of _options.build, None where there is no gradient; `options` is left with
    their values alone."""
    terms = []
    if attn_mask is not None and "bool" not in str(getattr(attn_mask, "dtype", "")):
        terms.append(_differentiable(attn_mask))
    bias = options.get("bias")
    if bias is not None:
        listed = list(bias) if isinstance(bias, (list, tuple)) else [bias]
        terms += [_differentiable(term) for term in listed]
        options["bias"] = [_detached(term) for term in listed]
    if options.get("alibi") is not None and options["alibi"] is not False:
        terms.append(None)
    t5 = options.get("t5")
    if t5 is not None:
        t5 = t5 if isinstance(t5, _options.T5) else _options.T5(t5)
        terms.append(_differentiable(t5.table))
        options["t5"] = t5._replace(table=_detached(t5.table))
    return terms


def _seeded(dropout_p: float, options: dict[str, Any], generator: torch.Generator | None) -> None:
    if generator is None:
        return
    if options.get("dropout_seed") is not None:
        refuse("attend", ("generator", "contradicts dropout_seed; one of them decides what is dropped"))
    if dropout_p:
        options["dropout_seed"] = int(torch.randint(_SEEDS, (), generator=generator))


@named()
def scaled_dot_product_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    generator: torch.Generator | None = None,
    context: _native.Context | None = None,
    **options: Any,
) -> torch.Tensor:
    """torch.nn.functional.scaled_dot_product_attention, and the keywords of glasshead.Options.

    Differentiable in query, key, value, sinks, a floating attn_mask, each bias and the table of t5 (once: the gradient
    has none). is_causal over
    unequal lengths is top left, as PyTorch documents it, unless `align` or `query_start` says otherwise. dropout_p
    needs dropout_seed or a generator. attn_mask and is_causal may be given together: a pair must be allowed by both.
    """
    if is_causal and options.get("align") is None and options.get("query_start") is None:
        options["align"] = "start"
    _seeded(dropout_p, options, generator)
    sinks = _differentiable(options.get("sinks"))
    options["sinks"] = _detached(options.get("sinks"))
    terms = _take_terms(attn_mask, options)
    native = _options.build(
        heads_of(query),
        _options.pairs_of(query, key),
        attn_mask=_detached(attn_mask),
        dropout_p=dropout_p,
        is_causal=is_causal,
        scale=scale,
        **options,
    )
    inputs = (query, key, value, sinks, *terms)
    if torch.is_grad_enabled() and any(tensor is not None and tensor.requires_grad for tensor in inputs):
        return _Attend.apply(query, key, value, sinks, native, enable_gqa, context, *terms)
    query, key, value = _detached(query), _detached(key), _detached(value)
    out = torch.empty((*query.shape[:-1], *value.shape[-1:]), dtype=query.dtype)
    _native.attend(query, key, value, out, native, None, None, None, context, enable_gqa)
    return out


def attention_forward(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    is_causal: bool | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """The function that transformers calls, [batch, heads, length, size] in and [batch, length, heads, size] out.

    With output_attentions the weights are made from the same row states; they carry no gradient.
    """
    if kwargs.get("head_mask") is not None:
        refuse("attend", ("head_mask", "this model hands it to its attention, and it is not supported here"))
    options: dict[str, Any] = {"attn_mask": attention_mask, "scale": scaling}
    # Without a mask transformers leaves the causal rule to the attention, as it does with PyTorch's.
    wants_causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    if wants_causal and attention_mask is None and query.shape[2] > 1:
        options.update(is_causal=True, align="start")
    if kwargs.get("softcap") is not None:  # Gemma 2
        options["softcap"] = kwargs["softcap"]
    if kwargs.get("position_bias") is not None:  # T5
        options["bias"] = kwargs["position_bias"]
    if kwargs.get("s_aux") is not None:  # GPT-OSS
        options["sinks"] = kwargs["s_aux"]
    generator = torch.default_generator if dropout else None
    out = scaled_dot_product_attention(
        query, key, value, dropout_p=dropout, enable_gqa=True, generator=generator, **options
    )
    weights = None
    wants = kwargs.get("output_attentions")
    if wants is None:
        wants = getattr(getattr(module, "config", None), "output_attentions", False)
    if wants:
        quiet = {name: _detached(option) for name, option in options.items()}
        weights = attention_weights(query.detach(), key.detach(), **quiet).to(query.dtype)
    return out.transpose(1, 2).contiguous(), weights


def register(name: str = "glasshead") -> None:
    """Makes attn_implementation=name selectable in Hugging Face transformers, with masks as it makes them for sdpa."""
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

    AttentionInterface.register(name, attention_forward)
    AttentionMaskInterface.register(name, sdpa_mask)
