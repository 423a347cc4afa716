"""Weights on demand."""

import numpy as np
import pytest

import glasshead
from reference import causal, scores, weights_of


@pytest.fixture
def call(qkv):
    q, k, v = qkv(q_len=20, kv_len=20)
    wanted, _ = weights_of(scores(q, k), causal(20, 20))
    return q, k, v, wanted


def test_all_some_and_single_heads_and_rows(call):
    q, k, _, wanted = call
    chosen = [(None, None), (1, -1), (slice(1, 3), slice(4, 9)), (range(0, 2), range(3, 4)), (-1, slice(None))]
    for heads, rows in chosen:
        weights = glasshead.attention_weights(q, k, heads=heads, rows=rows, is_causal=True)
        index = [slice(i, i + 1 or None) if isinstance(i, int) else i for i in (heads, rows)]
        index = [slice(i.start, i.stop) if isinstance(i, range) else i or slice(None) for i in index]
        np.testing.assert_allclose(weights, wanted[:, index[0], index[1]], rtol=1e-13, atol=1e-15)


def test_hidden_is_exactly_zero(call):
    q, k, _, _ = call
    weights = glasshead.attention_weights(q, k, is_causal=True)
    assert not weights[:, :, ~causal(20, 20)].any()


def test_the_state_of_the_rows_gives_the_same_bits(call):
    q, k, v, _ = call
    _, state = glasshead.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True, return_rows=True)
    wanted = glasshead.attention_weights(q, k, is_causal=True)
    assert np.array_equal(glasshead.attention_weights(q, k, state=state, is_causal=True), wanted)


def test_top_weights_are_the_largest_with_their_keys(call):
    q, k, _, wanted = call
    keys, weights = glasshead.top_weights(q, k, 3, is_causal=True)
    order = np.argsort(-wanted, axis=-1, kind="stable")[..., :3]
    present = np.take_along_axis(np.broadcast_to(causal(20, 20), wanted.shape), order, -1)
    assert np.array_equal(keys, np.where(present, order, -1))
    np.testing.assert_allclose(weights, np.where(present, np.take_along_axis(wanted, order, -1), 0), rtol=1e-13)


def test_maps_are_means_and_maxima_of_cells(call):
    q, k, _, wanted = call
    mean, largest = glasshead.weight_maps(q, k, cell_rows=6, cell_keys=8, is_causal=True)
    assert mean.shape == largest.shape == (2, 4, 4, 3)
    for i in range(4):
        for j in range(3):
            cell = wanted[:, :, 6 * i : 6 * i + 6, 8 * j : 8 * j + 8]
            np.testing.assert_allclose(mean[:, :, i, j], cell.mean(axis=(2, 3)), rtol=1e-12, atol=1e-15)
            np.testing.assert_allclose(largest[:, :, i, j], cell.max(axis=(2, 3)), rtol=1e-12, atol=1e-15)


def test_a_wrong_range_is_refused(call):
    q, k, _, _ = call
    for heads in (4, slice(0, 4, 2), "all", True):
        with pytest.raises(glasshead.Error):
            glasshead.attention_weights(q, k, heads=heads)


def test_leading_axes_may_be_left_out(call):
    q, k, _, _ = call
    wanted = glasshead.attention_weights(q, k, heads=0)
    assert np.array_equal(glasshead.attention_weights(q[0, 0], k[0, 0]), wanted[0, 0])
    assert np.array_equal(glasshead.attention_weights(q[1], k[1], heads=0), wanted[1])
