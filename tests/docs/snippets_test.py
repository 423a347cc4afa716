"""Runs what README.md and docs/*.md say. `snippets_test.py SOURCE_DIR GLASSHEAD CONFORMANCE [--update] [--models]`.

In a fenced block, a line `$ glasshead ...` (or `$ glasshead-conformance ...`, `$ example_NAME`) is a command; the lines up to the next
`$` are its output, all of it; a line `[exit N]` after them is an exit code other than 0. A line that is only `...`
stands for any lines left out. A ```cpp block after `<!-- examples/NAME.cc -->` must stand in that file; a ```cmake
block after `<!-- tests/install/consumer/CMakeLists.txt -->` must be that file, which the install test builds.
A command that names a file under build/models is run where that is (tools/fetch_models.py fetches it), and else left.
--update writes the real output into the files instead (not where lines are left out); --models runs the commands that
need fetched models, and no others, and misses none."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

UPDATE = "--update" in sys.argv
if UPDATE:
    sys.argv.remove("--update")
MODELS = "--models" in sys.argv
if MODELS:
    sys.argv.remove("--models")
ROOT, GLASSHEAD, CONFORMANCE = (pathlib.Path(a).resolve() for a in sys.argv[1:4])
del sys.argv[1:4]

PROGRAMS = {"glasshead": GLASSHEAD, "glasshead-conformance": CONFORMANCE}
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^(```|~~~)(\w*)\n(.*?)^\1\s*$", re.S | re.M)


def run(command, folder):
    """Output of a command line; programs are found by name, pipes and redirections are the shell's."""
    env = {**os.environ, "PATH": f"{folder}/bin:{os.environ['PATH']}", "COLUMNS": "120", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=env, capture_output=True, text=True, timeout=120)
    text = done.stdout + done.stderr
    lines = [line.rstrip() for line in text.rstrip("\n").split("\n")] if text.strip() else []
    return lines + ([f"[exit {done.returncode}]"] if done.returncode else [])


def models_of(command):
    """The fetched models' files that a command names."""
    return re.findall(r"build/models/[\w./-]+", command)


def is_left(command):
    """Not to be run this time."""
    paths = models_of(command)
    if MODELS:
        return not paths
    return not all((ROOT / path).exists() for path in paths)


def matches(expected, actual):
    """Equal line by line; `...` in what is expected stands for any number of lines."""
    pattern = "".join(r"(?:.*\n)*?" if line.strip() == "..." else re.escape(line) + r"\n" for line in expected)
    return re.fullmatch(pattern, "".join(line + "\n" for line in actual)) is not None


def sessions(block):
    """(command, output lines) pairs of a block; a trailing backslash continues a command."""
    found, lines, at = [], block.split("\n"), 0
    if lines and lines[-1] == "":
        lines.pop()
    while at < len(lines):
        if not re.match(r"\$ (glasshead|example_)", lines[at]) and not found:
            at += 1
            continue
        if lines[at].startswith("$ "):
            command = lines[at][2:]
            while command.endswith("\\"):
                at += 1
                command = command[:-1] + lines[at].lstrip()
            found.append((command, []))
        else:
            found[-1][1].append(lines[at].rstrip())
        at += 1
    for _, output in found:
        while output and output[-1] == "":
            output.pop()
    return found


class Pages(unittest.TestCase):
    def test_no_page_has_the_marks_of_a_merge(self):
        marked = [f"{page.name}: {line}" for page in PAGES for line in page.read_text(encoding="utf-8").split("\n")
                  if re.match(r"(<{7}|>{7}) |={7}$", line)]
        self.assertEqual(marked, [])

    maxDiff = None

    def test_commands_print_what_the_page_shows(self):
        count = 0
        for page in PAGES:
            text = page.read_text(encoding="utf-8")
            with tempfile.TemporaryDirectory() as folder:
                self.prepare(folder)
                for fence in list(FENCE.finditer(text)):
                    pairs = sessions(fence.group(3))
                    for command, expected in pairs:
                        if is_left(command):
                            continue
                        count += 1
                        actual = run(command, folder)
                        if UPDATE and "..." not in expected:
                            text = text.replace("\n".join([f"$ {command}", *expected, ""]), "\n".join([f"$ {command}", *actual, ""]), 1)
                            continue
                        if not matches(expected, actual):
                            with self.subTest(page=page.name, command=command):
                                self.assertEqual("\n".join(expected), "\n".join(actual))
            if UPDATE:
                page.write_text(text, encoding="utf-8")
        self.assertGreater(count, 5)

    @staticmethod
    def prepare(folder):
        """The folder a reader would be in: the source tree's cases and data, the programs on the path."""
        binaries = pathlib.Path(folder, "bin")
        binaries.mkdir()
        for name, path in PROGRAMS.items():
            (binaries / name).symlink_to(path)
        for path in GLASSHEAD.parent.glob("example_*"):
            (binaries / path.name).symlink_to(path)
        for name in ("cases", "examples", "tests"):
            pathlib.Path(folder, name).symlink_to(ROOT / name)
        pathlib.Path(folder, "build").mkdir()
        pathlib.Path(folder, "build/models").symlink_to(ROOT / "build/models")

    def test_cpp_snippets_stand_in_compiled_examples(self):
        for page in PAGES:
            text = page.read_text(encoding="utf-8")
            for name, body in re.findall(r"<!-- (examples/\S+\.cc) -->\s*\n```cpp\n(.*?)```", text, re.S):
                squeezed = re.sub(r"\s+", " ", body.strip())
                source = re.sub(r"\s+", " ", (ROOT / name).read_text(encoding="utf-8"))
                with self.subTest(page=page.name, example=name):
                    self.assertIn(squeezed, source)
            stray = len(re.findall(r"^```cpp", text, re.M)) - len(re.findall(r"<!-- examples/\S+\.cc -->\s*\n```cpp", text))
            self.assertEqual(stray, 0, f"{page.name}: a C++ block without its example")

    def test_the_page_on_cpp_shows_whole_files(self):
        text = (ROOT / "docs" / "cpp.md").read_text(encoding="utf-8")
        shown = re.findall(r"<!-- (\S+) -->\s*\n```\w+\n(.*?)```", text, re.S)
        self.assertEqual([name for name, _ in shown], ["tests/install/consumer/CMakeLists.txt", "examples/mean.cc"])
        for name, body in shown:
            self.assertEqual(body, (ROOT / name).read_text(encoding="utf-8"), name)

    def test_links_lead_somewhere(self):
        broken = []
        for page in [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]:
            text = FENCE.sub("", page.read_text(encoding="utf-8"))
            for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
                if not re.match(r"[a-z]+:", target) and not (page.parent / target).exists():
                    broken.append(f"{page.name}: {target}")
        self.assertEqual(broken, [])


if __name__ == "__main__":
    unittest.main()
