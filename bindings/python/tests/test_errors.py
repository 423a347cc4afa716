"""Bad calls: refused before anything is computed, with all that is wrong, in the library's words."""

import inspect
import pickle

import numpy as np
import pytest

import glasshead
from glasshead.testing import assert_attention_close

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


def test_values_of_any_kind_are_told_with_the_others(qkv):
    q, k, v = qkv(heads=2)
    table = np.zeros((32, 2))
    found = problems(
        q, k, v, softcap="soft", scale=[1, 2], dropout_p=[0.1, 0.2], dropout_seed=2**64, query_start=2**70,
        window=([1, 2], 0), t5=glasshead.T5(table, max_distance="far"), align=3, key_lengths=[],
    )  # fmt: skip
    assert {"softcap", "scale", "dropout_p", "dropout_seed", "query_start", "window", "t5", "align"} <= set(found)
    np.testing.assert_array_equal(sdpa(q, k, v, softcap=None, dropout_p=np.float32(0)), sdpa(q, k, v))


def test_an_unknown_keyword_is_refused_in_the_functions_name_with_the_one_that_was_meant(qkv):
    q, k, v = qkv(heads=2)
    cache = glasshead.KvCache(2, q.shape[-1])
    shared = "key/value heads that several query heads share are read from the shapes"
    for call, text in [
        (
            lambda: sdpa(q, k, v, causal=True),
            r"scaled_dot_product_attention\(\) .*'causal'. Did you mean 'is_causal'\?",
        ),
        (
            lambda: glasshead.attention_weights(q, k, causal=True),
            r"attention_weights\(\) .* Did you mean 'is_causal'\?",
        ),
        (lambda: glasshead.weight_maps(q, k, cell_row=2), r"weight_maps\(\) .* Did you mean 'cell_rows'\?"),
        (lambda: glasshead.check(q, k, v, attention_mask=None), r"check\(\) .* Did you mean 'attn_mask'\?"),
        (lambda: glasshead.make_probe(causal=True), r"make_probe\(\) .* Did you mean 'is_causal'\?"),
        (lambda: glasshead.make_probe(rotary="halves"), r"make_probe\(\) .* Did you mean 'rope'\?"),
        (lambda: glasshead.diagnose(q, k, v, out=v, enable_gqa=True), rf"diagnose\(\) .*'enable_gqa': {shared}"),
        (lambda: assert_attention_close(v, q, k, v, enable_gqa=True), rf"assert_attention_close\(\) .*: {shared}"),
        (lambda: glasshead.trace(q[0], k[0], v[0], labels="AB"), r"trace\(\) .* Did you mean '\w*labels'\?"),
        (lambda: glasshead.trace_case("three-tokens", hidden=["C"]), r"trace_case\(\) .* Did you mean 'hide'\?"),
        (lambda: glasshead.audit(sdpa, take=["mask"]), r"audit\(\) .* Did you mean 'takes'\?"),
        (lambda: cache.attend(q, return_state=True), r"KvCache.attend\(\) .* Did you mean 'return_\w+'\?"),
        (
            lambda: glasshead.check(q, k, v, xyz=1),
            r"check\(\) .*'xyz'; there are query, key, value, enable_gqa, attn_mask, ",
        ),
    ]:
        with pytest.raises(TypeError, match=text):
            call()


def test_signatures_show_every_keyword():
    shown = inspect.signature(glasshead.diagnose).parameters
    assert {"out", "rope", "is_causal", "window", "sinks"} <= set(shown)
    assert shown["scale"].default is None and shown["empty_row"].default == "zero"
    assert inspect.signature(glasshead.trace).parameters["empty_row"].default == "error"
    assert not any(p.kind is p.VAR_KEYWORD for p in shown.values())


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
