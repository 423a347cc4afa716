"""Interactive pages: the command's bytes, from cases and from arrays, each in a frame of its own."""

import html
import json
import os
import pathlib
import re
import subprocess

import numpy as np
import pytest

import glasshead

ROOT = pathlib.Path(__file__).resolve().parents[3]
COMMAND = pathlib.Path(os.environ.get("GLASSHEAD_COMMAND", ROOT / "build" / "release" / "bin" / "glasshead"))
PLACE = '<script type="application/json" id="glasshead-case">{}</script>'


@pytest.fixture
def web(tmp_path):
    """A folder with a page as `make web` writes it, as far as a case's place goes."""
    folder = tmp_path / "web"
    folder.mkdir()
    (folder / "index.html").write_text("<!doctype html>")
    (folder / "lesson.html").write_text(f"<!doctype html>\n{PLACE}\n<p>after</p>\n")
    return folder


def lesson(page):
    return json.loads(re.search(re.escape(PLACE).replace(re.escape("{}"), "(.*)"), page)[1])


def case_of(page, tmp_path):
    """The embedded case, run."""
    path = tmp_path / "embedded.json"
    path.write_text(lesson(page)["text"])
    return glasshead.trace_case(path)


@pytest.mark.skipif(not COMMAND.exists(), reason="the command is not built")
def test_it_is_the_commands_page(web):
    for name, flags, change in (
        ("three-tokens", [], {}),
        ("three-tokens", ["--set", "X[B]=1,1", "--mask", "causal"], {"set": ["X[B]=1,1"], "mask": "causal"}),
        ("one-query", ["--hide", "3", "--scale", "1"], {"hide": ["3"], "scale": 1}),
        ("empty-row", ["--empty-row", "zero"], {"empty_row": "zero"}),
    ):
        done = subprocess.run(
            [COMMAND, "trace", name, *flags, "--interactive", "--format", "html", "--web", web],
            capture_output=True,
            check=True,
        )
        trace = glasshead.trace_case(name, **change)
        assert trace.to_html(interactive=True, web=web) == done.stdout.decode()
        assert trace.interactive(web=web).to_html() == done.stdout.decode()


def test_arrays_become_a_case_of_the_same_numbers(web, tmp_path):
    rng = np.random.default_rng(5)
    q, k, v = (rng.standard_normal((heads, n, 4)).astype(np.float32) for heads, n in ((4, 3), (2, 5), (2, 5)))
    allowed = rng.random((4, 3, 5)) < 0.8
    allowed[:, :, 0] = True
    bias = rng.standard_normal((3, 5))
    bias[0, 1] = -np.inf
    kept = {"align": "end", "empty_row": "zero"}
    for options in (
        {},
        {"is_causal": True, "scale": 0.3, "softcap": 5.0},
        {"window": (1, None), "sinks": [0.1, 0.2, 0.3, 0.4]},
        {"attn_mask": allowed},
        {"attn_mask": bias},
        {"where": lambda b, h, p, j: (p - j) % 2 == 0},
        {"segments": ([0, 0, 1], [0, 0, 1, 1, 1]), "alibi": True},
        {"prefix": 2, "key_lengths": 4, "dropout_p": 0.25, "dropout_seed": 7},
        {"t5": glasshead.T5(rng.standard_normal((8, 4)))},
    ):
        trace = glasshead.trace(q, k, v, query_labels=["a", "b<", "c"], title="t", **kept, **options)
        again = case_of(trace.to_html(interactive=True, web=web), tmp_path)
        assert again.query_labels == ["a", "b<", "c"] and list(again) == list(trace)
        for name in trace:
            np.testing.assert_array_equal(again[name], trace[name], err_msg=f"{name} {options}")


def test_in_a_notebook_each_has_a_frame_of_its_own(web):
    shown = glasshead.trace_case("three-tokens").interactive(web=web)
    text = shown._repr_html_()
    assert text.startswith("<iframe") and 'sandbox="allow-scripts allow-downloads"' in text
    assert html.unescape(re.search(r'srcdoc="([^"]*)"', text)[1]) == shown.to_html()
    assert repr(shown) == "<glasshead.Interactive three-tokens>"


def test_it_saves_whole_files(web, tmp_path):
    shown = glasshead.trace_case("three-tokens").interactive(web=web)
    shown.save(tmp_path / "lesson.html")
    assert (tmp_path / "lesson.html").read_text(encoding="utf-8") == shown.to_html()
    with pytest.raises(glasshead.OptionError, match="html"):
        shown.save(tmp_path / "lesson.txt")


def test_what_it_cannot_show_is_refused(web, tmp_path):
    trace = glasshead.trace_case("three-tokens")
    with pytest.raises(glasshead.OptionError, match="decimals"):
        trace.to_html(interactive=True, web=web, decimals=2)
    with pytest.raises(glasshead.OptionError, match="interactive"):
        trace.to_html(web=web)
    with pytest.raises(glasshead.OptionError, match="make web"):
        trace.interactive(web=tmp_path)
    (web / "lesson.html").write_text("<!doctype html>")
    with pytest.raises(glasshead.FormatError, match="no place for a case"):
        trace.interactive(web=web)
    q = np.array([[np.nan, 1.0]])
    with pytest.raises(glasshead.OptionError, match="q"):
        glasshead.trace(q, q, q).interactive(web=pathlib.Path(web))


def test_the_package_says_what_it_came_without():
    built = pathlib.Path(glasshead.__file__).with_name("web") / "lesson.html"
    trace = glasshead.trace_case("three-tokens")
    if built.exists():
        assert lesson(trace.to_html(interactive=True))["name"] == "three-tokens"
    else:
        with pytest.raises(glasshead.OptionError, match="came without the page"):
            trace.to_html(interactive=True)
