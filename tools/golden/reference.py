"""What transformers computes with a model, in float64: ids in, every layer's input, weights and logits out."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
import transformers

Arrays = dict[str, np.ndarray]


@contextlib.contextmanager
def wide() -> Iterator[None]:
    """Inside, transformers' float32 means float64: its modelling code rounds norms, rope's angles and softmax to
    float32 by name whatever the model's own type, and a model made inside is float64 throughout."""
    names = torch.float32, torch.float, torch.Tensor.float
    torch.float32 = torch.float = torch.float64  # type: ignore[misc]
    torch.Tensor.float = torch.Tensor.double  # type: ignore[method-assign]
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.float32, torch.float, torch.Tensor.float = names  # type: ignore[misc]
        torch.set_default_dtype(torch.float32)


def layers(model: torch.nn.Module) -> dict[str, list[torch.nn.Module]]:
    """The stacks by the names expectations use; a layer that several share is there once."""
    if hasattr(model, "encoder") and hasattr(model, "decoder"):
        return {"encoder.": list(model.encoder.block), "decoder.": list(model.decoder.block)}
    base = model.base_model if hasattr(model, "base_model") else model
    if hasattr(base, "h"):
        return {"": list(base.h)}
    if hasattr(base, "layers"):
        return {"": list(base.layers)}
    if hasattr(base, "transformer"):
        return {"": list(base.transformer.layer)}
    if hasattr(base.encoder, "albert_layer_groups"):
        return {"": list(base.encoder.albert_layer_groups[0].albert_layers)}
    return {"": list(base.encoder.layer)}


def final_norms(model: torch.nn.Module) -> dict[str, torch.nn.Module]:
    if hasattr(model, "encoder") and hasattr(model, "decoder"):
        return {"encoder.": model.encoder.final_layer_norm, "decoder.": model.decoder.final_layer_norm}
    base = model.base_model
    norm = getattr(base, "ln_f", getattr(base, "norm", None))
    return {} if norm is None else {"": norm}


def first(value: Any) -> torch.Tensor:
    return value[0] if isinstance(value, tuple) else value


@contextlib.contextmanager
def recording(model: torch.nn.Module, seen: dict[str, torch.Tensor]) -> Iterator[None]:
    """Fills `seen`: {stack}in.{n}, {stack}out (the last layer's, before any final norm), {stack}final, keys.{n}."""
    handles, counts = [], {}

    def layer_hook(stack: str):
        def hook(module: torch.nn.Module, args: Any, kwargs: Any, output: Any) -> None:
            n = counts[stack] = counts.get(stack, -1) + 1
            seen[f"{stack}in.{n}"] = args[0] if args else kwargs["hidden_states"]
            seen[f"{stack}out"] = first(output)

        return hook

    def keep(name: str, counted: bool, part: slice = slice(None)):
        def hook(module: torch.nn.Module, args: Any, output: torch.Tensor) -> None:
            n = counts[name] = counts.get(name, -1) + 1
            seen[f"{name}.{n}" if counted else name] = output[..., part]

        return hook

    for stack, modules in layers(model).items():
        handles += [module.register_forward_hook(layer_hook(stack), with_kwargs=True) for module in modules]
    for stack, norm in final_norms(model).items():
        handles.append(norm.register_forward_hook(keep(f"{stack}final", False)))
    # Where positions are learned a key's bias moves all scores of a row alike and so no weight: it shows here alone.
    for name, module in model.named_modules():
        if name.endswith((".self.key", "attention.key", "attention.k_lin")):
            handles.append(module.register_forward_hook(keep("keys", True)))
        elif name.endswith("attn.c_attn"):
            d = module.weight.shape[0]
            handles.append(module.register_forward_hook(keep("keys", True, slice(d, 2 * d))))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def numbers(value: torch.Tensor) -> np.ndarray:
    return value.detach()[0].to(torch.float32).numpy()


def no_cache(model: Any) -> dict[str, bool]:
    return {"use_cache": False} if getattr(model.config, "use_cache", False) else {}


def run(model: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """One forward pass of one text or a padded batch, every array with its batch axis, in the model's own type."""
    seen: dict[str, torch.Tensor] = {}
    with torch.no_grad(), recording(model, seen):
        out = model(**inputs, output_attentions=True, **no_cache(model))
    if "decoder_input_ids" in inputs:
        groups = {"encoder.": out.encoder_attentions, "decoder.": out.decoder_attentions}
        seen |= {f"decoder.cross_weights.{n}": w for n, w in enumerate(out.cross_attentions)}
    else:
        groups = {"": out.attentions}
    for stack, weights in groups.items():
        seen |= {f"{stack}weights.{n}": w for n, w in enumerate(weights)}
    if hasattr(out, "logits"):
        seen["logits"] = out.logits
    else:
        mask = inputs.get("attention_mask", torch.ones_like(inputs["input_ids"]))[..., None]
        mean = (out.last_hidden_state * mask).sum(1) / mask.sum(1)
        seen["embedding"] = mean / mean.norm(dim=-1, keepdim=True)
    return seen


def greedy(model: torch.nn.Module, inputs: dict[str, torch.Tensor], count: int, end: int) -> tuple[Arrays, list[int]]:
    """The likeliest next tokens, each from a full pass over all before it, and how far the second best is."""
    name = "decoder_input_ids" if "decoder_input_ids" in inputs else "input_ids"
    ids = inputs[name][:, :1] if name == "decoder_input_ids" else inputs[name]
    found, margins = [], []
    while len(found) < count and not (end >= 0 and found and found[-1] == end):
        with torch.no_grad():
            logits = model(**{**inputs, name: ids}, **no_cache(model)).logits[0, -1]
        best = torch.topk(logits, 2)
        found.append(int(best.indices[0]))
        margins.append(float(best.values[0] - best.values[1]))
        ids = torch.cat([ids, best.indices[None, :1]], 1)
    return {"greedy": np.array(found, np.int32), "margins": np.array(margins, np.float32)}, found


def beams(model: Any, ids: torch.Tensor, steps: int) -> Arrays:
    """transformers' beam search: 3 beams, scores divided by length, the best first, without the start token."""
    settings = transformers.GenerationConfig(
        num_beams=3,
        num_return_sequences=3,
        max_new_tokens=steps,
        do_sample=False,
        length_penalty=1.0,
        early_stopping=False,
        return_dict_in_generate=True,
        output_scores=True,
        decoder_start_token_id=0,
        pad_token_id=0,
        eos_token_id=1,
        use_cache=False,
    )
    out = model.generate(ids, generation_config=settings)
    return {
        "beams": out.sequences[:, 1:].to(torch.int32).numpy(),
        "beam_scores": out.sequences_scores.to(torch.float32).numpy(),
    }
