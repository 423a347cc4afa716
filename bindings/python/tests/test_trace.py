"""Traces: every intermediate as an array, and the command's pages."""

import json
import os
import pathlib
import subprocess

import numpy as np
import pytest

import glasshead
from reference import attend, causal, scores, weights_of

ROOT = pathlib.Path(__file__).resolve().parents[3]
COMMAND = pathlib.Path(os.environ.get("GLASSHEAD_COMMAND", ROOT / "build" / "release" / "bin" / "glasshead"))


def test_a_case_has_the_numbers_of_its_tutorial():
    trace = glasshead.trace_case("three-tokens-causal")
    # exp(1/sqrt 2) / (1 + exp(1/sqrt 2)), by hand
    share = np.exp(np.sqrt(0.5)) / (1 + np.exp(np.sqrt(0.5)))
    np.testing.assert_allclose(trace["weights"][1], [1 - share, share, 0], rtol=1e-15)
    assert trace.query_labels == ["A", "B", "C"] and trace.name == "three-tokens-causal"


def test_steps_of_arrays_are_those_of_paper(qkv):
    q, k, v = qkv(q_len=5, kv_len=6, batch=1)
    trace = glasshead.trace(q, k, v, is_causal=True, align="end", softcap=2.0)
    raw = scores(q, k, scale=1)[0]
    allowed = causal(5, 6, 1)
    weights, lse = weights_of(scores(q, k, softcap=2.0)[0], allowed)
    wanted = {
        "scores": raw,
        "scaled": raw / np.sqrt(8),
        "capped": scores(q, k, softcap=2.0)[0],
        "weights": weights,
        "lse": lse,
        "out": attend(q, k, v, allowed, softcap=2.0)[0],
        "q": q[0],
        "k": k[0],
        "v": v[0],
    }
    for name, values in wanted.items():
        np.testing.assert_allclose(trace[name], values, rtol=1e-13, atol=1e-15, err_msg=name)
    assert list(trace)[:3] == ["q", "k", "v"] and set(wanted) <= set(trace) and len(trace) == len(list(trace))
    assert np.array_equal(np.isneginf(trace["masked"]), np.broadcast_to(~allowed, raw.shape))
    assert trace.steps[0].name == "scores" and trace.steps[0].reads == ("q", "k") and "Kᵀ" in trace.steps[0].formula


def test_masks_and_biases_are_kept_as_they_were(qkv):
    q, k, v = (x[0, 0] for x in qkv(batch=1))
    mask, bias = causal(7, 7), np.zeros((7, 7))
    trace = glasshead.trace(q, k, v, mask=mask, bias=bias)
    page, numbers = trace.to_text(), trace.to_json()
    mask[:], bias[:] = True, 100
    assert trace.to_text() == page and trace.to_json() == numbers


def test_a_trace_of_arrays_is_that_of_the_case_with_the_same_numbers(tmp_path):
    x = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    arrays = [np.array(x) for _ in range(3)]
    ours = glasshead.trace(*arrays, is_causal=True, query_labels="ABC", key_labels="ABC", name="case")
    case = {
        "schema": "glasshead.case/1",
        "tokens": ["A", "B", "C"],
        "keys": ["A", "B", "C"],
        "attention": {"q": x, "k": x, "v": x, "mask": "causal"},
    }
    theirs = glasshead.trace_case(case)
    assert ours.to_csv(steps=["weights"]) == theirs.to_csv(steps=["weights"])
    assert json.loads(ours.to_json())["weights"] == json.loads(theirs.to_json())["weights"]


PAGES = [("text", "to_text", ".txt"), ("md", "to_markdown", ".md"), ("latex", "to_latex", ".tex")]
PAGES += [(format, f"to_{format}", f".{format}") for format in ("html", "svg", "csv", "json")]


def command(*arguments):
    return subprocess.run([COMMAND, "trace", *arguments], capture_output=True, check=True).stdout.decode()


@pytest.mark.skipif(not COMMAND.exists(), reason="the command is not built")
@pytest.mark.parametrize("format, method, ending", PAGES)
def test_pages_are_the_commands_to_the_byte(format, method, ending, tmp_path):
    for case in glasshead.cases():
        options = {"empty_row": "zero"} if case == "empty-row" else {}
        flags = ["--empty-row", "zero"] if case == "empty-row" else []
        trace = glasshead.trace_case(case, **options)
        wanted = command(case, "--format", format, *flags)
        assert getattr(trace, method)() == wanted
        trace.save(tmp_path / f"page{ending}")
        assert (tmp_path / f"page{ending}").read_bytes() == wanted.encode()


@pytest.mark.skipif(not COMMAND.exists(), reason="the command is not built")
def test_edits_and_printing_are_the_commands_flags():
    trace = glasshead.trace_case("three-tokens", set=["X[B]=1,1"], hide=["C"], scale=0.5)
    edits = ["--set", "X[B]=1,1", "--hide", "C", "--scale", "0.5"]
    wanted = command("three-tokens", *edits, "--decimals", "2", "--percent", "--ascii", "--width", "60")
    assert trace.to_text(decimals=2, percent=True, ascii=True, width=60) == wanted
    trace = glasshead.trace_case("three-tokens-causal")
    assert trace.explain(query="B") == command("three-tokens-causal", "--query", "B", "--explain")
    assert trace.to_text(steps=["weights"], query="C", round="nearest") == command(
        "three-tokens-causal", "--steps", "weights", "--query", "C", "--round", "nearest"
    )
    assert glasshead.trace_case("three-tokens", mask="window:1,0").to_markdown(math=True) == command(
        "three-tokens", "--mask", "window:1,0", "--format", "md", "--math"
    )
    assert trace.to_latex(standalone=True) == command("three-tokens-causal", "--format", "latex", "--standalone")
    assert str(trace) == trace.to_text() == command("three-tokens-causal")


