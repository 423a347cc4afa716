"""Pages: what a trace and its views print, by the command's printers."""

from __future__ import annotations

import html
import os
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from . import _native
from ._errors import refuse

if TYPE_CHECKING:
    from typing_extensions import Unpack

_FORMATS = {f".{ending}": ending for ending in ("md", "html", "svg", "csv", "json")}
_FORMATS.update({".txt": "text", ".tex": "latex"})


class Printing(TypedDict, total=False):
    """How a page is printed: the command's options of these names."""

    decimals: int  # digits after the point, 0 to 12; 4
    percent: bool  # weights times 100
    full: bool  # rows of more than 16 keys whole
    round: Literal["sum1", "nearest"]  # sum1: an entry moves by a unit where a printed row would not add to 1
    steps: Sequence[str]  # only these steps or matrices
    query: str | int  # only this row, by its label or index
    head: int  # only this head


def _printing(options: Mapping[str, Any], **more: Any) -> _native.Printing:
    printing = _native.Printing()
    known = Printing.__annotations__
    for name, value in {**options, **more}.items():
        if name not in known and name not in more:
            raise TypeError(f"no printing option {name!r}; there are {', '.join(known)}")
        if name == "round":
            if value not in ("sum1", "nearest"):
                refuse("trace", ("round", f"{value!r} is neither 'sum1' nor 'nearest'"))
            printing.nearest = value == "nearest"
        elif name == "query":
            printing.query = None if value is None else str(value)
        else:
            setattr(printing, name, list(value) if name == "steps" else value)
    return printing


class Page:
    """What a trace shows, in every format; str() is its text, and in a notebook it shows itself."""

    def __init__(self, name: str, written: Callable[[str, _native.Printing], str]) -> None:
        self._name, self._written = name, written

    def to_text(self, *, width: int = 100, ascii: bool = False, **printing: Unpack[Printing]) -> str:
        """As text, lines of at most `width`."""
        return self._written("text", _printing(printing, width=width, ascii=ascii))

    def to_markdown(self, *, math: bool = False, **printing: Unpack[Printing]) -> str:
        """As Markdown; math: formulas and matrices as $$ blocks."""
        return self._written("md", _printing(printing, math=math))

    def to_latex(self, *, standalone: bool = False, **printing: Unpack[Printing]) -> str:
        """As LaTeX; standalone: with a preamble, ready to compile."""
        return self._written("latex", _printing(printing, standalone=standalone))

    def to_html(self, **printing: Unpack[Printing]) -> str:
        """As HTML: no scripts, nothing fetched."""
        return self._written("html", _printing(printing))

    def to_svg(self, **printing: Unpack[Printing]) -> str:
        """Every matrix as a picture."""
        return self._written("svg", _printing(printing))

    def to_csv(self, **printing: Unpack[Printing]) -> str:
        """The first matrix shown, with all its digits."""
        return self._written("csv", _printing(printing))

    def to_json(self, **printing: Unpack[Printing]) -> str:
        """Every number as a double that reads back the same."""
        return self._written("json", _printing(printing))

    def save(self, path: str | os.PathLike[str], **printing: Unpack[Printing]) -> None:
        """Writes it to a file, as the ending says: .txt .md .tex .html .svg .csv .json."""
        ending = pathlib.Path(path).suffix
        if ending not in _FORMATS:
            refuse("trace", ("save", f"{path}: nothing is known about '{ending}'; there are {' '.join(_FORMATS)}"))
        _native.write_text(os.fspath(path), self._written(_FORMATS[ending], _printing(printing)))

    def _repr_html_(self) -> str:
        """The page in a frame of its own, so that its style stays there."""
        page = html.escape(self.to_html(), quote=True)
        height = min(48.0, 6 + 1.9 * self.to_text().count("\n"))
        return (
            f'<iframe title="{html.escape(self._name, quote=True)}" sandbox="" srcdoc="{page}" '
            f'style="width:100%;height:{height:.0f}em;border:0;resize:vertical"></iframe>'
        )

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"<glasshead.Page {self._name}>"
