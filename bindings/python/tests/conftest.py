import numpy as np
import pytest


@pytest.fixture
def rng():
    return np.random.default_rng(20260101)


@pytest.fixture
def qkv(rng):
    """q, k, v of standard normal numbers."""

    def make(q_len=7, kv_len=7, heads=4, kv_heads=2, d_k=8, d_v=6, batch=2, dtype=np.float64):
        shapes = (batch, heads, q_len, d_k), (batch, kv_heads, kv_len, d_k), (batch, kv_heads, kv_len, d_v)
        return tuple(rng.standard_normal(shape).astype(dtype) for shape in shapes)

    return make
