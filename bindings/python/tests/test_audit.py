"""glasshead.audit: functions with known faults, crashes and hangs among them, and the library's own."""

import importlib
import os
import signal
import sys
import time
import types

import numpy as np
import pytest

import glasshead
from glasshead import _audit


def plain(q, k, v, mask=None):
    """Three lines of NumPy: no answer to a row that sees nothing."""
    scores = q @ np.swapaxes(k, -1, -2) * np.float32(q.shape[-1] ** -0.5)
    weights = np.exp(scores if mask is None else np.where(mask, scores, np.float32(-np.inf)))
    return weights / weights.sum(-1, keepdims=True) @ v


def own(
    q, k, v, mask=None, bias=None, causal=None, window=None, key_lengths=None, scale=None, softcap=0.0, threads=None
):
    context = None if threads is None else glasshead.Context(threads=threads)
    return glasshead.scaled_dot_product_attention(
        q,
        k,
        v,
        mask=mask,
        bias=bias,
        is_causal=causal is not None,
        align=causal,
        window=window,
        key_lengths=key_lengths,
        scale=scale,
        softcap=softcap,
        enable_gqa=True,
        context=context,
    )


def row(report, group, name):
    return next(r for r in report.rows if (r.group, r.input) == (group, name))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_one_liners_faults_are_found():
    report = glasshead.audit(plain, groups=["heads", "masks", "causal", "empty rows", "numbers"], isolate=False)
    assert row(report, "empty rows", "mask-first-row").mistakes == ("empty-row-nan",)
    assert row(report, "numbers", "scores-of-150").mistakes == ("softmax-unshifted",)
    assert row(report, "heads", "heads-4-kv-2").verdict == "refuses"
    assert row(report, "causal", "end-1x16").verdict == "not offered"
    assert row(report, "masks", "mask-bhqk").verdict == "right"
    assert report.has_faults
    assert "softmax-unshifted" in str(report)


def test_own_attention_is_right_throughout_in_numpy():
    report = glasshead.audit(own, isolate=False)
    assert [
        (r.group, r.input, r.verdict, r.text) for r in report.rows if r.verdict not in ("right", "not offered")
    ] == []
    assert {r.text for r in report.rows if r.verdict == "not offered"} <= {"bf16"}  # without ml_dtypes
    assert report.count("right") > 200


def dies(q, k, v):
    if q.shape[2] == 3:
        os.kill(os.getpid(), signal.SIGSEGV)
    if q.shape[2] == 17:
        time.sleep(60)
    return glasshead.scaled_dot_product_attention(q, k, v)


@pytest.mark.parametrize("function", [dies, lambda q, k, v: dies(q, k, v)], ids=["importable", "forked"])
def test_crashes_and_hangs_are_rows(function):
    # As long as this, no right answer takes on a machine that is busy.
    report = glasshead.audit(function, groups=["shapes"], takes=[], timeout=4, name="dies")
    assert row(report, "shapes", "length-3").verdict == "crashes"
    assert "signal 11" in row(report, "shapes", "length-3").text
    assert row(report, "shapes", "length-17").verdict == "hangs"
    assert report.count("hangs") == 1
    assert report.count("right") > 10
    assert row(report, "shapes", "length-31").verdict == "right"


