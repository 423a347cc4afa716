"""What is computed: the command's bytes, or a refusal with a code; within the limits, whatever comes."""

import base64
import json
import pathlib
import signal
import socket
import struct
import tempfile
import threading
import time
import unittest

import view
from view import Served, View, case_text, command, jobs_of, make_page, wait_until


def npy(rows):
    """A matrix as a .npy file."""
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({len(rows)}, {len(rows[0])}), }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    values = b"".join(struct.pack("<d", x) for row in rows for x in row)
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + values


def large_case(rows):
    """So many queries and keys that a trace takes seconds."""
    return json.dumps({"schema": "glasshead.case/1", "random": {"seed": 1, "rows": rows, "d_k": 64}, "attention": {}})


class Cases(View):
    ARGUMENTS = ("--no-open", "three-tokens-causal", str(view.ROOT / "cases" / "cross.json"))

    def test_info_says_what_there_is(self):
        _, _, body = self.ask("GET", "/api/v1/info")
        info = json.loads(body)
        self.assertEqual((info["schema"], info["cases"]), ("glasshead.info/1", ["three-tokens-causal", "cross"]))
        self.assertEqual(info["version"], command("--version").decode().split()[-1])
        self.assertEqual(info["limits"], {"body_bytes": 64 << 20, "seconds": 60, "memory_bytes": 4096 << 20})

    def test_a_case_is_its_file(self):
        for name in ("three-tokens-causal", "cross"):
            status, _, body = self.ask("GET", f"/api/v1/cases/{name}")
            self.assertEqual((status, body.decode()), (200, case_text(name)))


