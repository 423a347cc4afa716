"""The doctor from Python: what it says of right and wrong numbers of each kind of array."""

import copy
import json
import os
import pathlib
import subprocess

import numpy as np
import pytest

import glasshead
from glasshead.testing import assert_attention_close
from reference import attend, causal, scores, weights_of

ROOT = pathlib.Path(__file__).resolve().parents[3]
COMMAND = pathlib.Path(os.environ.get("GLASSHEAD_COMMAND", ROOT / "build" / "release" / "bin" / "glasshead"))


@pytest.fixture
def inputs(qkv):
    return qkv(q_len=9, kv_len=12, batch=1, dtype=np.float32)


def names(diagnosis):
    return [cause.name for cause in diagnosis.causes]


def test_right_numbers_are_right(inputs):
    q, k, v = inputs
    allowed = causal(9, 12, 3)
    weights, lse = weights_of(scores(q, k), allowed)
    out = attend(q, k, v, allowed).astype(np.float32)
    options = {"is_causal": True, "align": "end"}
    for claims in ({"out": out}, {"weights": weights.astype(np.float32)}, {"lse": lse.astype(np.float32), "out": out}):
        diagnosis = glasshead.diagnose(q, k, v, **claims, **options)
        assert diagnosis.is_right and diagnosis.verdict == "right" and diagnosis.causes == ()
        assert diagnosis.wrong == 0 and diagnosis.rows == diagnosis.rows_checked == 4 * 9
        assert str(diagnosis).startswith("RIGHT")
    assert_attention_close(out, q, k, v, lse=lse.astype(np.float32), **options)


