"""Makes each checkpoint, runs it, and checks the result in every way that needs PyTorch."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import numpy as np
import torch
import transformers

from golden import gguf_twin, reference, weights
from golden.files import file_name, write_checkpoint, write_expected
from golden.specs import Spec

LOGITS, WEIGHTS, STATES = 2e-4, 1e-5, 2e-4  # the bars of a parity test: relative, absolute, relative
Texts = list[dict[str, torch.Tensor]]


def texts(spec: Spec, lengths: tuple[int, ...]) -> Texts:
    seed = torch.Generator().manual_seed(spec.seed + 100)
    vocab = spec.config["vocab_size"]
    made: Texts = []
    for text, length in enumerate(lengths):
        ids = spec.ids(text, length) if spec.ids else torch.randint(5, vocab, (length,), generator=seed).tolist()
        inputs = {"input_ids": torch.tensor([ids])}
        if spec.config.get("type_vocab_size") == 2:
            inputs["token_type_ids"] = torch.tensor([[int(i >= length // 2) for i in range(length)]])
        if spec.targets:
            after = torch.randint(5, vocab, (spec.targets[text] - 1,), generator=seed).tolist()
            inputs["decoder_input_ids"] = torch.tensor([[0, *after]])
        made.append(inputs)
    return made


def build(spec: Spec) -> tuple[Any, float]:
    """The model with its weights, in float64, rounded to what the file holds, and how many of its rows are sharp. To
    be called inside wide()."""
    cls = getattr(transformers, spec.model)
    given = {key: value for key, value in spec.config.items() if value is not None}
    model = cls._from_config(cls.config_class(**given), attn_implementation="eager", dtype=torch.float64).eval()
    if spec.untie:
        owner = model.get_submodule(spec.untie.rpartition(".")[0])
        owner.weight = torch.nn.Parameter(owner.weight.detach().clone())
    offset = spec.model.startswith("Gemma")
    weights.randomise(model, torch.Generator().manual_seed(spec.seed), offset)

    def rows() -> list[torch.Tensor]:
        out = reference.run(model, texts(spec, spec.lengths)[0])
        return [w for name, w in out.items() if "weights." in name]

    config = spec.config
    kv_heads = config.get("num_key_value_heads", 6)
    key_width = config["n_embd"] if "n_embd" in config else kv_heads * (config.get("head_dim") or 8)
    steps, enough = (5 if config.get("attn_logit_softcapping") else 14), 0.6
    if spec.targets:  # unscaled scores are large as they are, and four layers below each other's errors add up
        weights.scale_scores(model, 0.5, 0, offset)
        enough = 0.4
    share = weights.sharpen(model, rows, key_width, offset, steps, enough)
    weights.stored_exactly(model, {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}[spec.stored])
    wrong = [n for n, p in model.named_parameters() if p.dtype != torch.float64]
    assert not wrong, wrong
    return model, share


INPUTS = {"input_ids": "ids", "token_type_ids": "types", "decoder_input_ids": "decoder_ids"}


def expectations(spec: Spec, model: Any, made: Texts, limit: int = 0) -> tuple[dict[str, np.ndarray], list[str]]:
    """The arrays of expected.safetensors, and remarks for the maker."""
    arrays: dict[str, np.ndarray] = {}
    remarks = []
    for text, inputs in enumerate(made):
        found = {INPUTS[name]: value[0].to(torch.int32).numpy() for name, value in inputs.items()}
        found |= {name: reference.numbers(value) for name, value in reference.run(model, inputs).items()}
        count = min(spec.greedy, limit - inputs["input_ids"].shape[1]) if limit else spec.greedy
        if spec.kind in ("decoder", "encoder-decoder") and count > 0:
            more, _ = reference.greedy(model, inputs, count, 1 if spec.targets else -1)
            found |= more
            remarks.append(f"smallest margin {more['margins'].min():.3g}")
        if spec.targets:
            found |= reference.beams(model, inputs["input_ids"], spec.greedy)
        arrays |= {f"{text}.{name}": value for name, value in found.items()}
    return arrays, remarks


def distance(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> dict[str, float]:
    """The largest differences: of weights absolute, of all else relative to the largest number of the array."""
    worst = {"logits": 0.0, "weights": 0.0, "states": 0.0}
    for name, value in a.items():
        kind = "logits" if name in ("logits", "embedding") else "weights" if "weights." in name else "states"
        difference = (value.double() - b[name].double()).abs().max().item()
        if kind != "weights":
            difference /= value.abs().max().item()
        worst[kind] = max(worst[kind], difference)
    return worst


def against_float32(folder: pathlib.Path, spec: Spec, model: Any, made: Texts) -> dict[str, float]:
    """transformers in float32, the checkpoint loaded from its files: what a user of it would get."""
    cls = getattr(transformers, spec.model)
    loaded = cls.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    worst = {"logits": 0.0, "weights": 0.0, "states": 0.0}
    for inputs in made:
        with reference.wide():
            exact = reference.run(model, inputs)
        found = distance(exact, reference.run(loaded, inputs))
        worst = {kind: max(worst[kind], found[kind]) for kind in worst}
    limit = {"logits": LOGITS / 10, "weights": WEIGHTS / 2, "states": STATES / 10}
    assert all(worst[kind] < limit[kind] for kind in worst), (spec.name, worst)
    return {kind: float(f"{value:.2g}") for kind, value in worst.items()}


def padded(spec: Spec, made: Texts, left: bool) -> dict[str, torch.Tensor]:
    """All texts as one batch; padding on the right or left, positions counting real tokens."""
    batch: dict[str, torch.Tensor] = {}
    pad = spec.config.get("pad_token_id") or 0
    for name in made[0]:
        longest = max(inputs[name].shape[1] for inputs in made)
        rows, masks = [], []
        for inputs in made:
            missing = longest - inputs[name].shape[1]
            side = (missing, 0) if left and name != "decoder_input_ids" else (0, missing)
            rows.append(torch.nn.functional.pad(inputs[name], side, value=pad if "ids" in name else 0))
            masks.append(torch.nn.functional.pad(torch.ones_like(inputs[name]), side))
        batch[name] = torch.cat(rows)
        if name != "token_type_ids":
            batch[name.replace("input_ids", "attention_mask")] = torch.cat(masks)
    if left and spec.kind == "decoder":
        batch["position_ids"] = (batch["attention_mask"].cumsum(1) - 1).clamp(min=0)
    return batch


def check_padding(spec: Spec, model: Any, made: Texts) -> None:
    """Padding changes nothing: each text in a padded batch gives what it gives alone."""
    for left in (False, True) if spec.kind == "decoder" else (False,):
        batch = reference.run(model, padded(spec, made, left))
        for text, inputs in enumerate(made):
            alone = reference.run(model, inputs)
            for name in ("logits", "embedding"):
                if name not in alone:
                    continue
                n = alone[name].shape[1]
                row = batch[name][text : text + 1]
                row = row if name == "embedding" else row[:, -n:] if left else row[:, :n]
                difference = (row - alone[name]).abs().max().item()
                assert difference < 1e-9, (spec.name, "padding", left, difference)


def insensitive(spec: Spec, model: Any, made: Texts) -> list[str]:
    """Tensors whose loss no expectation would notice: changed by a tenth, everything stays ten times nearer than the
    bars. The greater share must be none, and pooler-like parts that nothing reads."""
    before = [reference.run(model, inputs) for inputs in made]
    seed = torch.Generator().manual_seed(5)
    found = []
    for name, parameter in model.named_parameters():
        kept = parameter.detach().clone()
        noise = torch.randn(kept.shape, generator=seed, dtype=torch.float64) * 0.1 * kept.abs().mean()
        with torch.no_grad():
            parameter.add_(noise)
        worst = 0.0
        for inputs, old in zip(made, before, strict=True):
            d = distance(old, reference.run(model, inputs))
            worst = max(worst, d["logits"] / LOGITS, d["weights"] / WEIGHTS, d["states"] / STATES)
        with torch.no_grad():
            parameter.copy_(kept)
        if worst < 10:
            found.append(file_name(spec, name))
    return found


def make(spec: Spec, out: pathlib.Path) -> list[dict[str, Any]]:
    """Writes the folder; returns its entries of index.json."""
    folder = out / spec.name
    with reference.wide():
        model, share = build(spec)
    write_checkpoint(folder, spec, model)
    made = texts(spec, spec.lengths)
    with reference.wide():
        arrays, remarks = expectations(spec, model, made, spec.context)
        check_padding(spec, model, made)
        unread = insensitive(spec, model, made)
    entry = {
        "name": spec.name,
        "family": json.loads((folder / "config.json").read_text())["model_type"],
        "kind": spec.kind,
        "path": spec.name,
        "expected": f"{spec.name}/expected.safetensors",
        "texts": len(made),
        "exercises": spec.exercises,
        "float32": against_float32(folder, spec, model, made),
        "unread": unread,
    }
    if spec.context:
        entry["context"] = spec.context
    write_expected(folder / "expected.safetensors", arrays)
    entries = [entry]
    if spec.short is not None:
        entries.append(short_context(spec, model, folder, entry))
    if spec.gguf:
        gguf_twin.write(folder / "model.gguf", spec, model)
        entries += [
            {**e, "name": f"{e['name']}.gguf", "path": f"{spec.name}/model.gguf", "family": spec.gguf} for e in entries
        ]
    size = sum(f.stat().st_size for f in folder.iterdir())
    print(
        f"{spec.name}: {size} bytes, rows above 1/2: {share:.2f}, {', '.join(remarks)}; float32 {entry['float32']}",
        f"; nothing reads {unread}" if unread else "",
        flush=True,
    )
    return entries


def short_context(spec: Spec, model: Any, folder: pathlib.Path, entry: dict[str, Any]) -> dict[str, Any]:
    context, lengths = spec.short
    made = texts(spec, lengths)
    with reference.wide():
        arrays, _ = expectations(spec, model, made, context)
    write_expected(folder / "expected-short.safetensors", arrays)
    return {
        **entry,
        "name": f"{spec.name}.short",
        "expected": f"{spec.name}/expected-short.safetensors",
        "context": context,
        "exercises": f"the same, room for {context} tokens",
        "float32": against_float32(folder, spec, model, made),
    }
