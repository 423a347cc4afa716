#!/usr/bin/env python3
"""site.py GLASSHEAD WEB SITE: docs, lessons and the workbench as one folder of static files.

README.md becomes index.html, each page of docs/ its own page, as GitHub would show it (cmark-gfm is GitHub's own
converter); what they link to in the source tree comes along, as pages that show the text. lessons/ holds a page per
case, printed by the command, and links into the workbench, the built page WEB. Nothing in SITE asks another server."""

import html
import os
import pathlib
import posixpath
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
START = "README.md"
PICTURES = {".png", ".svg", ".jpg", ".gif", ".webp"}
MOST_TEXT = 400_000  # characters of a source file that is shown; a larger one is only named

STYLE = """
:root{color-scheme:light dark;--line:#8886;--soft:#8882}
body{margin:0 auto;max-width:78rem;font:16px/1.55 system-ui,sans-serif;display:grid;grid-template-columns:15rem minmax(0,1fr)}
nav{padding:1rem 1.5rem;font-size:.95em}
nav ul{list-style:none;margin:0;padding:0}
nav li{margin:.15rem 0}
.site{grid-column:1/3;border-bottom:1px solid var(--line)}
.site ul{display:flex;flex-wrap:wrap;gap:.2rem 1.5rem}
.docs{grid-area:2/1}
main{grid-area:2/2;padding:0 1.5rem 2rem}
pre{overflow-x:auto;background:var(--soft);padding:.8rem;border-radius:.3rem;line-height:1.35}
code{font-size:.92em;overflow-wrap:anywhere}
pre code{overflow-wrap:normal}
table{border-collapse:collapse;display:block;overflow-x:auto}
th,td{border:1px solid var(--line);padding:.3rem .6rem;text-align:left;vertical-align:top}
img{max-width:100%;height:auto}
a[aria-current]{font-weight:bold}
:focus-visible{outline:3px solid Highlight}
@media(max-width:48rem){body{display:block}main{padding:0 1rem 1rem}nav{padding:1rem}.docs{border-top:1px solid var(--line)}}
""".strip()


def git_files():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    return sorted(name for name in listed.decode().split("\0") if name and (ROOT / name).is_file())


FILES = set(git_files())
FOLDERS = {parent for name in FILES for parent in map(str, pathlib.PurePosixPath(name).parents)} - {"."}


def target_of(name):
    """Where a file or folder of the source tree stands in the site."""
    if name == START:
        return "index.html"
    if name in FOLDERS:
        return f"source/{name}/index.html"
    path = pathlib.PurePosixPath(name)
    if path.suffix in PICTURES:
        return name
    if path.suffix == ".md":
        return str(path.with_suffix(".html"))
    return f"source/{name}.html"


def slug(text, used):
    """GitHub's anchor of a heading."""
    text = html.unescape(re.sub(r"<[^>]*>", "", text)).strip().lower()
    text = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
    used[text] = used.get(text, -1) + 1
    return f"{text}-{used[text]}" if used[text] else text


def convert(text):
    command = ["cmark-gfm", "--unsafe", "--extension", "table", "--extension", "strikethrough", "--extension", "autolink"]
    return subprocess.run(command, input=text.encode(), capture_output=True, check=True).stdout.decode()