MISTAKES = {
    "scale-missing": {"scale": 1.0},
    "scale-dk": {"scale": 0.125},
    "scale-other:0.3": {"scale": 0.3},
    "causal-corner:0": {"allowed": causal(9, 12, 0)},
    "mask-ignored": {"allowed": True},
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_named_with_what_to_look_for(inputs, name):
    q, k, v = inputs
    theirs = {"allowed": causal(9, 12, 3), **MISTAKES[name]}
    out = attend(q, k, v, theirs.pop("allowed"), **theirs).astype(np.float32)
    diagnosis = glasshead.diagnose(q, k, v, out=out, is_causal=True, align="end")
    assert diagnosis.verdict == "mistaken" and names(diagnosis)[0].startswith(name), str(diagnosis)
    first = diagnosis.first_wrong
    assert first.claim == "out" and first.found == out[first.index] and abs(first.found - first.right) > first.tolerance
    mistake = diagnosis.causes[0].mistakes[0]
    assert mistake.name == names(diagnosis)[0] and mistake.cause and mistake.fix_code
    assert mistake.name in str(diagnosis) and mistake.fix_code in str(diagnosis) and mistake.name in repr(diagnosis)
    with pytest.raises(AssertionError) as failed:
        assert_attention_close(out, q, k, v, is_causal=True, align="end")
    assert str(diagnosis) in str(failed.value)


def test_numbers_of_nothing_known_are_located(inputs, rng):
    q, k, v = inputs
    out = attend(q, k, v).astype(np.float32)
    out[0, 2, 5] = rng.standard_normal(6)
    diagnosis = glasshead.diagnose(q, k, v, out=out)
    assert diagnosis.verdict == "unexplained" and diagnosis.causes == ()
    assert diagnosis.first_wrong.index[:3] == (0, 2, 5) and diagnosis.wrong <= 6
    assert diagnosis.pattern and repr(diagnosis) == "<glasshead.Diagnosis unexplained>"


def test_a_pasted_table_is_judged_row_by_row():
    """The first tutorial's causal weights: its row B is wrong, the others are right to two places."""
    trace = glasshead.trace_case("three-tokens-causal")
    told = "1 0 0; .5 .5 0; .25 .25 .5"
    diagnosis = trace.diagnose(weights=told)
    assert [(row.row, row.is_right) for row in diagnosis.small_rows] == [("A", True), ("B", False), ("C", True)]
    assert [round(x, 4) for x in diagnosis.small_rows[1].right] == [0.3302, 0.6698, 0]
    x = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    for claim in (told, "[[1, 0, 0],\n [.5, .5, 0],\n [.25, .25, .50]]"):
        same = glasshead.diagnose(x, x, x, weights=claim, is_causal=True, query_labels="ABC")
        assert [(row.row, row.is_right) for row in same.small_rows] == [("A", True), ("B", False), ("C", True)]
    listed = trace.diagnose(weights=[[1, 0, 0], [0.5, 0.5, 0], [0.25, 0.25, 0.5]], decimals=2)
    assert [row.is_right for row in listed.small_rows] == [True, False, True]


def test_an_exponent_moves_the_point_of_pasted_numbers():
    """The right weights are 0.99966465 and 3.3535e-4."""
    q, k, v = np.array([[1.0, 0]]), np.array([[8.0, 0], [0, 0]]), np.eye(2)
    for right in ("0.999665 3.35e-4", "9997e-4 3e-4", "99.97e-2 +.03E-2", "1.0e+0 .0"):
        assert glasshead.diagnose(q, k, v, weights=right, scale=1.0).verdict == "right", right
    for wrong in ("0.99967 3.45e-4", "1.00 8.35e-4", "1 1e-3"):
        assert glasshead.diagnose(q, k, v, weights=wrong, scale=1.0).verdict != "right", wrong


@pytest.mark.skipif(not COMMAND.exists(), reason="the command is not built")
def test_it_says_what_the_command_says(inputs, tmp_path):
    q, k, v = inputs
    out = attend(q, k, v, scale=1.0).astype(np.float32)
    for name, array in (("q", q), ("k", k), ("v", v), ("out", out)):
        np.save(tmp_path / f"{name}.npy", array)
    files = [part for name in ("q", "k", "v", "out") for part in (f"--{name}", tmp_path / f"{name}.npy")]
    done = subprocess.run([COMMAND, "doctor", *files], capture_output=True, text=True)
    diagnosis = glasshead.diagnose(q, k, v, out=out)
    assert (done.stdout, done.returncode) == (str(diagnosis), 1)
    done = subprocess.run([COMMAND, "doctor", *files, "--json"], capture_output=True, text=True)
    assert done.stdout == diagnosis.to_json() + "\n"
    assert json.loads(diagnosis.to_json())["schema"] == "glasshead.diagnosis/1"


def test_gradients_are_judged(qkv, rng):
    q, k, v = qkv(heads=2, batch=1, q_len=5, kv_len=5)
    d_out = rng.standard_normal((1, 2, 5, 6))
    s = scores(q, k)
    w, _ = weights_of(s)
    dv = np.swapaxes(w, -1, -2) @ d_out
    dw = d_out @ np.swapaxes(v, -1, -2)
    ds = w * (dw - (w * dw).sum(-1, keepdims=True))
    dq = ds @ k / np.sqrt(8)
    assert glasshead.diagnose(q, k, v, dq=dq, dv=dv, d_out=d_out).is_right
    unscaled = glasshead.diagnose(q, k, v, dq=dq * np.sqrt(8), dv=dv, d_out=d_out)
    assert unscaled.verdict == "mistaken" and unscaled.first_wrong.claim == "dq"
    with pytest.raises(glasshead.OptionError, match="d_out"):
        glasshead.diagnose(q, k, v, dq=dq)


def test_a_probe_tells_mistakes_apart():
    probe = glasshead.make_probe(heads=4, kv_heads=2, q_len=7, kv_len=10, d_k=8, d_v=6, is_causal=True, align="end")
    assert probe.q.shape == (1, 4, 7, 8) and probe.v.shape == (1, 2, 10, 6) and probe.q.dtype == np.float32
    assert np.array_equal(probe.mask, np.broadcast_to(causal(7, 10, 3), (1, 4, 7, 10)))
    assert probe.least_distance > 1 and all(len(group) > 1 for group in probe.alike)
    again = glasshead.make_probe(heads=4, kv_heads=2, q_len=7, kv_len=10, d_v=6, is_causal=True, align="end")
    assert np.array_equal(probe.k, again.k)
    right = attend(probe.q, probe.k, probe.v, probe.mask)
    assert probe.diagnose(right.astype(np.float32)).is_right
    tiled = [0, 1, 0, 1]  # where 0, 0, 1, 1 would be right
    wrong = attend(probe.q, probe.k[:, tiled], probe.v[:, tiled], probe.mask)
    diagnosis = probe.diagnose(wrong.astype(np.float32))
    assert diagnosis.verdict == "mistaken" and "gqa-tiled" in str(diagnosis)
    assert glasshead.make_probe(q_len=3, kv_len=3).mask is None


def rotated(x, base):
    half = x.shape[-1] // 2
    angle = np.arange(x.shape[-2])[:, None] * base ** (-np.arange(half) / half)
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)], -1)


