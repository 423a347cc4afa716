"""Runs notebooks without a kernel: each code cell in order, in one namespace, as Jupyter would for plain Python.

`python notebook.py FILE...` writes the outputs into the files.
"""

import ast
import contextlib
import io
import json
import pathlib
import sys


def run_cell(source, names):
    """What a cell prints, and the text of its last expression."""
    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(ast.Module(body, []), "<cell>", "exec"), names)
        value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names) if last is not None else None
    outputs = []
    if said.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": said.getvalue().splitlines(True)})
    if value is not None:
        outputs.append(
            {"data": {"text/plain": repr(value).splitlines(True)}, "metadata": {}, "output_type": "execute_result"}
        )
    return outputs


def run(notebook):
    """The notebook with the outputs that its cells have now."""
    names, count = {"__name__": "__main__"}, 0
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        count += 1
        cell["execution_count"], cell["outputs"] = count, run_cell("".join(cell["source"]), names)
        for output in cell["outputs"]:
            if output["output_type"] == "execute_result":
                output["execution_count"] = count
    return notebook


def text_of(notebook):
    """A notebook as it is kept: sorted, so that it changes where its content does."""
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


if __name__ == "__main__":
    for path in map(pathlib.Path, sys.argv[1:]):
        path.write_text(text_of(run(json.loads(path.read_text(encoding="utf-8")))), encoding="utf-8")
