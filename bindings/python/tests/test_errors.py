"""Bad calls: refused before anything is computed, with all that is wrong, in the library's words."""

import pickle

import numpy as np
import pytest

import glasshead

sdpa = glasshead.scaled_dot_product_attention


def problems(*arrays, **options):
    with pytest.raises(glasshead.Error) as refused:
        sdpa(*arrays, **options)
    error = refused.value
    assert isinstance(error, ValueError) and error.function == "attend"
    assert str(error) == "\n".join(f"attend: {where}: {what}" for where, what in error.problems)
    assert len(set(error.problems)) == len(error.problems)
    return {problem.where: problem.what for problem in error.problems}


def test_all_problems_come_at_once(qkv):
    q, k, v = qkv(heads=2)
    found = problems(q, k[:, :, :5], v, softcap=-1.0, window=(-1, 0), key_lengths=[9, 9, 9], scale=float("inf"))
    assert {"v", "softcap", "mask.window", "mask.key_lengths", "scale", "query_start"} <= set(found)
    assert "kv_len" in found["v"]


def test_shapes(qkv):
    q, k, v = qkv(heads=3, kv_heads=2)
    assert "3" in problems(q, k, v, enable_gqa=True)["q"]
    with pytest.raises(glasshead.ShapeError):
        sdpa(q, k, v, enable_gqa=True)
    assert "5 axes" in problems(q[None], k, v)["q"]


def test_sharing_heads_must_be_said(qkv):
    assert "enable_gqa=True" in problems(*qkv())["q"]


def test_types(qkv):
    q, k, v = qkv(heads=2)
    assert "int32" in problems(q, k.astype(np.int32), v)["k"]
    assert "f32 where q has f64" in problems(q, k.astype(np.float32), v)["k"]
    assert "list" in problems(q.tolist(), k, v)["q"]
    assert "list" in problems(q, k, v.tolist())["v"]
    assert "complex128" in problems(q, k, v.astype(complex))["v"]
    assert "object" in problems(q, k, v, mask=np.ones((7, 7), object))["mask"]


def test_masks_are_booleans_and_biases_are_numbers(qkv):
    q, k, v = qkv(heads=2)
    assert "bool" in problems(q, k, v, mask=np.zeros((7, 7)))["mask.allowed"]
    assert "int64" in problems(q, k, v, np.ones((7, 7), np.int64))["attn_mask"]
    assert "uint8" in problems(q, k, v, np.ones((7, 7), np.uint8))["attn_mask"]
    assert any("bias" in where for where in problems(q, k, v, np.full((7, 7), np.nan)))


def test_dropout_needs_a_seed(qkv):
    q, k, v = qkv(heads=2)
    assert "missing" in problems(q, k, v, dropout_p=0.1)["dropout_seed"]
    assert "2^64" in problems(q, k, v, dropout_p=0.1, dropout_seed=-1)["dropout_seed"]
    assert "[0, 1)" in problems(q, k, v, dropout_p=1.5, dropout_seed=1)["dropout"]


def test_options_that_are_not_what_they_should_be(qkv):
    q, k, v = qkv(heads=2)
    found = problems(
        q, k, v, align="bottom", window=3, key_lengths=[True], prefix=1.5, alibi_form="x", empty_row="nan", t5=[[]]
    )
    assert {"align", "window", "key_lengths", "prefix", "alibi_form", "empty_row", "t5"} <= set(found)
    assert "query_start" in problems(q, k, v, query_start=0, align="end")["align"]
    with pytest.raises(TypeError):
        glasshead.attention_weights(q, k, causal=True)


def test_check_says_the_same_without_raising(qkv):
    q, k, v = qkv(heads=2)
    assert glasshead.check(q, k, v) == []
    found = glasshead.check(q, k[:, :, :5], v, softcap=-1.0)
    assert [problem.where for problem in found] == ["v", "softcap"]
    assert isinstance(found[0], glasshead.Problem)


def test_both_kinds_of_state_are_one_too_many(qkv):
    with pytest.raises(glasshead.OptionError, match="return_lse"):
        sdpa(*qkv(heads=2), return_lse=True, return_rows=True)


def test_a_context_that_cannot_be(qkv):
    with pytest.raises(glasshead.OptionError, match="scalar"):
        glasshead.Context(isa="avx9000")
    with pytest.raises(glasshead.OptionError, match="threads"):
        glasshead.Context(threads=-1)


def test_exceptions_survive_pickling(qkv):
    with pytest.raises(glasshead.Error) as refused:
        sdpa(*qkv())
    again = pickle.loads(pickle.dumps(refused.value))
    assert type(again) is type(refused.value)
    assert (str(again), again.problems) == (str(refused.value), refused.value.problems)
