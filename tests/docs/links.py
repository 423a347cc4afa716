"""links.py SITE: follows every link of a folder of pages, and fails on one that leads nowhere or elsewhere.

A link to another server may stand in a page's text; nothing that a browser fetches by itself may."""

import html.parser
import pathlib
import re
import sys
import urllib.parse

FETCHED = {("img", "src"), ("script", "src"), ("link", "href"), ("source", "src"), ("iframe", "src"), ("video", "src"),
           ("audio", "src"), ("object", "data"), ("embed", "src")}
FOREIGN = re.compile(r"https?:|//")


class Page(html.parser.HTMLParser):
    """The links of a page, and the anchors in it."""

    def __init__(self, text):
        super().__init__()
        self.links, self.fetched, self.anchors = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if value is None:
                continue
            if name == "id" or (tag == "a" and name == "name"):
                self.anchors.add(value)
            if (tag, name) == ("a", "href"):
                self.links.append(value)
            if (tag, name) in FETCHED:
                self.fetched.append(value)


def problems_of(site):
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    cases = {path.stem for path in (site / "lessons").glob("*.html")}
    count = 0
    for path, page in pages.items():
        where = path.relative_to(site)
        for link in page.links + page.fetched:
            if FOREIGN.match(link):
                if link in page.fetched:
                    yield f"{where}: fetches {link}"
                continue
            if re.match(r"(data|mailto):", link):
                continue
            count += 1
            if re.match(r"[a-z][a-z0-9+.-]*:", link):
                yield f"{where}: {link}: no link of the web"
                continue
            address, anchor = urllib.parse.urldefrag(link)
            target = (path.parent / urllib.parse.unquote(address)).resolve() if address else path
            if not target.is_relative_to(site) or not target.is_file():
                yield f"{where}: {link}: nothing is there"
            elif anchor.startswith("/learn/"):
                if anchor[len("/learn/"):].partition("?")[0] not in cases:
                    yield f"{where}: {link}: no such case"
            elif anchor and anchor not in pages[target].anchors:
                yield f"{where}: {link}: no such heading"
    if count < 100 or len(pages) < 40:
        yield f"only {count} links on {len(pages)} pages"
    print(f"{count} links on {len(pages)} pages followed")


def main():
    problems = list(problems_of(pathlib.Path(sys.argv[1]).resolve()))
    if problems:
        sys.exit("\n".join(problems))


if __name__ == "__main__":
    main()
