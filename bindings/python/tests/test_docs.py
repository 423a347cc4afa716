"""The pages' Python: every example is run, and prints what the page shows."""

import doctest
import importlib.util
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```python\n(.*?)^```\s*$", re.S | re.M)


def examples_of(page):
    return [block for block in FENCE.findall(page.read_text(encoding="utf-8")) if ">>>" in block]


@pytest.mark.parametrize("page", [page for page in PAGES if examples_of(page)], ids=lambda page: page.name)
def test_examples_print_what_the_page_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tests").symlink_to(ROOT / "tests")  # whose models the pages open
    names = {}
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    said = []
    for number, block in enumerate(examples_of(page)):
        if "import torch" in block and importlib.util.find_spec("torch") is None:
            continue
        test = parser.get_doctest(block, names, f"{page.name}, example {number}", str(page), 0)
        runner.run(test, out=said.append, clear_globs=False)
        names = test.globs
    assert runner.summarize(verbose=False).failed == 0, "".join(said)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_of_an_example_stands_in_it(page):
    text = page.read_text(encoding="utf-8")
    for name, body in re.findall(r"<!-- (examples/\S+\.py) -->\s*\n```python\n(.*?)```", text, re.S):
        assert body in (ROOT / name).read_text(encoding="utf-8"), name
