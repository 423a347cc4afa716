"""A trace as a page to edit and walk through, one file that needs no network: the command's `--interactive`."""

from __future__ import annotations

import functools
import html
import os
import pathlib

from . import _native
from ._errors import refuse

_BUILT = pathlib.Path(__file__).with_name("web") / "lesson.html"


@functools.lru_cache(maxsize=4)
def _read(path: str, changed: int) -> str:
    return _native.read_text(path)


def page_text(web: str | os.PathLike[str] | None) -> str:
    """The page without a case: of the folder `web`, or the one that came with the package."""
    path = _BUILT if web is None else pathlib.Path(web) / "lesson.html"
    if not path.is_file():
        how = "; make web builds it, and web= names the folder that has it"
        refuse("trace", ("web", (f"this package came without the page, {path}" if web is None else f"no {path}") + how))
    return _read(os.fspath(path), path.stat().st_mtime_ns)


class Interactive:
    """The page of one trace. In a notebook it shows itself, in a frame of its own, so that several don't meet."""

    def __init__(self, name: str, page: str) -> None:
        self._name, self._page = name, page

    def to_html(self) -> str:
        """The file: everything is in it, and it asks for nothing."""
        return self._page

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes it to a file, an .html."""
        if pathlib.Path(path).suffix != ".html":
            refuse("trace", ("save", f"{path}: the page is an .html"))
        _native.write_text(os.fspath(path), self._page)

    def _repr_html_(self) -> str:
        return (
            f'<iframe title="{html.escape(self._name, quote=True)}" sandbox="allow-scripts allow-downloads" '
            f'srcdoc="{html.escape(self._page, quote=True)}" '
            f'style="width:100%;height:48em;border:0;resize:vertical"></iframe>'
        )

    def __repr__(self) -> str:
        return f"<glasshead.Interactive {self._name}>"
