"""Writes checkpoints as their families publish them, and expectations."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import numpy as np
import safetensors.numpy
import safetensors.torch
import torch

from golden.specs import Spec

DTYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}


def write_json(path: pathlib.Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1) + "\n")


def file_name(spec: Spec, name: str) -> str:
    """A parameter's name in the file."""
    name = name.removeprefix(spec.prefix)
    for old, new in spec.rename:
        name = name.replace(old, new)
    return name


def extra_tensor(spec: Spec, kind: str, parameters: dict[str, torch.Tensor]) -> torch.Tensor:
    if kind == "mask":
        n = spec.config["n_positions"]
        return torch.tril(torch.ones(1, 1, n, n))
    if kind == "positions":
        return torch.arange(spec.config["max_position_embeddings"])[None]
    return parameters[kind].clone()


def write_checkpoint(folder: pathlib.Path, spec: Spec, model: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    parameters = {n: p.detach().to(DTYPES[spec.stored]) for n, p in model.named_parameters()}
    tensors = {file_name(spec, n): p.contiguous() for n, p in parameters.items()}
    tensors |= {name: extra_tensor(spec, kind, parameters) for name, kind in spec.extra.items()}
    if spec.shards == 1:
        safetensors.torch.save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    else:
        write_shards(folder, tensors, spec.shards)
    model.config.dtype = DTYPES[spec.stored]
    config = json.loads(model.config.to_json_string(use_diff=True))
    config["architectures"] = [spec.model]
    config.setdefault("dtype", str(DTYPES[spec.stored]).removeprefix("torch."))
    if spec.edit is not None:
        spec.edit(config)
    write_json(folder / "config.json", config)


def write_shards(folder: pathlib.Path, tensors: dict[str, torch.Tensor], shards: int) -> None:
    where = {name: f"model-{i % shards + 1:05d}-of-{shards:05d}.safetensors" for i, name in enumerate(tensors)}
    for file in sorted(set(where.values())):
        part = {name: tensors[name] for name in tensors if where[name] == file}
        safetensors.torch.save_file(part, folder / file, metadata={"format": "pt"})
    total = sum(t.numel() * t.element_size() for t in tensors.values())
    write_json(folder / "model.safetensors.index.json", {"metadata": {"total_size": total}, "weight_map": where})


def write_expected(path: pathlib.Path, arrays: dict[str, np.ndarray]) -> None:
    safetensors.numpy.save_file({name: np.ascontiguousarray(arrays[name]) for name in sorted(arrays)}, path)
