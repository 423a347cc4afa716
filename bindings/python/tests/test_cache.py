"""Keys and values between calls: the numbers, and the bits, of attention over plain arrays."""

import numpy as np
import pytest

import glasshead
from reference import attend, causal

sdpa = glasshead.scaled_dot_product_attention


@pytest.mark.parametrize("storage", [{}, {"page_size": 16}, {"capacity": 100}])
def test_decoding_gives_the_bits_of_one_call(qkv, storage):
    q, k, v = qkv(q_len=50, kv_len=50, batch=1, dtype=np.float32)
    whole = sdpa(q, k, v, is_causal=True, enable_gqa=True)
    np.testing.assert_allclose(whole, attend(q, k, v, causal(50, 50)), rtol=5e-6, atol=5e-6)
    cache = glasshead.KvCache(2, 8, 6, **storage)
    cache.append(k[:, :, :30], v[:, :, :30])
    assert np.array_equal(cache.attend(q[:, :, :30], is_causal=True), whole[:, :, :30])
    for n in range(30, 50):
        cache.append(k[0, :, n : n + 1], v[0, :, n : n + 1], sequence=0)
        assert np.array_equal(cache.attend(q[:, :, n : n + 1], is_causal=True), whole[:, :, n : n + 1])
    assert cache.length() == 50 and cache.first() == 0 and cache.sequences == 1 and cache.bytes > 0


def test_a_ring_keeps_the_last_keys(qkv):
    q, k, v = qkv(q_len=90, kv_len=90, batch=1)
    cache = glasshead.KvCache(2, 8, 6, dtype="f64", ring=16)
    whole = sdpa(q, k, v, is_causal=True, window=(8, 0), enable_gqa=True)
    for n in range(90):
        cache.append(k[:, :, n : n + 1], v[:, :, n : n + 1])
        assert np.array_equal(cache.attend(q[:, :, n : n + 1], is_causal=True, window=(8, 0)), whole[:, :, n : n + 1])
    assert cache.first() > 0


def test_forks_go_their_own_way(qkv):
    q, k, v = qkv(q_len=1, kv_len=40, batch=1)
    cache = glasshead.KvCache(2, 8, 6, dtype="f64")
    cache.append(k[:, :, :30], v[:, :, :30])
    other = cache.fork()
    cache.append(k[0, :, 30:], v[0, :, 30:], sequence=other)
    assert (cache.length(0), cache.length(other)) == (30, 40)
    for sequence, length in ((0, 30), (other, 40)):
        out = cache.attend(q, sequences=[sequence])
        np.testing.assert_allclose(out, attend(q, k[:, :, :length], v[:, :, :length]), rtol=1e-13)
    cache.truncate(20, other)
    np.testing.assert_allclose(cache.attend(q, sequences=[other]), attend(q, k[:, :, :20], v[:, :, :20]), rtol=1e-13)
    assert "lengths [30, 20]" in repr(cache)


@pytest.mark.parametrize("dtype, unit", [("bf16", 2.0**-8), ("f16", 2.0**-11), ("int8", 1 / 254)])
def test_what_is_stored_in_fewer_bits_is_rounded_once(qkv, dtype, unit):
    _, k, v = qkv(kv_len=1, batch=1)
    cache = glasshead.KvCache(2, 8, 6, dtype=dtype)
    cache.append(k, v)
    out = cache.attend(np.zeros((1, 2, 1, 8), np.float32))  # of a single key: its value
    wanted = v.astype(np.float64)
    bound = unit * np.abs(wanted).max(axis=-1, keepdims=True) if dtype == "int8" else unit * np.abs(wanted)
    assert np.all(np.abs(out - wanted) <= bound * 1.001) and np.any(out != wanted)


def test_all_sequences_at_once_with_lengths_of_their_own(qkv):
    q, k, v = qkv(q_len=1, kv_len=12, batch=3)
    cache = glasshead.KvCache(2, 8, 6, batch=3, dtype="f64")
    lengths = [12, 5, 9]
    for sequence, length in enumerate(lengths):
        cache.append(k[sequence, :, :length], v[sequence, :, :length], sequence)
    out, rows = cache.attend(q, return_rows=True)
    allowed = (np.arange(12) < np.array(lengths)[:, None])[:, None, None, :]
    np.testing.assert_allclose(out, attend(q, k, v, allowed), rtol=1e-13)
    assert rows.lse.shape == (3, 4, 1)


def test_everything_wrong_is_told(qkv):
    q, k, v = qkv(batch=1)
    with pytest.raises(glasshead.OptionError, match="contradict"):
        glasshead.KvCache(2, 8, page_size=16, ring=32)
    with pytest.raises(glasshead.OptionError, match="f64, f32, bf16, f16, int8"):
        glasshead.KvCache(2, 8, dtype="float32")
    cache = glasshead.KvCache(2, 8, 6, capacity=16)
    with pytest.raises(glasshead.Error):
        cache.append(k, v, sequence=3)
    with pytest.raises(glasshead.Error):
        cache.append(v, k)
    cache.append(k[:, :, :5], v[:, :, :5])
    with pytest.raises(glasshead.Error, match="16"):
        cache.append(np.repeat(k, 2, axis=2), np.repeat(v, 2, axis=2))
    assert cache.length() == 5