def test_a_process_that_hangs_before_the_first_call_is_given_up(tmp_path, monkeypatch):
    (tmp_path / "slow_to_import.py").write_text(
        "import os, time\nif os.environ.get('SLOW'): time.sleep(60)\ndef attend(q, k, v): return q\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    attend = importlib.import_module("slow_to_import").attend
    monkeypatch.setenv("SLOW", "1")
    monkeypatch.setattr(_audit, "_FIRST_ANSWER", 0.0)
    child = _audit._Child(attend, {}, "numpy", 2.0)
    begin = time.monotonic()
    assert child.ask({"q": bytes(1 << 22)}) == ("hung", "no answer in 2 s")  # more than a socket holds
    assert time.monotonic() - begin < 30


def test_a_tuple_begins_with_out_and_other_names_can_be_given():
    def theirs(queries, keys, values, keep=None):
        return glasshead.scaled_dot_product_attention(queries, keys, values, mask=keep), None

    report = glasshead.audit(theirs, names={"mask": "keep"}, groups=["masks"], isolate=False)
    assert row(report, "masks", "mask-qk").verdict == "right"
    assert row(report, "masks", "bias-qk").verdict == "not offered"


def test_is_causal_means_one_corner():
    def theirs(q, k, v, is_causal=False):
        return glasshead.scaled_dot_product_attention(q, k, v, is_causal=is_causal, align="end" if is_causal else None)

    report = glasshead.audit(theirs, groups=["causal"], isolate=False)
    assert "causal-start" in report.takes and "causal-end" not in report.takes
    assert row(report, "causal", "start-7x12").verdict == "wrong"
    assert any(m.startswith("causal-corner") for m in row(report, "causal", "start-7x12").mistakes)
    report = glasshead.audit(theirs, corner="end", groups=["causal"], isolate=False)
    assert row(report, "causal", "end-7x12").verdict == "right"


def test_another_name_for_causal_means_one_corner_too():
    def theirs(q, k, v, triangle=False):
        assert triangle in (False, True)
        return glasshead.scaled_dot_product_attention(q, k, v, is_causal=triangle, align="start" if triangle else None)

    names = {"causal": "triangle"}
    report = glasshead.audit(theirs, names=names, groups=["causal"], isolate=False)
    assert row(report, "causal", "start-7x12").verdict == "right"
    assert row(report, "causal", "end-7x12").verdict == "not offered"
    report = glasshead.audit(theirs, names=names, corner="end", groups=["causal"], isolate=False)
    assert row(report, "causal", "end-7x12").verdict == "wrong"
    with pytest.raises(glasshead.Error, match="'triangle' is True for either corner"):
        glasshead.audit(theirs, names=names, takes=["causal-start", "causal-end"])
    both = glasshead.audit(own, groups=["causal"], isolate=False)
    assert {"causal-start", "causal-end"} <= set(both.takes)


def test_numbers_that_jax_would_cut_are_not_offered(monkeypatch):
    def asarray(array):  # JAX without jax_enable_x64
        return array.astype(np.float32) if array.dtype == np.float64 else array

    jax = types.ModuleType("jax")
    jax.numpy = types.ModuleType("jax.numpy")
    jax.numpy.asarray = asarray
    monkeypatch.setitem(sys.modules, "jax", jax)
    monkeypatch.setitem(sys.modules, "jax.numpy", jax.numpy)
    report = glasshead.audit(own, arrays="jax", takes=["f64", "mask"], groups=["types"], isolate=False)
    assert (row(report, "types", "f64").verdict, row(report, "types", "f64").text) == (
        "not offered",
        "JAX makes float32 of float64",
    )
    assert report.count("wrong") == 0


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_failing_inputs_are_written(tmp_path):
    report = glasshead.audit(plain, groups=["empty rows"], isolate=False, failing=tmp_path / "failing")
    files = [r.file for r in report.rows if r.file]
    assert files and all(os.path.exists(f) for f in files)
    assert all(f"glasshead doctor --qkv {r.file}" in r.command for r in report.rows if r.file)


def test_progress_is_told_for_each_input_once():
    told = []
    glasshead.audit(plain, groups="heads, same bits", isolate=False, progress=lambda *at: told.append(at))
    assert told[0] == (0, 34, "heads/heads-1-kv-1") and {inputs for _, inputs, _ in told} == {34}
    assert [done for done, _, _ in told] == sorted({done for done, _, _ in told})
    assert "same bits/run-again-6x9" in [name for _, _, name in told]


def test_an_audit_that_asks_nothing_is_refused():
    with pytest.raises(glasshead.Error, match=r"none of 10 inputs is offered: strides \(10\)"):
        glasshead.audit(plain, takes=[], groups="layouts", isolate=False)


def test_what_is_misspelt_is_refused():
    with pytest.raises(glasshead.Error, match="there are mask, bias"):
        glasshead.audit(plain, takes=["masks"])
    with pytest.raises(glasshead.Error, match="arrays"):
        glasshead.audit(plain, arrays="cupy")
    with pytest.raises(glasshead.OptionError, match="no group 'shape'"):
        glasshead.audit(plain, groups=["shape"])
    with pytest.raises(glasshead.Error, match="no keyword"):
        glasshead.audit(plain, takes=["softcap"])
