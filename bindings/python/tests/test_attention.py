"""What is computed, against a few lines of float64 NumPy."""

import math

import numpy as np
import pytest

import glasshead
from reference import attend, causal, scores, weights_of, window

sdpa = glasshead.scaled_dot_product_attention
# Of sums of a few dozen numbers around 1: some roundings of the type that is computed in.
CLOSE = {np.float64: 1e-13, np.float32: 5e-6}


def same(found, wanted, dtype=np.float64):
    np.testing.assert_allclose(np.asarray(found, np.float64), wanted, rtol=CLOSE[dtype], atol=CLOSE[dtype])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_heads_share_keys_and_values_of_another_size(qkv, dtype):
    q, k, v = qkv(dtype=dtype)
    out = sdpa(q, k, v, enable_gqa=True)
    assert out.dtype == dtype and out.shape == (2, 4, 7, 6)
    same(out, attend(q, k, v), dtype)


def test_leading_axes_may_be_left_out(qkv):
    q, k, v = qkv(heads=1, kv_heads=1, batch=1)
    for axes in (2, 3):
        small = [x.reshape(x.shape[-axes:]) for x in (q, k, v)]
        out, lse = sdpa(*small, return_lse=True)
        assert out.shape == (*small[0].shape[:-1], 6) and lse.shape == small[0].shape[:-1]
        same(out, attend(q, k, v).reshape(out.shape))


def test_a_boolean_attn_mask_says_who_takes_part(qkv, rng):
    q, k, v = qkv(q_len=5, kv_len=9)
    for shape in [(5, 9), (1, 9), (4, 5, 9), (2, 1, 5, 9)]:
        allowed = rng.random(shape) < 0.6
        same(sdpa(q, k, v, allowed, enable_gqa=True), attend(q, k, v, allowed))


def test_a_floating_attn_mask_is_added_and_minus_infinity_hides(qkv, rng):
    q, k, v = qkv(q_len=5, kv_len=9)
    bias = rng.standard_normal((4, 5, 9))
    bias[:, :, ::3] = -np.inf
    finite = np.isfinite(bias)
    same(sdpa(q, k, v, bias, enable_gqa=True), attend(q, k, v, finite, bias=np.where(finite, bias, 0)))


def test_causal_over_unequal_lengths_is_refused_until_a_corner_is_named(qkv):
    q, k, v = qkv(q_len=3, kv_len=5)
    with pytest.raises(glasshead.OptionError) as refused:
        sdpa(q, k, v, is_causal=True, enable_gqa=True)
    assert [problem.where for problem in refused.value.problems] == ["query_start"]
    assert "q_len is 3, kv_len is 5" in str(refused.value)
    for how, start in [({"align": "start"}, 0), ({"align": "end"}, 2), ({"query_start": 1}, 1)]:
        same(sdpa(q, k, v, is_causal=True, enable_gqa=True, **how), attend(q, k, v, causal(3, 5, start)))


def test_masks_intersect(qkv, rng):
    q, k, v = qkv(q_len=9, kv_len=9)
    mask = rng.random((9, 9)) < 0.8
    lengths = np.array([9, 6])
    allowed = causal(9, 9) & window(9, 9, 4, None) & mask & (np.arange(9) < lengths[:, None])[:, None, None, :]
    out = sdpa(q, k, v, is_causal=True, window=(4, None), mask=mask, key_lengths=lengths, enable_gqa=True)
    same(out, attend(q, k, v, allowed))


def test_segments_and_prefixes(qkv):
    q, k, v = qkv(q_len=6, kv_len=6)
    ids = np.array([[0, 0, 1, 1, 1, 2], [3, 3, 3, 3, 4, 4]])
    allowed = (ids[:, :, None] == ids[:, None, :])[:, None]
    same(sdpa(q, k, v, segments=ids, enable_gqa=True), attend(q, k, v, allowed))
    same(sdpa(q, k, v, segments=(ids[0], ids[0].tolist()), enable_gqa=True), attend(q, k, v, allowed[:1]))
    prefixed = causal(6, 6) | (np.arange(6) < 2)[None, :]
    same(sdpa(q, k, v, prefix=2, enable_gqa=True), attend(q, k, v, prefixed))


def test_scale_softcap_and_biases_come_in_this_order(qkv, rng):
    q, k, v = qkv()
    first, second = rng.standard_normal((7, 7)), rng.standard_normal((4, 1, 7))
    out = sdpa(q, k, v, scale=-0.3, softcap=1.5, bias=[first, second], enable_gqa=True)
    same(out, attend(q, k, v, scale=-0.3, softcap=1.5, bias=first + second))


def test_alibi_is_that_of_its_paper(qkv):
    q, k, v = qkv()
    slopes = np.array([2.0 ** (-2 * (h + 1)) for h in range(4)])  # Press, Smith, Lewis 2022, section 3: 8 / 4 heads
    assert glasshead.alibi_slopes(4) == slopes.tolist()
    distance = np.abs(np.arange(7)[:, None] - np.arange(7)[None, :])
    same(sdpa(q, k, v, alibi=True, enable_gqa=True), attend(q, k, v, bias=-slopes[:, None, None] * distance))
    same(
        sdpa(q, k, v, alibi=slopes, alibi_form="key_index", enable_gqa=True),
        attend(q, k, v, bias=slopes[:, None, None] * np.arange(7)),
    )


def t5_bucket(relative, buckets, is_bidirectional, max_distance):
    """Raffel et al. 2020, section 2.1: half of the buckets one by one, the others on a logarithmic scale."""
    bucket = 0
    if is_bidirectional:
        buckets //= 2
        bucket = buckets if relative > 0 else 0
        distance = abs(relative)
    else:
        distance = max(0, -relative)
    exact = buckets // 2
    if distance < exact:
        return bucket + distance
    logarithmic = exact + int(math.log(distance / exact) / math.log(max_distance / exact) * (buckets - exact))
    return bucket + min(logarithmic, buckets - 1)