def test_numbers_are_saved(tmp_path):
    trace = glasshead.trace_case("two-heads")
    trace.save(tmp_path / "out.npy")
    assert np.array_equal(np.load(tmp_path / "out.npy"), trace["out"])
    trace.save(tmp_path / "all.safetensors")
    header_size = int.from_bytes((tmp_path / "all.safetensors").read_bytes()[:8], "little")
    header = json.loads((tmp_path / "all.safetensors").read_bytes()[8 : 8 + header_size])
    assert set(header) - {"__metadata__"} == set(trace)


def test_in_a_notebook_it_shows_itself_in_a_frame_of_its_own():
    shown = glasshead.trace_case("three-tokens")._repr_html_()
    assert shown.startswith("<iframe") and shown.endswith("</iframe>") and "<table" not in shown
    assert "&lt;table" in shown and 'sandbox=""' in shown


def test_everything_wrong_is_told(qkv, tmp_path):
    q, k, v = qkv()
    with pytest.raises(glasshead.OptionError, match="batch has 2"):
        glasshead.trace(q, k, v)
    with pytest.raises(glasshead.Error, match="2 labels where there are 7 rows"):
        glasshead.trace(q[0], k[0], v[0], query_labels=["a", "b"])
    with pytest.raises(glasshead.Error, match="x"):
        glasshead.trace(q[0, 0, :1], k[0, 0], v[0, 0], mask=np.zeros((1, 7), bool), query_labels=["x"])
    with pytest.raises(glasshead.Error, match="scores"):
        glasshead.trace(np.zeros((5000, 1)), np.zeros((5000, 1)), np.zeros((5000, 1)))
    with pytest.raises(glasshead.FormatError) as refused:
        glasshead.trace_case({"schema": "glasshead.case/1", "X": [[1]], "attention": {"Mask": 1, "heads": 0}})
    assert {"attention.Mask", "attention.heads"} <= {where for where, _ in refused.value.problems}
    with pytest.raises(glasshead.Error, match="no case of this name"):
        glasshead.trace_case("no-such-case")
    with pytest.raises(glasshead.IoError):
        glasshead.trace_case(tmp_path / "missing.json")
    with pytest.raises(OSError):
        glasshead.trace_case("three-tokens").save(tmp_path / "missing" / "page.md")
    with pytest.raises(glasshead.OptionError, match="'.docx'"):
        glasshead.trace_case("three-tokens").save(tmp_path / "page.docx")
    for options in ({"steps": ["nonsense"]}, {"query": "Z"}, {"head": 9}, {"decimals": 40}):
        with pytest.raises(glasshead.OptionError):
            glasshead.trace_case("three-tokens").to_markdown(**options)
    with pytest.raises(KeyError, match="weights"):
        glasshead.trace_case("three-tokens")["nonsense"]
    with pytest.raises(TypeError, match="decimals"):
        glasshead.trace_case("three-tokens").to_text(digits=3)


VIEWS = [
    (lambda before, after: after.diff(before), ["--diff"]),
    (lambda before, after: after.by_hand(), ["--by-hand", "2"]),
    (lambda before, after: after.by_hand(3, is_shifted=True), ["--by-hand", "3,shift"]),
    (lambda before, after: after.mistake("scale-other:0.3"), ["--mistake", "scale-other:0.3"]),
    (lambda before, after: after.gradients(), ["--gradients"]),
]


@pytest.mark.skipif(not COMMAND.exists(), reason="the command is not built")
@pytest.mark.parametrize("view, flags", VIEWS, ids=lambda x: " ".join(x) if isinstance(x, list) else "")
def test_views_are_the_commands_to_the_byte(view, flags, tmp_path):
    for case in ("three-tokens-causal", "two-heads"):
        edit = [] if case == "two-heads" and flags != ["--diff"] else ["--scale", "0.25"]
        page = view(glasshead.trace_case(case), glasshead.trace_case(case, scale=0.25 if edit else None))
        for format, method, ending in PAGES:
            done = subprocess.run([COMMAND, "trace", case, *edit, *flags, "--format", format], capture_output=True)
            if done.returncode == 0:
                assert getattr(page, method)() == done.stdout.decode(), f"{case} {format}"
                page.save(tmp_path / f"page{ending}")
                assert (tmp_path / f"page{ending}").read_bytes() == done.stdout
        assert str(page) == page.to_text() and page._repr_html_().startswith("<iframe")


def test_what_a_view_cannot_show_is_told():
    trace = glasshead.trace_case("three-tokens")
    with pytest.raises(glasshead.OptionError, match="no mistake"):
        trace.mistake("nonsense").to_text()
    with pytest.raises(glasshead.OptionError, match="mask"):
        str(trace.mistake("mask-ignored"))
    with pytest.raises(glasshead.OptionError, match="no steps to choose from"):
        trace.by_hand().to_text(steps=["weights"])
    with pytest.raises(glasshead.OptionError, match="0 to 12"):
        str(trace.by_hand(40))
    other = glasshead.trace_case("two-heads")
    assert "sizes differ" in str(trace.diff(other)) or "nothing to compare" in str(trace.diff(other))
