"""Masks by rule."""

import numpy as np
import pytest

import glasshead
from glasshead import _options
from reference import attend, causal, scores, weights_of

sdpa = glasshead.scaled_dot_product_attention


def test_a_rule_of_positions_is_a_mask(qkv):
    q, k, v = qkv(q_len=9, kv_len=12)
    far = np.arange(12)[None, :] - np.arange(9)[:, None] - 3
    for how in ({"align": "end"}, {"query_start": 3}):
        out = sdpa(q, k, v, where=lambda b, h, i, j: (i - j) % 3 == 0, enable_gqa=True, **how)
        np.testing.assert_allclose(out, attend(q, k, v, far % 3 == 0), rtol=1e-12, atol=1e-13)
    both = sdpa(q, k, v, where=lambda b, h, i, j: (i - j) % 3 == 0, is_causal=True, align="end", enable_gqa=True)
    np.testing.assert_allclose(both, attend(q, k, v, (far % 3 == 0) & causal(9, 12, 3)), rtol=1e-12, atol=1e-13)


def test_a_rule_may_look_at_batch_head_and_tables(qkv):
    q, k, v = qkv(q_len=8, kv_len=8)
    document = np.array([[0, 0, 0, 1, 1, 1, 1, 2], [0, 1, 1, 1, 1, 2, 2, 2]])

    def rule(b, h, i, j):
        return (document[b, i] == document[b, j]) & ((h % 2 == 0) | (j <= i))

    same = (document[:, :, None] == document[:, None, :])[:, None]
    allowed = same & ((np.arange(4) % 2 == 0)[:, None, None] | causal(8, 8))
    np.testing.assert_allclose(sdpa(q, k, v, where=rule, enable_gqa=True), attend(q, k, v, allowed), atol=1e-13)
    weights = glasshead.attention_weights(q, k, where=rule)
    np.testing.assert_allclose(weights, weights_of(scores(q, k), allowed)[0], atol=1e-14)
    trace = glasshead.trace(q[0], k[0], v[0], where=lambda b, h, i, j: j <= i)
    np.testing.assert_allclose(trace["out"], attend(q, k, v, causal(8, 8))[0], atol=1e-13)
    assert glasshead.diagnose(q, k, v, out=attend(q, k, v, allowed), where=rule).is_right


def test_what_a_rule_does_not_look_at_is_not_stored(monkeypatch):
    assert glasshead.allowed_where(lambda b, h, i, j: j <= i, 8, 16, 5, 7).shape == (1, 1, 5, 7)
    monkeypatch.setattr(_options, "_PAIRS_AT_ONCE", 3 * 8 * 16 * 7)  # rows in three parts
    for rule in (lambda b, h, i, j: j <= i, lambda b, h, i, j: j < 3, lambda b, h, i, j: (b + h + i + j) % 2 == 0):
        parts = glasshead.allowed_where(rule, 8, 16, 7, 7, query_start=2)
        b, h, i, j = np.ogrid[:8, :16, 2:9, :7]
        assert np.array_equal(np.broadcast_to(parts, (8, 16, 7, 7)), np.broadcast_to(rule(b, h, i, j), (8, 16, 7, 7)))


def test_a_wrong_rule_is_told(qkv):
    q, k, v = qkv(q_len=3, kv_len=5)
    with pytest.raises(glasshead.OptionError, match="where: speaks of positions"):
        sdpa(q, k, v, where=lambda b, h, i, j: j <= i, enable_gqa=True)
    with pytest.raises(TypeError, match="float64"):
        sdpa(q, k, v, where=lambda b, h, i, j: 1.0 * (j <= i), align="end", enable_gqa=True)
    with pytest.raises(ZeroDivisionError):
        sdpa(q, k, v, where=lambda b, h, i, j: 1 // 0, align="end", enable_gqa=True)
    with pytest.raises(glasshead.OptionError, match="cache"):
        glasshead.KvCache(2, 8).attend(q, where=lambda b, h, i, j: j <= i)
    assert [p.where for p in glasshead.check(q, k, v, True, where=lambda b, h, i, j: j <= i)] == ["where"]
