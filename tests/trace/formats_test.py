"""Every form of every case is well formed, and hostile labels stay text in all of them."""

import base64
import csv
import html.parser
import io
import json
import pathlib
import re
import struct
import sys
import tempfile
import xml.etree.ElementTree
import zlib

from command import Failures, case_names, run

failures = Failures()
VOID = {"meta", "link", "br", "img", "input", "hr"}

# Labels that would end or open markup, run a script, hide text, or start a formula.
HOSTILE = ["<script>", "a|b`c", "\u202eevil", "x&y_$%", "=1+2", "\\end{b}", "\"'>", "日本"]


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.ids, self.tags, self.problems = [], [], set(), []
        self.exact = {}

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.add(tag)
        if tag not in VOID:
            self.open.append(tag)
        if "data-testid" in attrs:
            self.ids.append(attrs["data-testid"])
            if "data-exact" in attrs:
                self.exact[attrs["data-testid"]] = attrs["data-exact"]
        for name in ("src", "href"):
            if attrs.get(name, "").startswith(("http", "//")):
                self.problems.append(f"fetches {attrs[name]}")
        if any(name.startswith("on") for name in attrs):
            self.problems.append(f"<{tag}> has a handler")

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.problems.append(f"</{tag}> closes nothing")


def page_of(text, where):
    page = Page()
    page.feed(text)
    page.close()
    failures.expect(not page.open and not page.problems, f"{where}: {page.open} {page.problems}")
    failures.expect("script" not in page.tags, f"{where}: has a script")
    doubled = {i for i in page.ids if page.ids.count(i) > 1}
    failures.expect(not doubled, f"{where}: test ids twice: {sorted(doubled)[:4]}")
    return page


def check_latex(text, where):
    bare = re.sub(r"\\[{}%$&#_\\]", "", text)
    depth = 0
    for c in bare:
        depth += {"{": 1, "}": -1}.get(c, 0)
        failures.expect(depth >= 0, f"{where}: a brace closes nothing")
    failures.expect(depth == 0, f"{where}: braces do not balance")
    opened = []
    for kind, name in re.findall(r"\\(begin|end)\{(\w+\*?)\}", bare):
        if kind == "begin":
            opened.append(name)
        else:
            failures.expect(bool(opened) and opened.pop() == name, f"{where}: \\end{{{name}}}")
    failures.expect(not opened, f"{where}: {opened} not ended")
    # A page of article at 10pt: lines of 345pt, 43 of them; a digit takes 5pt, a column's spaces 10pt.
    for matrix in re.findall(r"\\begin\{bmatrix\}(.*?)\\end\{bmatrix\}", text):
        rows = [row.split("&") for row in matrix.split(r"\\")]
        width = sum(10 + 5 * max(len(re.sub(r"\\\w+", "-", x)) for x in column) for column in zip(*rows))
        failures.expect(len(rows) < 43 and (width <= 345 or len(rows[0]) == 1),
                        f"{where}: a matrix of {len(rows)} rows and {width}pt does not fit a page")


def check_tables(text, where):
    """Every row of a Markdown table has the header's number of fields."""
    fields = None
    for line in text.splitlines():
        if not line.startswith("|"):
            fields = None
            continue
        count = len(re.findall(r"(?<!\\)\|", line))
        failures.expect(fields in (None, count), f"{where}: {line}")
        fields = count


def check_forms(name):
    page = page_of(run(name, "--format", "html"), f"{name} html")
    trace = json.loads(run(name, "--format", "json"))
    rows = trace.get("weights")
    if rows and not isinstance(rows[0][0], list):
        for i, row in enumerate(rows):
            for j, x in enumerate(row):
                exact = page.exact.get(f"cell-weights-{i}-{j}")
                if exact is not None:
                    failures.expect(float(exact) == x, f"{name} html: weights {i} {j} is {exact}")
    check_latex(run(name, "--format", "latex", "--standalone"), f"{name} latex")
    math = run(name, "--format", "md", "--math")
    check_tables(math, f"{name} md")
    failures.expect(math.count("$$") % 2 == 0, f"{name} md: $$ does not pair")
    xml.etree.ElementTree.fromstring(run(name, "--format", "svg"))
    for row in csv.reader(io.StringIO(run(name, "--format", "csv"))):
        failures.expect(bool(row), f"{name} csv: an empty line")
    ascii_only = run(name, "--ascii", "--width", "60")
    failures.expect(ascii_only.isascii(), f"{name} --ascii: {ascii_only}")
    for line in ascii_only.splitlines():
        failures.expect(line.isprintable(), f"{name} text: {line!r}")


