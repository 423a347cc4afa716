"""Arrays of every kind and layout: read where they lie, results of the same kind."""

import array
import subprocess
import sys

import numpy as np
import pytest

import glasshead
from reference import attend

sdpa = glasshead.scaled_dot_product_attention


def test_any_strides_give_the_same_bits(qkv):
    q, k, v = qkv(q_len=11, kv_len=11)
    wanted = sdpa(q, k, v, enable_gqa=True)

    def interleaved(x):  # [batch, length, heads, size] in memory
        return np.ascontiguousarray(x.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3)

    def backwards(x):
        return x[:, :, ::-1, ::-1].copy()[:, :, ::-1, ::-1]

    def spread(x):
        wide = np.zeros((*x.shape[:-1], 3 * x.shape[-1]))
        wide[..., ::3] = x
        return wide[..., ::3]

    for layout in (interleaved, backwards, spread, np.asfortranarray):
        assert np.array_equal(sdpa(layout(q), layout(k), layout(v), enable_gqa=True), wanted)
    one = k[:1, :1]
    shared = np.broadcast_to(one, k.shape), np.broadcast_to(v[:1, :1], v.shape)
    assert np.array_equal(sdpa(q, *shared, enable_gqa=True), sdpa(q, *(x.copy() for x in shared), enable_gqa=True))


def test_what_cannot_be_written_can_be_read(qkv):
    arrays = qkv(heads=2)
    wanted = sdpa(*arrays)
    for x in arrays:
        x.flags.writeable = False
    assert np.array_equal(sdpa(*arrays), wanted)


def test_float16_is_rounded_once(qkv):
    q, k, v = qkv(heads=2, dtype=np.float16)
    out = sdpa(q, k, v)
    assert out.dtype == np.float16
    wanted = attend(q, k, v)
    assert np.all(np.abs(out - wanted) <= 2.0**-11 * np.abs(wanted) * 1.01 + 1e-6)


def test_bfloat16_is_rounded_once(qkv):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    q, k, v = (x.astype(ml_dtypes.bfloat16) for x in qkv(heads=2))
    for layout in (np.asarray, lambda x: x[:, :, ::-1].copy()[:, :, ::-1]):
        out, lse = sdpa(layout(q), layout(k), layout(v), return_lse=True)
        assert out.dtype == ml_dtypes.bfloat16 and lse.dtype == np.float32
        wanted = attend(q, k, v)
        assert np.all(np.abs(out.astype(np.float64) - wanted) <= 2.0**-8 * np.abs(wanted) * 1.01 + 1e-6)


def test_buffers_of_others_give_numpy(qkv):
    q, k, v = (x[0, 0] for x in qkv())
    buffers = [memoryview(x) for x in (q, k, v)]
    out = sdpa(*buffers)
    assert isinstance(out, np.ndarray) and np.array_equal(out, sdpa(q, k, v))
    flat = array.array("d", [1.0, 2.0])
    assert np.array_equal(sdpa(q, k, v, sinks=None, key_lengths=array.array("q", [7])), out)
    with pytest.raises(glasshead.Error):
        sdpa(flat, flat, flat)


class OnlyDlpack:
    """What a library that is not known here hands out."""

    def __init__(self, x):
        self.x = x

    def __dlpack__(self, **options):
        return self.x.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()

    shape = property(lambda self: self.x.shape)


def test_dlpack_of_others_gives_numpy(qkv):
    arrays = qkv(heads=2)
    out = sdpa(*(OnlyDlpack(x) for x in arrays))
    assert isinstance(out, np.ndarray) and np.array_equal(out, sdpa(*arrays))


ZERO_COPY = """
import resource, sys
import numpy as np
import glasshead
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
n, d = 500_000, 64  # 128 MB each
whole = np.zeros((n, 2, d), np.float32)
whole[:] = 1
k, v = whole[:, :1].transpose(1, 0, 2)[None], whole[:, 1:].transpose(1, 0, 2)[None]  # strided views of one array
q = np.ones((1, 1, 1, d), np.float32)
glasshead.scaled_dot_product_attention(q, k[:, :, :5000], v[:, :, :5000], mask=np.ones((1, 5000), bool))
before = peak()
out = glasshead.scaled_dot_product_attention(q, k, v, mask=np.ones((1, 1, 1, n), bool))
assert np.allclose(out, 1)
print(peak() - before)
"""


def test_nothing_is_copied():
    """Beside 256 MB of strided keys and values a call takes a few MB."""
    done = subprocess.run([sys.executable, "-c", ZERO_COPY], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 16 * 1024, f"{done.stdout} KiB more"


def test_jax_in_jax_out(qkv):
    jax = pytest.importorskip("jax")
    q, k, v = qkv(heads=2, dtype=np.float32)
    for dtype in (jax.numpy.float32, jax.numpy.bfloat16, jax.numpy.float16):
        arrays = [jax.numpy.asarray(x, dtype) for x in (q, k, v)]
        out = sdpa(*arrays, is_causal=True)
        assert isinstance(out, jax.Array) and out.dtype == dtype
        same = sdpa(*(np.asarray(x) for x in arrays), is_causal=True)
        assert np.array_equal(np.asarray(out).view(np.uint8), np.asarray(same).view(np.uint8))
    keys, weights = glasshead.top_weights(arrays[0], arrays[1], 2)
    assert isinstance(keys, jax.Array) and isinstance(weights, jax.Array) and keys.shape == (2, 2, 7, 2)


def test_torch_in_torch_out(qkv):
    torch = pytest.importorskip("torch")
    q, k, v = qkv(heads=2, dtype=np.float32)
    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.float64):
        arrays = [torch.from_numpy(x).to(dtype) for x in (q, k, v)]
        turned = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in arrays]
        out = sdpa(*turned, is_causal=True)
        assert isinstance(out, torch.Tensor) and out.dtype == dtype
        assert torch.equal(out, sdpa(*arrays, is_causal=True))
        wide = sdpa(*(x.to(torch.float64).numpy() for x in arrays), is_causal=True)
        unit = {torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11, torch.float32: 1e-5, torch.float64: 1e-13}[dtype]
        assert np.all(np.abs(out.to(torch.float64).numpy() - wide) <= unit * np.abs(wide) * 1.01 + 1e-5)


def test_a_tensor_that_wants_a_gradient_is_refused(qkv):
    torch = pytest.importorskip("torch")
    q, k, v = (torch.from_numpy(x) for x in qkv(heads=2))
    with pytest.raises(glasshead.OptionError, match="k: .*gradient"):
        sdpa(q, k.requires_grad_(), v)
