"""Starts `glasshead view` on a small page of its own, and talks to it.

    from view import View, main
    class Token(View):
        def test_something(self):
            status, headers, body = self.ask("GET", "/api/v1/info")
"""

import http.client
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = None  # set by main() from the command line
ROOT = pathlib.Path(__file__).resolve().parents[2]
SANITIZED = bool(os.environ.get("GLASSHEAD_SANITIZE"))
PATIENCE = 60 if SANITIZED else 20  # seconds that anything may take here

ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)/#/(?:learn/([\w-]+))?\?v=1&token=([0-9a-f]{32})\n")


def command(*arguments):
    """What a command prints, as bytes."""
    return subprocess.run([PROGRAM, *arguments], capture_output=True, timeout=PATIENCE).stdout


def case_text(name):
    return (ROOT / "cases" / f"{name}.json").read_text(encoding="utf-8")


def jobs_of(process):
    """The processes that a server's computations run in."""
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            after_name = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        if int(after_name[1]) == process.pid and after_name[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def wait_until(is_true):
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if is_true():
            return True
        time.sleep(0.01)
    return False


class Served:
    """One running server."""

    def __init__(self, folder, *arguments, env=None):
        self.folder = pathlib.Path(folder)
        self.errors = open(self.folder / "stderr", "w+")
        self.process = subprocess.Popen([PROGRAM, "view", "--web", str(self.folder / "web"), *arguments],
                                        stdout=subprocess.PIPE, stderr=self.errors, text=True, env=env)
        self.address = self.process.stdout.readline()
        found = ADDRESS.fullmatch(self.address)
        if not found:
            raise AssertionError(f"no address: {self.address!r} {self.said()}")
        self.port, self.case, self.token = int(found[1]), found[2], found[3]

    def said(self):
        self.errors.seek(0)
        return self.errors.read()

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)

    def ask(self, method, path, body=None, headers=None, token=True):
        """(status, headers, body) of a request with the right token; None among `headers` leaves one out."""
        sent = {"Glasshead-Token": self.token} if token else {}
        if body is not None:
            sent["Content-Type"] = "application/json"
        sent.update(headers or {})
        connection = self.connect()
        try:
            connection.putrequest(method, path, skip_host="Host" in sent, skip_accept_encoding=True)
            if body is not None and "Content-Length" not in sent and "Transfer-Encoding" not in sent:
                sent["Content-Length"] = str(len(body))
            for name, value in sent.items():
                if value is not None:
                    connection.putheader(name, value)
            connection.endheaders(body if isinstance(body, bytes) else (body or "").encode() or None)
            response = connection.getresponse()
            return response.status, response.headers, response.read()
        finally:
            connection.close()

    def post(self, call, request):
        return self.ask("POST", f"/api/v1/{call}", json.dumps(request))

    def raw(self, data):
        """What comes back for these bytes, until the server closes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as client:
            try:
                client.sendall(data)
            except OSError:  # it had heard enough
                pass
            answer = b""
            try:
                while piece := client.recv(65536):
                    answer += piece
            except ConnectionResetError:
                pass
            return answer

    def has_read(self, client):
        """Whether the server has taken this connection and read all that was sent on it."""
        ends = [f":{self.port:04X}", f":{client.getsockname()[1]:04X}"]
        for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
            _, *addresses, _, queues, _, _, _, _, inode = line.split()[:10]
            if all(address.endswith(end) for address, end in zip(addresses, ends)):
                return inode != "0" and queues.endswith(":00000000")
        return False

    def end(self, by=signal.SIGTERM):
        """Its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(by)
        try:
            return self.process.wait(PATIENCE)
        finally:
            self.process.stdout.close()
            self.errors.close()


def make_page(folder):
    """A page of two files, a secret beside it, and a link to the secret in it."""
    web = pathlib.Path(folder, "web")
    (web / "assets").mkdir(parents=True)
    (web / "index.html").write_text("<!doctype html><title>page</title>")
    (web / "assets" / "page.js").write_text("// the page\n")
    (web / "assets" / "engine.wasm").write_bytes(b"\0asm\1\0\0\0")
    pathlib.Path(folder, "secret.txt").write_text("the secret")
    (web / "assets" / "link.txt").symlink_to(pathlib.Path(folder, "secret.txt"))


class View(unittest.TestCase):
    """A server for all tests of a class; ARGUMENTS are its own."""

    ARGUMENTS = ("--no-open", "three-tokens")

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.temporary.cleanup)
        make_page(cls.temporary.name)
        cls.served = Served(cls.temporary.name, *cls.ARGUMENTS)
        cls.addClassCleanup(cls.served.end)
        cls.ask, cls.post, cls.raw = cls.served.ask, cls.served.post, cls.served.raw

    def assert_refused(self, answer, status, code):
        found, headers, body = answer
        self.assertEqual((found, headers["Content-Type"]), (status, "application/json"), body)
        told = json.loads(body)
        self.assertEqual(told["code"], code, told)
        self.assertTrue(told["message"])
        self.assertEqual([name for name in headers if name.lower().startswith("access-control")], [])
        return told


def main():
    global PROGRAM
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main(module="__main__")
