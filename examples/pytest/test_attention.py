"""Tests of one's own attention: what fails says why.

Run with `pytest examples/pytest`, where glasshead is installed.
"""

import numpy as np
import pytest

import glasshead
from glasshead.testing import assert_attention_close


def my_attention(q, k, v):
    """The attention under test: causal, in float32, two query heads for each key/value head."""
    k, v = np.repeat(k, 2, axis=1), np.repeat(v, 2, axis=1)
    scores = q @ k.transpose(0, 1, 3, 2) / np.float32(np.sqrt(q.shape[-1]))
    scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True) @ v


@pytest.mark.parametrize("length", [1, 17, 33, 64, 127])
def test_random_inputs(length):
    rng = np.random.default_rng(length)
    q = rng.standard_normal((2, 4, length, 16), np.float32)
    k, v = rng.standard_normal((2, 2, 2, length, 16), np.float32)
    assert_attention_close(my_attention(q, k, v), q, k, v, is_causal=True)


def test_inputs_that_show_every_mistake():
    probe = glasshead.make_probe(heads=4, kv_heads=2, q_len=20, kv_len=20, d_k=16, is_causal=True)
    diagnosis = probe.diagnose(my_attention(probe.q, probe.k, probe.v))
    assert diagnosis.is_right, str(diagnosis)
