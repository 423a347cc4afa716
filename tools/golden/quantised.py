"""GGUF files with quantised blocks, and what transformers computes with the numbers the gguf package reads in them.

The package quantises to the types of 32 elements. For the K types, which it only reads, blocks are drawn at random:
every bit pattern is a legal block, and a random matrix is all that is wanted."""

from __future__ import annotations

import pathlib
from typing import Any

import gguf
import numpy as np
import torch

from golden import gguf_twin, models, reference
from golden.files import write_expected
from golden.specs import Spec, decoder

KIND = gguf.GGMLQuantizationType
LEGACY = [KIND.Q4_0, KIND.Q4_1, KIND.Q5_0, KIND.Q5_1, KIND.Q8_0]
# Where the float16 factors of a block lie: one (d), or d and the factor of the minimum, which is drawn so that a
# block's numbers have a mean near 0.
FACTORS = {KIND.Q4_K: (0, 2), KIND.Q5_K: (0, 2), KIND.Q6_K: (208,)}
CENTRE = {KIND.Q4_K: 7.5, KIND.Q5_K: 15.5}

LEGACY_SPEC = Spec(
    "llama-legacy-quants",
    "LlamaForCausalLM",
    decoder(hidden_size=32, intermediate_size=64, head_dim=16, num_attention_heads=4, num_key_value_heads=2),
    "Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 in one file, every type in several places",
    gguf="llama",
    stored="F32",
    seed=3,
)
K_SPEC = Spec(
    "llama-k-quants",
    "LlamaForCausalLM",
    decoder(
        hidden_size=256,
        intermediate_size=32,
        head_dim=16,
        num_attention_heads=8,
        num_key_value_heads=4,
        num_hidden_layers=1,
        tie_word_embeddings=True,
    ),
    "Q4_K Q5_K Q6_K, rows that are too short for them in Q8_0 and Q4_0",
    gguf="llama",
    stored="F32",
    seed=4,
)
K_KINDS = {
    "q_proj": KIND.Q4_K,
    "k_proj": KIND.Q5_K,
    "v_proj": KIND.Q6_K,
    "o_proj": KIND.Q4_0,
    "gate_proj": KIND.Q5_K,
    "up_proj": KIND.Q4_K,
    "down_proj": KIND.Q8_0,
    "embed_tokens": KIND.Q6_K,
}


def random_blocks(kind: KIND, like: np.ndarray, seed: np.random.Generator) -> np.ndarray:
    """Random blocks [rows, bytes] whose numbers spread as those of `like` do."""
    size, width = gguf.GGML_QUANT_SIZES[kind]
    blocks = seed.integers(0, 256, (like.size // size, width), dtype=np.uint8)

    def set_factors(d: float) -> None:
        values = [d, d * CENTRE.get(kind, 0.0)]
        for offset, value in zip(FACTORS[kind], values, strict=False):
            blocks[:, offset : offset + 2] = np.full(len(blocks), value, np.float16).view(np.uint8).reshape(-1, 2)

    set_factors(1.0)
    spread = gguf.dequantize(blocks, kind).std()
    set_factors(float(like.std() / spread))
    # Each block its own factor, so that one read from the wrong block shows.
    for offset in FACTORS[kind]:
        factor = np.ascontiguousarray(blocks[:, offset : offset + 2]).view(np.float16).astype(np.float32)
        factor *= seed.uniform(0.8, 1.25, factor.shape).astype(np.float32)
        blocks[:, offset : offset + 2] = factor.astype(np.float16).view(np.uint8)
    return blocks.reshape(like.shape[0], -1)


def quantise(spec: Spec, model: Any) -> dict[str, tuple[KIND, np.ndarray]]:
    """Blocks for every matrix, and the model's own parameters set to what they say."""
    seed = np.random.default_rng(spec.seed)
    config, blocks = model.config, {}
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
    for index, (name, parameter) in enumerate((n, p) for n, p in model.named_parameters() if p.dim() == 2):
        part = name.split(".")[-2]
        kind = K_KINDS[part] if spec is K_SPEC else LEGACY[index % len(LEGACY)]
        value = gguf_twin.converted(spec, config, name, parameter.detach().numpy()).astype(np.float32)
        packed = random_blocks(kind, value, seed) if kind in FACTORS else gguf.quantize(value, kind)
        exact = gguf.dequantize(packed, kind)
        if part in heads:  # back from adjacent pairs to half-split ones
            n = heads[part]
            exact = exact.reshape(n, exact.shape[0] // n // 2, 2, -1).swapaxes(1, 2).reshape(exact.shape)
        with torch.no_grad():
            parameter.copy_(torch.from_numpy(exact.astype(np.float64)))
        blocks[name] = (kind, packed)
    return blocks


def make(spec: Spec, out: pathlib.Path) -> list[dict[str, Any]]:
    folder = out / spec.name
    folder.mkdir(parents=True, exist_ok=True)
    with reference.wide():
        model, _ = models.build(spec)
        blocks = quantise(spec, model)
        made = models.texts(spec, spec.lengths)
        arrays, remarks = models.expectations(spec, model, made)
        unread = models.insensitive(spec, model, made)
    gguf_twin.write(folder / "model.gguf", spec, model, blocks)
    write_expected(folder / "expected.safetensors", arrays)
    size = sum(f.stat().st_size for f in folder.iterdir())
    print(f"{spec.name}: {size} bytes; {', '.join(remarks)}", f"; nothing reads {unread}" if unread else "", flush=True)
    return [
        {
            "name": f"{spec.name}.gguf",
            "family": "llama",
            "kind": spec.kind,
            "path": f"{spec.name}/model.gguf",
            "expected": f"{spec.name}/expected.safetensors",
            "texts": len(made),
            "exercises": spec.exercises,
            "unread": unread,
        }
    ]


SPECS = [LEGACY_SPEC, K_SPEC]