def write_hostile(folder):
    case = {"schema": "glasshead.case/1", "title": "<b>hostile</b> $x$ \\input{a} `c`",
            "from": "ours", "tokens": HOSTILE,
            "X": [[n % 3, n % 2] for n in range(len(HOSTILE))]}
    case["attention"] = {name: [[1, 0], [0, 1]] for name in ("W_Q", "W_K", "W_V")}
    path = pathlib.Path(folder) / "hostile<i>.json"
    path.write_text(json.dumps(case), encoding="utf-8")
    return path


def check_hostile(folder):
    path = write_hostile(folder)
    page = page_of(run(path, "--format", "html"), "hostile html")
    failures.expect(not page.tags & {"script", "b", "i"}, f"hostile html: {page.tags}")
    tree = xml.etree.ElementTree.fromstring(run(path, "--format", "svg"))
    failures.expect(all("script" not in e.tag for e in tree.iter()), "hostile svg: script")
    latex = run(path, "--format", "latex", "--standalone")
    check_latex(latex, "hostile latex")
    failures.expect("\\input" not in latex and "\\end{b}" not in latex, "hostile latex: a command")
    markdown = run(path, "--format", "md")
    check_tables(markdown, "hostile md")
    failures.expect("<script" not in markdown and "<b>" not in markdown, "hostile md: a tag")
    rows = list(csv.reader(io.StringIO(run(path, "--format", "csv", "--steps", "weights"))))
    failures.expect(len({len(row) for row in rows}) == 1, f"hostile csv: {rows}")
    failures.expect("'=1+2" in rows[0], f"hostile csv: {rows[0]}")
    for form in ("text", "html", "md", "latex", "svg", "csv"):
        text = run(path, "--format", form)
        failures.expect("\u202e" not in text, f"hostile {form}: text direction is overridden")
    failures.expect("\\u202e" in run(path), "hostile text: the escape is not shown")
    labels = json.loads(run(path, "--format", "json"))["labels"]["q"]
    failures.expect(labels == HOSTILE, f"hostile json: {labels}")


def check_large(folder):
    """Above 64 keys the figure is a bitmap: a valid PNG of the matrix's size."""
    n = 80
    case = {"schema": "glasshead.case/1", "title": "large", "from": "ours",
            "tokens": [f"t{i}" for i in range(n)], "X": [[i % 7, i % 5] for i in range(n)],
            "attention": {"W_Q": [[1, 0], [0, 1]], "W_K": [[1, 0], [0, 1]],
                          "W_V": [[1, 0], [0, 1]], "mask": "causal"}}
    path = pathlib.Path(folder) / "large.json"
    path.write_text(json.dumps(case), encoding="utf-8")
    svg = run(path, "--format", "svg", "--steps", "weights")
    xml.etree.ElementTree.fromstring(svg)
    data = base64.b64decode(re.search(r"base64,([^\"]*)\"", svg).group(1))
    failures.expect(data[:8] == b"\x89PNG\r\n\x1a\n", "png: signature")
    at, image = 8, b""
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + size]
        crc, = struct.unpack(">I", data[at + 8 + size:at + 12 + size])
        failures.expect(zlib.crc32(kind + body) == crc, f"png: crc of {kind}")
        if kind == b"IHDR":
            failures.expect(struct.unpack(">II", body[:8]) == (n, n), "png: size")
        if kind == b"IDAT":
            image += body
        at += 12 + size
    pixels = zlib.decompress(image)
    failures.expect(len(pixels) == n * (n + 1), "png: pixels")
    failures.expect(pixels[2] == 255 and pixels[1] != 255, "png: row 0 sees itself alone")
    text = run(path, "--query", "t60")
    failures.expect("others (53)" in text and "1.0000 ✓ Σ" in text, f"long row: {text}")
    whole = run(path, "--query", "t60", "--full", "--steps", "weights", "--width", "100")
    failures.expect(all(len(line) <= 101 for line in whole.splitlines()), "long row: not wrapped")


def main():
    for name in case_names():
        if name != "empty-row":
            check_forms(name)
    with tempfile.TemporaryDirectory() as folder:
        check_hostile(folder)
        check_large(folder)
    failures.finish()


main()