class Calls(View):
    ARGUMENTS = ("--no-open",)

    def assert_same(self, call, request, *arguments):
        status, headers, body = self.post(call, request)
        self.assertEqual(status, 200, body)
        self.assertEqual(body, command(*arguments))
        return headers["Content-Type"]

    def test_traces_are_the_commands_bytes(self):
        for path in sorted((view.ROOT / "cases").glob("*.json"))[::4]:  # tests/wasm has all
            name = path.stem
            if b"no allowed key" in self.post("trace", {"name": name, "case": case_text(name)})[2]:
                continue  # refused, as it is by the command
            request = {"name": name, "case": case_text(name), "format": "json"}
            self.assertEqual(self.assert_same("trace", request, "trace", name, "--format", "json"), "application/json")

    def test_other_formats_and_views_are_the_commands_bytes(self):
        request = {"name": "three-tokens-causal", "case": case_text("three-tokens-causal")}
        kind = self.assert_same("trace", {**request, "format": "text"}, "trace", "three-tokens-causal")
        self.assertEqual(kind, "text/plain; charset=utf-8")
        self.assert_same("trace", {**request, "mistake": "mask-after"}, "trace", "three-tokens-causal", "--mistake",
                         "mask-after", "--format", "json")
        self.assert_same("trace", {**request, "by_hand": 2, "format": "md"}, "trace", "three-tokens-causal",
                         "--by-hand", "2", "--format", "md")

    def test_a_large_case_is_answered(self):
        with tempfile.TemporaryDirectory() as folder:
            rows = 96
            path = pathlib.Path(folder, "large.json")
            path.write_text(large_case(rows))
            self.assert_same("trace", {"name": "large", "case": path.read_text()}, "trace", str(path), "--format", "json")

    def test_the_doctor_says_the_commands_bytes(self):
        name = "three-tokens-causal"
        request = {"name": name, "case": case_text(name)}
        text = "1 0 0; .5 .5 0; .25 .25 .5"
        wrong = [[0.5, 0.5], [0.25, 0.75], [0.75, 0.75]]
        with tempfile.TemporaryDirectory() as folder:
            theirs = pathlib.Path(folder, "theirs.npy")
            theirs.write_bytes(npy(wrong))
            for fields, flags in (
                    ({"claims": {"weights": text}}, ("--weights", text)),
                    ({"claims": {"weights": text}, "decimals": 1}, ("--weights", text, "--decimals", "1")),
                    ({"claims": {"weights": "[[1, 0, 0], [.5, .5, 0], [.25, .25, .5]]"}},
                     ("--weights", "[[1, 0, 0], [.5, .5, 0], [.25, .25, .5]]")),
                    ({"claims": {"out": wrong}}, ("--out", str(theirs))),
                    ({"claims": {"out": wrong}, "dtype": "f16", "pairs": False},
                     ("--out", str(theirs), "--dtype", "f16", "--no-pairs")),
                    ({"claims": {"lse": "0.7; 1.1; 2.1", "scores": "0 0 0; 0 0 0; 0 0 0"}},
                     ("--lse", "0.7; 1.1; 2.1", "--scores", "0 0 0; 0 0 0; 0 0 0"))):
                self.assert_same("doctor", {**request, **fields}, "doctor", name, *flags, "--json")
            kind = self.assert_same("doctor", {**request, "claims": {"weights": text}, "format": "text"}, "doctor",
                                    name, "--weights", text)
            self.assertEqual(kind, "text/plain; charset=utf-8")

    def test_large_inputs_are_judged_alike_however_they_come(self):
        # As lists beside a case, as a file's bytes, and from files by the command.
        rows, size = 96, 64
        out = [[((7 * i + 3 * j) % 11 - 5) / 8 for j in range(size)] for i in range(rows)]
        case = large_case(rows)
        with tempfile.TemporaryDirectory() as folder:
            path, theirs = pathlib.Path(folder, "large.json"), pathlib.Path(folder, "theirs.npy")
            path.write_text(case)
            theirs.write_bytes(npy(out))
            said = ("doctor", str(path), "--out", str(theirs), "--no-pairs", "--json")
            request = {"name": "large", "case": case}
            self.assert_same("doctor", {**request, "claims": {"out": out}, "pairs": False}, *said)
            source = {"name": "theirs.npy", "base64": base64.b64encode(theirs.read_bytes()).decode()}
            self.assert_same("doctor", {**request, "sources": [source], "roles": {"out": 0}, "pairs": "no",
                                        "format": "json"}, *said)

    def assert_problem(self, call, request, where):
        told = self.assert_refused(self.post(call, request), 422, "refused")
        self.assertIn(where, [problem["where"] for problem in told["problems"]], told)
        return told

    def test_what_is_wrong_is_named_field_by_field(self):
        case = case_text("three-tokens")
        right = {"name": "three-tokens", "case": case, "claims": {"out": [[1, 0], [0, 1], [1, 1]]}}
        self.assert_problem("trace", {"case": "{}"}, "schema")
        self.assert_problem("trace", {"case": case, "format": "pdf"}, "format")
        self.assert_problem("nonsense", {}, "call")
        for missing in ("q", "k", "v", "out"):
            self.assert_problem("doctor", {}, missing)
        self.assert_problem("doctor", {**right, "more": 1}, "more")
        self.assert_problem("doctor", {**right, "case": 1}, "case")
        self.assert_problem("doctor", {**right, "decimals": -1}, "decimals")
        self.assert_problem("doctor", {**right, "decimals": 2.5}, "decimals")
        self.assert_problem("doctor", {**right, "dtype": "f8"}, "dtype")
        self.assert_problem("doctor", {**right, "pairs": "maybe"}, "pairs")
        self.assert_problem("doctor", {**right, "format": "pdf"}, "format")
        self.assert_problem("doctor", {**right, "claims": []}, "claims")
        self.assert_problem("doctor", {**right, "claims": {"output": [[1]]}}, "claims.output")
        for out in ([], [[1, 2], [3]], [[1, 2], 3], [[1, "2"]], 7, "", "1 x", "1 2; 3", [[[[[1]]]]], [[1, None]]):
            told = self.assert_refused(self.post("doctor", {**right, "claims": {"out": out}}), 422, "refused")
            self.assertTrue(all(problem["where"].startswith("claims.out") for problem in told["problems"]), told)

    def test_claims_of_another_shape_are_refused(self):
        told = self.assert_refused(self.post("doctor", {"case": case_text("three-tokens"), "claims": {"out": [[1, 2]]}}),
                                   422, "refused")
        self.assertTrue(told["problems"])

    def test_what_is_no_json_is_refused(self):
        for body in ("", "x", "[]", "1", '{"case"', '{"case": "\\ud800"}', "\0", b"\xff\xfe", '{"name": NaN}'):
            self.assert_refused(self.ask("POST", "/api/v1/trace", body), 422, "refused")

    def test_deep_json_is_refused(self):
        for depth in (33, 1000, 5_000_000):
            for body in ("[" * depth, "[" * depth + "]" * depth, '{"case":' * min(depth, 500_000)):
                self.assert_refused(self.ask("POST", "/api/v1/trace", body), 422, "refused")
        # Brackets in a text are no lists.
        told = self.assert_refused(self.post("trace", {"case": "[" * 100}), 422, "refused")
        self.assertNotEqual(told["problems"][0]["where"], "request")

    def test_calls_have_one_word(self):
        for path in ("trace/", "trace/x", "..", "Trace", "tr%61ce%2f", "", "../trace", "trace%00"):
            self.assert_refused(self.ask("POST", f"/api/v1/{path}", "{}"), 404, "no-such-page")

    def test_two_at_once_get_their_own_answers(self):
        names = ["three-tokens", "one-query", "cross", "two-heads"] * 3
        found = {}

        def ask(n, name):
            found[n] = self.post("trace", {"name": name, "case": case_text(name)})

        threads = [threading.Thread(target=ask, args=pair) for pair in enumerate(names)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for n, name in enumerate(names):
            self.assertEqual((found[n][0], found[n][2]), (200, command("trace", name, "--format", "json")), name)


class Limits(View):
    ARGUMENTS = ("--no-open", "--time-limit", "8" if view.SANITIZED else "2", "--max-body", "1")
    SOON = view.PATIENCE / 2  # seconds in which what the time limit ends is over

    def tearDown(self):
        if not view.SANITIZED:
            self.assertEqual(self.post("trace", {"case": case_text("three-tokens")})[0], 200)
        self.assertTrue(wait_until(lambda: not jobs_of(self.served.process)))

    def test_a_body_that_says_it_is_large_is_not_read(self):
        answer = self.ask("POST", "/api/v1/trace", None, {"Content-Type": "application/json",
                                                          "Content-Length": str((1 << 20) + 1)})
        self.assert_refused(answer, 413, "too-large")

    def test_a_body_that_turns_out_large_is_not_kept(self):
        piece = b"10000\r\n" + b" " * 65536 + b"\r\n"
        head = (f"POST /api/v1/trace HTTP/1.1\r\nHost: 127.0.0.1:{self.served.port}\r\n"
                f"Glasshead-Token: {self.served.token}\r\nContent-Type: application/json\r\n"
                "Transfer-Encoding: chunked\r\n\r\n").encode()
        answer = self.raw(head + piece * 17)
        self.assertIn(b" 413 ", answer.split(b"\r\n")[0])
        self.assertIn(b'"code":"too-large"', answer)

    def test_a_body_of_the_most_is_read(self):
        body = json.dumps({"case": "x"})
        answer = self.ask("POST", "/api/v1/trace", body + " " * ((1 << 20) - len(body)))
        self.assert_refused(answer, 422, "refused")
        self.assert_refused(self.ask("POST", "/api/v1/trace", body + " " * ((1 << 20) + 1 - len(body))), 413, "too-large")

    def slow(self, head, seconds):
        """How long a client is listened to that sends a byte now and then."""
        start = time.monotonic()
        with socket.create_connection(("127.0.0.1", self.served.port), timeout=view.PATIENCE) as client:
            client.sendall(head)
            client.settimeout(0.05)
            answer = b""
            while time.monotonic() - start < view.PATIENCE:
                try:
                    client.sendall(b" ")
                    piece = client.recv(65536)
                    if not piece:
                        break
                    answer += piece
                except TimeoutError:
                    continue
                except OSError:
                    break
        self.assertLess(time.monotonic() - start, seconds)
        return answer

    def test_a_slow_body_is_left(self):
        head = (f"POST /api/v1/trace HTTP/1.1\r\nHost: 127.0.0.1:{self.served.port}\r\n"
                f"Glasshead-Token: {self.served.token}\r\nContent-Type: application/json\r\n"
                "Content-Length: 1000\r\n\r\n").encode()
        answer = self.slow(head, self.SOON)
        self.assertIn(b" 408 ", answer.split(b"\r\n")[0])
        self.assertIn(b'"code":"too-slow"', answer)

    def test_a_slow_head_is_left(self):
        self.assertNotIn(b" 200 ", self.slow(b"GET / HTTP/1.1\r\nX: ", self.SOON).split(b"\r\n")[0])

    def test_many_slow_clients_do_not_keep_others_out(self):
        slow = [socket.create_connection(("127.0.0.1", self.served.port), timeout=view.PATIENCE) for _ in range(20)]
        try:
            for client in slow:
                client.sendall(b"GET / HTTP/1.1\r\n")
            self.assertEqual(self.ask("GET", "/api/v1/info")[0], 200)
        finally:
            for client in slow:
                client.close()

    def test_a_body_that_ends_early_is_refused(self):
        with socket.create_connection(("127.0.0.1", self.served.port), timeout=view.PATIENCE) as client:
            client.sendall((f"POST /api/v1/trace HTTP/1.1\r\nHost: 127.0.0.1:{self.served.port}\r\n"
                            f"Glasshead-Token: {self.served.token}\r\nContent-Type: application/json\r\n"
                            "Content-Length: 1000\r\n\r\n{").encode())
            client.shutdown(socket.SHUT_WR)
            self.assertIn(b" 400 ", client.recv(65536).split(b"\r\n")[0])

    def test_a_long_computation_is_ended(self):
        start = time.monotonic()
        self.assert_refused(self.post("trace", {"case": large_case(1500)}), 503, "time-limit")
        self.assertLess(time.monotonic() - start, self.SOON)

    @unittest.skipIf(view.SANITIZED, "sanitizers keep terabytes of addresses, so nothing is limited there")
    def test_a_computation_that_needs_much_memory_is_ended(self):
        body = '{"case":[' + ",".join(["[]"] * 340_000) + "]}"
        for limit, status, code in ((400, 422, "refused"), (40, 503, "memory-limit")):
            served = Served(self.temporary.name, "--no-open", "--memory-limit", str(limit))
            self.addCleanup(served.end)
            self.assert_refused(served.ask("POST", "/api/v1/trace", body), status, code)
            self.assertEqual(served.ask("GET", "/api/v1/info")[0], 200)


class Ends(unittest.TestCase):
    """The server ends when it is told to, whatever goes on, and leaves nothing behind."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        make_page(temporary.name)
        self.served = Served(temporary.name, "--no-open")
        self.addCleanup(self.served.end)

    def begin_long(self):
        """A computation of some minutes, and where its answer will stand."""
        answers = []

        def ask():
            try:
                answers.append(self.served.post("trace", {"case": large_case(3000)}))
            except OSError as error:
                answers.append(error)

        thread = threading.Thread(target=ask)
        thread.start()
        self.addCleanup(thread.join)
        self.assertTrue(wait_until(lambda: jobs_of(self.served.process)))
        return thread, answers

    def test_when_nothing_goes_on(self):
        for by in (signal.SIGINT, signal.SIGTERM):
            start = time.monotonic()
            self.setUp()
            self.assertEqual(self.served.end(by), 0)
            self.assertLess(time.monotonic() - start, view.PATIENCE / 4)

    def test_in_the_middle_of_a_computation(self):
        thread, answers = self.begin_long()
        jobs = jobs_of(self.served.process)
        start = time.monotonic()
        self.assertEqual(self.served.end(signal.SIGINT), 0)
        self.assertLess(time.monotonic() - start, view.PATIENCE / 4)
        thread.join(view.PATIENCE)
        status, _, body = answers[0]
        self.assertEqual((status, json.loads(body)["code"]), (503, "shutting-down"))
        self.assertFalse([job for job in jobs if pathlib.Path(f"/proc/{job}").exists()])

    def test_in_the_middle_of_a_body(self):
        with socket.create_connection(("127.0.0.1", self.served.port), timeout=view.PATIENCE) as client:
            client.sendall((f"POST /api/v1/trace HTTP/1.1\r\nHost: 127.0.0.1:{self.served.port}\r\n"
                            f"Glasshead-Token: {self.served.token}\r\nContent-Type: application/json\r\n"
                            "Content-Length: 1000\r\n\r\n{").encode())
            self.assertTrue(wait_until(lambda: self.served.has_read(client)))
            start = time.monotonic()
            self.assertEqual(self.served.end(), 0)
            self.assertLess(time.monotonic() - start, view.PATIENCE / 4)
            self.assertIn(b"shutting-down", client.recv(65536))

    def test_a_client_that_leaves_ends_its_computation(self):
        with socket.create_connection(("127.0.0.1", self.served.port), timeout=view.PATIENCE) as client:
            body = json.dumps({"case": large_case(3000)})
            client.sendall((f"POST /api/v1/trace HTTP/1.1\r\nHost: 127.0.0.1:{self.served.port}\r\n"
                            f"Glasshead-Token: {self.served.token}\r\nContent-Type: application/json\r\n"
                            f"Content-Length: {len(body)}\r\n\r\n{body}").encode())
            self.assertTrue(wait_until(lambda: jobs_of(self.served.process)))
        self.assertTrue(wait_until(lambda: not jobs_of(self.served.process)))

    def test_no_computation_outlives_a_killed_server(self):
        self.begin_long()
        jobs = jobs_of(self.served.process)
        self.served.process.kill()
        self.served.process.wait(view.PATIENCE)
        self.assertTrue(jobs)

        def is_over(job):
            stat = pathlib.Path(f"/proc/{job}/stat")
            try:
                return stat.read_text().rpartition(")")[2].split()[0] == "Z"
            except OSError:
                return True

        self.assertTrue(wait_until(lambda: all(is_over(job) for job in jobs)))


if __name__ == "__main__":
    view.main()