def test_rotary_positions_that_the_program_applies_itself():
    probe = glasshead.make_probe(q_len=10, kv_len=10, is_causal=True, rope="halves")
    q, k = (rotated(x.astype(np.float64), 10000.0) for x in (probe.q, probe.k))
    assert probe.diagnose(attend(q, k, probe.v, probe.mask).astype(np.float32)).is_right
    q, k = (rotated(x.astype(np.float64), 500000.0) for x in (probe.q, probe.k))
    wrong = probe.diagnose(attend(q, k, probe.v, probe.mask).astype(np.float32))
    assert wrong.verdict == "mistaken" and "rope" in names(wrong)[0]
    q, k = (rotated(x.astype(np.float64), 500000.0) for x in (probe.q, probe.k))
    theirs = attend(q, k, probe.v, probe.mask).astype(np.float32)
    assert_attention_close(theirs, probe.q, probe.k, probe.v, is_causal=True, rope=glasshead.Rotary(base=500000.0))
    adjacent = glasshead.make_probe(q_len=10, kv_len=10, is_causal=True, rope="adjacent")
    assert adjacent.diagnose(theirs).verdict != "right"
    with pytest.raises(glasshead.OptionError, match="make_probe: rope: found 'both'; 'halves', 'adjacent'"):
        glasshead.make_probe(rope="both")


def test_the_type_that_they_compute_in(inputs):
    q, k, v = inputs
    out = attend(q, k, v).astype(np.float16).astype(np.float32)
    assert not glasshead.diagnose(q, k, v, out=out, dtype="f32").is_right
    for dtype in ("f16", np.float16, "float16", np.dtype(np.float16)):
        assert glasshead.diagnose(q, k, v, out=out, dtype=dtype).is_right
    assert glasshead.diagnose(q, k, v, out=out.astype(np.float16)).arithmetic == "f16"


def test_everything_wrong_with_a_question_is_told(inputs):
    q, k, v = inputs
    with pytest.raises(glasshead.OptionError, match="none is given"):
        glasshead.diagnose(q, k, v)
    with pytest.raises(glasshead.OptionError, match=r"out: has shape \[1,4,9,5\]") as refused:
        glasshead.diagnose(q, k, v, out=np.zeros((1, 4, 9, 5)), lse=np.zeros((3, 9)))
    assert [where for where, _ in refused.value.problems] == ["out", "lse"]
    with pytest.raises(glasshead.OptionError, match="softcap"):
        glasshead.diagnose(q, k, v, out=np.zeros((1, 4, 9, 6)), softcap=-1)
    with pytest.raises(glasshead.OptionError, match="rows of numbers"):
        glasshead.diagnose(q, k, v, weights="1 0; x y")
    with pytest.raises(glasshead.OptionError, match="f64, f32, bf16, f16"):
        glasshead.diagnose(q, k, v, out=np.zeros((1, 4, 9, 6)), dtype="int8")
    with pytest.raises(glasshead.OptionError, match="q_len"):
        glasshead.make_probe(q_len=0)
    with pytest.raises(glasshead.Error, match="query_start"):
        glasshead.make_probe(is_causal=True)


def test_a_diagnosis_can_be_kept(inputs):
    q, k, v = inputs
    diagnosis = glasshead.diagnose(q, k, v, out=attend(q, k, v, scale=1.0).astype(np.float32))
    kept = copy.deepcopy(diagnosis)
    assert kept.causes == diagnosis.causes and str(kept) == str(diagnosis)
    shown = diagnosis._repr_html_()
    assert shown.startswith("<pre") and "scale-missing" in shown and "√" in str(diagnosis) + "√"


def test_tensors_that_require_a_gradient_are_judged(inputs):
    torch = pytest.importorskip("torch")
    q, k, v = (torch.from_numpy(x).requires_grad_() for x in inputs)
    k2, v2 = (x.repeat_interleave(2, 1) for x in (k, v))
    out = torch.softmax(q @ k2.transpose(-2, -1) / q.shape[-1] ** 0.5, -1) @ v2
    assert_attention_close(out, q, k, v)
    with pytest.raises(AssertionError, match="scale-missing"):
        assert_attention_close(torch.softmax(q @ k2.transpose(-2, -1), -1) @ v2, q, k, v)
    half = [x.detach().to(torch.bfloat16) for x in (q, k, v)]
    out = torch.nn.functional.scaled_dot_product_attention(*half, enable_gqa=True)
    assert_attention_close(out, *half)
    assert glasshead.diagnose(*half, out=out.float(), dtype=torch.bfloat16).is_right
