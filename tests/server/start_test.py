"""How it starts: what it refuses, where it listens, how it opens a browser."""

import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import unittest

import view
from view import Served, make_page, wait_until


class Start(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        make_page(self.folder)

    def refused(self, *arguments):
        done = subprocess.run([view.PROGRAM, "view", "--no-open", *arguments], capture_output=True, text=True,
                              timeout=view.PATIENCE)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        return done.stderr

    def serve(self, *arguments, env=None):
        served = Served(self.folder, *arguments, env=env)
        self.addCleanup(served.end)
        return served

    def test_without_a_page_it_says_how_to_build_one(self):
        empty = self.folder / "empty"
        empty.mkdir()
        self.assertIn("no index.html", self.refused("--web", str(empty)))
        self.assertIn("no such folder", self.refused("--web", str(self.folder / "none")))
        # A program elsewhere, as installed without a page.
        program = self.folder / "bin" / "glasshead"
        program.parent.mkdir()
        shutil.copy(view.PROGRAM, program)
        done = subprocess.run([program, "view", "--web", self.folder / "web"], capture_output=True, text=True,
                              timeout=view.PATIENCE)
        self.assertEqual(done.returncode, 2)
        self.assertIn("GLASSHEAD_SERVER", done.stderr)  # the server is a program of its own
        (self.folder / "libexec" / "glasshead").mkdir(parents=True)
        shutil.copy(pathlib.Path(view.PROGRAM).with_name("glasshead-view"), self.folder / "libexec" / "glasshead")
        if not (view.ROOT / "build" / "web" / "index.html").exists():
            done = subprocess.run([program, "view"], capture_output=True, text=True, timeout=view.PATIENCE)
            self.assertEqual(done.returncode, 2)
            self.assertIn("make web builds it", done.stderr)
            self.assertIn(str(self.folder / "share" / "glasshead" / "web"), done.stderr)
        # Beside the program it is found.
        (self.folder / "share" / "glasshead").mkdir(parents=True)
        shutil.copytree(self.folder / "web", self.folder / "share" / "glasshead" / "web", symlinks=True)
        process = subprocess.Popen([program, "view", "--no-open"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                   text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait, view.PATIENCE)
        self.addCleanup(process.terminate)
        self.assertRegex(process.stdout.readline(), view.ADDRESS)

    def test_cases_that_are_none(self):
        web = ("--web", str(self.folder / "web"))
        self.assertIn("did you mean three-tokens?", self.refused("three-token", *web))
        broken = self.folder / "broken.json"
        broken.write_text('{"schema": "glasshead.case/1", "x": 1}')
        self.assertIn("x: no such field", self.refused(str(broken), *web))
        other = self.folder / "one-query.json"
        other.write_text(view.case_text("one-query"))
        self.assertIn("another file is called one-query, too", self.refused("one-query", str(other), *web))

    def test_a_name_becomes_one_that_an_address_holds(self):
        case = self.folder / "my case (2).json"
        case.write_text(view.case_text("one-query"))
        served = self.serve("--no-open", str(case))
        self.assertEqual(served.case, "my-case--2-")
        self.assertEqual(served.ask("GET", "/api/v1/cases/my-case--2-")[2].decode(), view.case_text("one-query"))

    def test_a_port_that_is_taken(self):
        with socket.create_server(("127.0.0.1", 0)) as other:
            port = str(other.getsockname()[1])
            self.assertIn(f"--port: {port} can't be listened on",
                          self.refused("--port", port, "--web", str(self.folder / "web")))
        served = self.serve("--no-open")
        self.assertIn("can't be listened on",
                      self.refused("--port", str(served.port), "--web", str(self.folder / "web")))

    def test_a_port_of_choice(self):
        with socket.create_server(("127.0.0.1", 0)) as other:
            port = other.getsockname()[1]
        self.assertEqual(self.serve("--no-open", "--port", str(port)).port, port)

    def test_it_listens_on_this_machine_alone(self):
        served = self.serve("--no-open")
        # /proc/net/tcp: addresses in hexadecimal, 0A: listening; 127.0.0.1 is 0100007F.
        listening = [line.split()[1] for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]
                     if line.split()[3] == "0A" and line.split()[1].endswith(f":{served.port:04X}")]
        self.assertEqual(listening, [f"0100007F:{served.port:04X}"])

    def test_values_out_of_range(self):
        for flag, value in (("--port", "65536"), ("--port", "x"), ("--time-limit", "0"), ("--memory-limit", "-1"),
                            ("--max-body", "1e9")):
            self.assertIn(flag, self.refused(flag, value))

    def with_opener(self, script):
        binaries = self.folder / "bin"
        binaries.mkdir()
        opener = binaries / "xdg-open"
        opener.write_text(f"#!/bin/sh\n{script}\n")
        opener.chmod(0o755)
        return {**os.environ, "PATH": f"{binaries}:/usr/bin:/bin"}

    def test_a_browser_opens_at_the_address(self):
        opened = self.folder / "opened"
        served = self.serve("one-query", env=self.with_opener(f'echo "$@" >{opened}.part; mv {opened}.part {opened}'))
        self.assertTrue(wait_until(opened.exists))
        self.assertEqual(opened.read_text(), served.address)

    def test_no_browser_opens_when_none_is_wanted(self):
        opened = self.folder / "opened"
        served = self.serve("--no-open", env=self.with_opener(f"touch {opened}"))
        self.assertEqual(served.ask("GET", "/api/v1/info")[0], 200)
        self.assertEqual(served.end(), 0)
        self.assertFalse(opened.exists())

    def test_without_xdg_open_it_says_so(self):
        served = self.serve(env={**os.environ, "PATH": "/nonexistent"})
        self.assertTrue(wait_until(lambda: "xdg-open was not found" in served.said()))
        self.assertEqual(served.ask("GET", "/api/v1/info")[0], 200)

    def test_standard_files_may_be_closed(self):
        out = self.folder / "out"
        process = subprocess.Popen(f"exec {view.PROGRAM} view --no-open --web {self.folder / 'web'} >{out} 0<&- 2>&-",
                                   shell=True)
        self.addCleanup(process.wait, view.PATIENCE)
        self.addCleanup(process.terminate)
        self.assertTrue(wait_until(lambda: out.exists() and out.read_text().endswith("\n")))
        served = Served.__new__(Served)
        served.process, served.address = process, out.read_text()
        found = view.ADDRESS.fullmatch(served.address)
        served.port, served.token = int(found[1]), found[3]
        request = {"name": "one-query", "case": view.case_text("one-query")}
        status, _, body = served.post("trace", request)
        self.assertEqual((status, body), (200, view.command("trace", "one-query", "--format", "json")))


if __name__ == "__main__":
    view.main()
