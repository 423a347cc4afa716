"""The notebooks run, and show what their cells give."""

import json
import pathlib

import pytest

import notebook

ROOT = pathlib.Path(__file__).resolve().parents[3]
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_its_outputs_are_those_of_its_cells(path):
    kept = path.read_text(encoding="utf-8")
    ran = notebook.run(json.loads(kept))
    for now, then in zip(ran["cells"], json.loads(kept)["cells"], strict=True):
        assert now == then, f"python {notebook.__file__} {path} writes what cells give now"
    assert notebook.text_of(ran) == kept


def test_there_are_notebooks():
    assert NOTEBOOKS