class Site:
    def __init__(self, glasshead, web, folder):
        self.glasshead, self.web, self.folder = glasshead, web, folder
        self.waiting, self.done = [], set()
        self.lost = []  # links that lead nowhere
        docs = sorted(name for name in FILES if re.fullmatch(r"docs/[\w-]+\.md", name))
        self.pages = [(self.title(name), target_of(name)) for name in docs]

    def title(self, name):
        found = re.search(r"^# (.+)$", (ROOT / name).read_text(encoding="utf-8"), re.M)
        return found[1] if found else name

    def write(self, target, title, body):
        def to(other):
            return posixpath.relpath(other, posixpath.dirname(target) or ".")

        def item(text, other):
            current = ' aria-current="page"' if other == target else ""
            return f'<li><a href="{to(other)}"{current}>{html.escape(text)}</a></li>'

        docs = "\n".join(item(text, other) for text, other in self.pages)
        navigation = "\n".join([item("Start", "index.html"), item("Lessons", "lessons/index.html"),
                                item("Workbench", "workbench/index.html")])
        path = self.folder / target
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width,initial-scale=1">\n'
            f'<link rel="icon" href="data:,">\n<title>{html.escape(title)} · Glasshead</title>\n<style>{STYLE}</style>\n'
            f'</head>\n<body>\n<nav class="site" aria-label="Site">\n<ul>\n{navigation}\n</ul>\n</nav>\n'
            f'<main>\n{body}\n</main>\n<nav class="docs" aria-label="Docs">\n<ul>\n{docs}\n</ul>\n</nav>\n'
            "</body>\n</html>\n", encoding="utf-8")

    def link(self, name, link):
        """A link of the page of `name`, as it must be in the site."""
        address, _, anchor = html.unescape(link).partition("#")
        if re.match(r"[a-z][a-z0-9+.-]*:", address) or not address:
            return link
        wanted = posixpath.normpath(posixpath.join(posixpath.dirname(name), address))
        if wanted not in FILES and wanted not in FOLDERS:
            self.lost.append(f"{name}: {link}")
            return link
        self.waiting.append(wanted)
        there = posixpath.relpath(target_of(wanted), posixpath.dirname(target_of(name)) or ".")
        return html.escape(there + (f"#{anchor}" if anchor else ""), quote=True)

    def markdown(self, name):
        body, used = convert((ROOT / name).read_text(encoding="utf-8")), {}
        body = re.sub(r"<h([1-6])>(.*?)</h\1>",
                      lambda found: f'<h{found[1]} id="{slug(found[2], used)}">{found[2]}</h{found[1]}>', body, flags=re.S)
        body = re.sub(r'(<(?:a|img|source)\b[^>]*?\b(?:href|src|srcset)=")([^"]*)"',
                      lambda found: f'{found[1]}{self.link(name, found[2])}"', body)
        # What is wider than the page scrolls, by keyboard, too.
        body = body.replace("<table>", '<table tabindex="0">').replace("<pre>", '<pre tabindex="0">')
        self.write(target_of(name), self.title(name), body)

    def source(self, name):
        try:
            text = (ROOT / name).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            text = None
        shown = f"<p>{(ROOT / name).stat().st_size} bytes, which are no text.</p>"
        if text is not None:
            shown = f'<pre tabindex="0"><code>{html.escape(text[:MOST_TEXT])}</code></pre>'
            if len(text) > MOST_TEXT:
                shown += "<p>… and more: see the source tree.</p>"
        self.write(target_of(name), name, f"<h1>{html.escape(name)}</h1>\n{shown}")

    def listing(self, name):
        inside = sorted({other[len(name) + 1:].split("/")[0] for other in FILES if other.startswith(name + "/")})
        rows = "\n".join(f'<li><a href="{html.escape(self.link(name + "/.", other), quote=True)}">{html.escape(other)}</a></li>'
                         for other in inside)
        self.write(target_of(name), name, f"<h1>{html.escape(name)}</h1>\n<ul>\n{rows}\n</ul>")

    def follow(self):
        """Everything that is linked to, and what that links to."""
        while self.waiting:
            name = self.waiting.pop()
            if name in self.done:
                continue
            self.done.add(name)
            if name in FOLDERS:
                self.listing(name)
            elif name.endswith(".md"):
                self.markdown(name)
            elif pathlib.PurePosixPath(name).suffix in PICTURES:
                target = self.folder / target_of(name)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(ROOT / name, target)
            else:
                self.source(name)

    def run(self, *arguments):
        return subprocess.run([self.glasshead, *arguments], capture_output=True, check=True).stdout.decode()

    def lessons(self):
        rows = []
        (self.folder / "lessons").mkdir(parents=True)
        for line in self.run("trace", "--list").splitlines():
            name, _, title = line.partition(" ")
            page = self.folder / "lessons" / f"{name}.html"
            # That case is about a row with no key, which is refused unless it is allowed to be empty.
            flags = ("--empty-row", "zero") if name == "empty-row" else ()
            self.run("trace", name, *flags, "-o", str(page))
            rows.append(f'<tr><td><a href="../workbench/index.html#/learn/{name}?v=1">{html.escape(title.strip())}</a></td>'
                        f'<td><a href="{name}.html">{name}</a></td></tr>')
        self.write("lessons/index.html", "Lessons",
                   "<h1>Lessons</h1>\n<p>On the left, each worked example in the workbench: change a number, and see what "
                   "moves. On the right, its steps as a page to read.</p>\n<table tabindex=\"0\">\n<tr><th>in the "
                   "workbench</th><th>to read</th></tr>\n" + "\n".join(rows) + "\n</table>")

    def build(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        shutil.copytree(self.web, self.folder / "workbench")
        self.lessons()
        self.waiting = [START, *(name for name in FILES if re.fullmatch(r"docs/[\w-]+\.md", name))]
        self.follow()
        if self.lost:
            sys.exit("site.py: links that lead nowhere:\n" + "\n".join(sorted(self.lost)))


def main():
    glasshead, web, folder = (pathlib.Path(os.path.abspath(argument)) for argument in sys.argv[1:4])
    site = Site(glasshead, web, folder)
    site.build()
    pages = sum(1 for _ in folder.rglob("*.html"))
    print(f"{pages} pages in {folder}; any web server can host it: python3 -m http.server -d {folder}")


if __name__ == "__main__":
    main()
