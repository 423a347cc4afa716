"""Makes the .safetensors files beside it, which docs/port.md diagnoses: `make.py`, with NumPy.

neighbours.safetensors: tests/data/models/llama in NumPy (../ported.py), pairs taken from neighbours; every place.
hidden.safetensors: tests/data/models/gemma2, scaled embedding in bf16 and window of one more; hidden states by names of
their own, as a program that keeps `hidden_states` would have them.
"""
import pathlib
import sys

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import ported  # noqa: E402

MODELS = HERE.parent.parent / "data" / "models"
IDS = np.array([5, 17, 42, 8, 33, 61, 12, 7])

ported.write(HERE / "neighbours.safetensors", {"input_ids": IDS, **ported.llama(MODELS / "llama", IDS, "neighbours")})

seen = ported.llama(MODELS / "gemma2", IDS, "embedding scale in bf16", "window one more")
states = [seen["decoder.0.in"], seen["decoder.1.in"]]
ported.write(HERE / "hidden.safetensors", {
    "input_ids": IDS[None], **{f"hidden_states.{n}": state[None] for n, state in enumerate(states)},
    "norm": seen["final_norm"][None], "lm_head": seen["logits"][None]})