@pytest.mark.parametrize("is_bidirectional", [True, False])
def test_t5_has_a_bucket_for_each_distance(qkv, rng, is_bidirectional):
    q, k, v = qkv(q_len=40, kv_len=40)
    table = rng.standard_normal((8, 4))
    bias = np.array(
        [[table[t5_bucket(j - i, 8, is_bidirectional, 20)] for j in range(40)] for i in range(40)]
    ).transpose(2, 0, 1)
    out = sdpa(q, k, v, t5=glasshead.T5(table, is_bidirectional, 20), enable_gqa=True)
    same(out, attend(q, k, v, bias=bias))


def test_sinks_join_the_sum_and_have_no_value(qkv, rng):
    q, k, v = qkv()
    sinks = rng.standard_normal(4)
    out, rows = sdpa(q, k, v, sinks=sinks, is_causal=True, enable_gqa=True, return_rows=True)
    same(out, attend(q, k, v, causal(7, 7), sinks))
    same(rows.lse, weights_of(scores(q, k), causal(7, 7), sinks)[1])
    same(rows.max + np.log(rows.sum), rows.lse)


def test_a_row_without_a_key_is_zero_or_an_error_as_asked(qkv):
    q, k, v = qkv(q_len=2, kv_len=3)
    mask = np.array([[True, True, False], [False, False, False]])
    out, lse = sdpa(q, k, v, mask=mask, enable_gqa=True, return_lse=True)
    assert not out[:, :, 1].any() and np.all(lse[:, :, 1] == -np.inf)
    with pytest.raises(glasshead.OptionError, match="no allowed key"):
        sdpa(q, k, v, mask=mask, enable_gqa=True, empty_row="error")


def test_what_hidden_keys_hold_does_not_matter(qkv):
    q, k, v = qkv()
    poisoned_k, poisoned_v = k.copy(), v.copy()
    poisoned_k[:, :, 5:], poisoned_v[:, :, 5:] = np.nan, np.inf
    wanted = sdpa(q, k, v, key_lengths=5, enable_gqa=True)
    assert np.array_equal(sdpa(q, poisoned_k, poisoned_v, key_lengths=5, enable_gqa=True), wanted)


def test_dropout_drops_the_share_asked_for_and_scales_the_rest(rng):
    n, p = 400, 0.3
    q, k = np.zeros((1, 1, n, 4)), np.zeros((1, 1, n, 4))
    v = np.eye(n)[None, None]  # the output is the weights
    out = sdpa(q, k, v, dropout_p=p, dropout_seed=7)
    kept = out > 0
    np.testing.assert_allclose(out[kept], 1 / n / (1 - p), rtol=1e-12)
    share = kept.mean()  # of n^2 independent draws: five standard deviations
    assert abs(share - (1 - p)) < 5 * math.sqrt(p * (1 - p)) / n
    assert np.array_equal(out, sdpa(q, k, v, dropout_p=p, dropout_seed=7))
    assert not np.array_equal(out, sdpa(q, k, v, dropout_p=p, dropout_seed=8))


def test_threads_and_instruction_sets_change_no_bit(qkv):
    q, k, v = qkv(q_len=33, kv_len=300, dtype=np.float32)
    wanted = sdpa(q, k, v, enable_gqa=True)
    for isa, is_supported, _ in glasshead.kernel_sets():
        if is_supported:
            for threads in (1, 3):
                context = glasshead.Context(isa=isa, threads=threads)
                assert (context.isa, context.threads) == (isa, threads)
                assert np.array_equal(sdpa(q, k, v, enable_gqa=True, context=context), wanted)


def test_a_set_that_rounds_is_named_or_refused(qkv):
    q, k, v = qkv(q_len=33, kv_len=300, dtype=np.float32)
    wanted = sdpa(q, k, v, enable_gqa=True)
    for isa, is_supported, lacks in glasshead.rounding_kernel_sets():
        if not is_supported:
            with pytest.raises(ValueError, match=f'"{isa}" needs {lacks.split()[0]}'):
                glasshead.Context(isa=isa)
            continue
        outs = [sdpa(q, k, v, enable_gqa=True, context=glasshead.Context(isa=isa, threads=n)) for n in (1, 3)]
        assert np.array_equal(outs[0], outs[1])
        # 4 times 2^-8 / sqrt(3): `glasshead bench` says why
        assert 0 < np.linalg.norm(outs[0] - wanted) < 4 * 2**-8 / math.sqrt(3) * np.linalg.norm(wanted)


def test_a_plan_says_what_is_skipped(qkv):
    q, k, v = qkv(q_len=400, kv_len=400, dtype=np.float32)
    one = glasshead.Context(threads=1)
    full = glasshead.plan_attend(q, k, v, True, context=one)
    half = glasshead.plan_attend(q, k, v, True, is_causal=True, context=one)
    assert full.tiles.none == full.tiles.some == 0 and full.tiles.all > 0
    assert half.tiles.none > 0 and half.tiles.some > 0 and sum(half.tiles) == sum(full.tiles)
    assert full.compute == "f32" and full.threads == 1 and full.isa == one.isa and full.scratch_bytes > 0
    with pytest.raises(glasshead.Error, match="enable_gqa"):
        glasshead.plan_attend(q, k, v)
    cache = glasshead.KvCache(2, 8, 6, batch=2)
    cache.append(k, v)
    assert cache.plan_attend(q[:, :, -1:]).form == "rows" and cache.plan_attend(q, is_causal=True).tiles.none > 0
