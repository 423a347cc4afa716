"""Who is answered: the token, Host and Origin, paths, methods; nothing but what was named is ever sent."""

import json
import unittest

import view
from view import View


class Page(View):
    def test_the_address_names_the_case_and_holds_the_token(self):
        self.assertEqual(self.served.case, "three-tokens")

    def test_the_page_comes_without_a_token(self):
        for path, kind, begin in (("/", "text/html; charset=utf-8", b"<!doctype"),
                                  ("/index.html", "text/html; charset=utf-8", b"<!doctype"),
                                  ("/assets/page.js", "text/javascript; charset=utf-8", b"// the page"),
                                  ("/assets/engine.wasm", "application/wasm", b"\0asm")):
            status, headers, body = self.ask("GET", path, token=False)
            self.assertEqual((status, headers["Content-Type"], body[:len(begin)]), (200, kind, begin), path)
            self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
            self.assertEqual(headers["Cross-Origin-Resource-Policy"], "same-origin")
            self.assertIn("frame-ancestors 'none'", headers["Content-Security-Policy"])

    def test_no_path_leads_out_of_the_page(self):
        paths = ["/../secret.txt", "/assets/../../secret.txt", "/%2e%2e/secret.txt", "/..%2fsecret.txt",
                 "/%2e%2e%2fsecret.txt", "/assets/%2e%2e/%2e%2e/secret.txt", "/assets/..%5c..%5csecret.txt",
                 "/....//secret.txt", "//secret.txt", "/assets/link.txt", "/assets", "/assets/", "/.", "/..",
                 f"/{self.temporary.name}/secret.txt", "//etc/passwd", "/etc/passwd", "/%00index.html",
                 "/index.html%00", "/assets/page.js/..", "/cases/three-tokens.json", "/%252e%252e/secret.txt"]
        for path in paths:
            for token in (True, False):
                status, _, body = self.ask("GET", path, token=token)
                self.assertEqual((status, json.loads(body)["code"]), (404, "no-such-page"), path)

    def test_no_path_leads_out_of_the_cases(self):
        for name in ("../three-tokens", "..%2f..%2fsecret.txt", "%2e%2e/%2e%2e/secret.txt", "one-query", "/etc/passwd",
                     "three-tokens.json", "three-tokens/", ""):
            self.assert_refused(self.ask("GET", f"/api/v1/cases/{name}"), 404, "no-such-page")

    def test_other_methods_are_refused(self):
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH"):
            self.assert_refused(self.ask(method, "/index.html"), 405, "wrong-method")
            self.assert_refused(self.ask(method, "/"), 405, "wrong-method")
        for method in ("PUT", "DELETE", "OPTIONS", "PATCH"):
            self.assert_refused(self.ask(method, "/api/v1/trace"), 405, "wrong-method")

    def test_a_head_is_answered_without_a_body(self):
        status, headers, body = self.ask("HEAD", "/index.html", token=False)
        self.assertEqual((status, int(headers["Content-Length"]) > 0, body), (200, True, b""))


class Token(View):
    def test_the_right_one_opens(self):
        status, _, body = self.ask("GET", "/api/v1/info")
        self.assertEqual((status, json.loads(body)["cases"]), (200, ["three-tokens"]))

    def test_none_and_others_do_not(self):
        right = self.served.token
        wrong = [None, "", right[:-1], right + "0", right[::-1], right.upper() if right.upper() != right else "f" * 32,
                 "0" * 32, " ", "*"]
        for path, body in (("/api/v1/info", None), ("/api/v1/cases/three-tokens", None), ("/api/v1/trace", "{}"),
                           ("/api/", None), ("/api", None), ("/api/v2/info", None)):
            for token in wrong:
                method = "GET" if body is None else "POST"
                answer = self.ask(method, path, body, {"Glasshead-Token": token})
                self.assert_refused(answer, 401, "wrong-token")

    def test_two_are_none(self):
        head = (f"GET /api/v1/info HTTP/1.1\r\nHost: 127.0.0.1:{self.served.port}\r\n"
                f"Glasshead-Token: {self.served.token}\r\nGlasshead-Token: {self.served.token}\r\n\r\n")
        self.assertIn(b" 401 ", self.raw(head.encode()).split(b"\r\n")[0])

    def test_it_is_not_taken_from_the_path(self):
        answer = self.ask("GET", f"/api/v1/info?token={self.served.token}&Glasshead-Token={self.served.token}",
                          token=False)
        self.assert_refused(answer, 401, "wrong-token")

    def test_every_server_has_its_own(self):
        other = view.Served(self.temporary.name, "--no-open")
        self.addCleanup(other.end)
        self.assertNotEqual(other.token, self.served.token)
        self.assertEqual(other.case, None)
        self.assert_refused(other.ask("GET", "/api/v1/info", headers={"Glasshead-Token": self.served.token}), 401,
                            "wrong-token")


class Sites(View):
    """A page of another site can make the browser ask; it gets nothing."""

    def test_a_name_that_only_leads_here_is_refused(self):
        port = self.served.port
        for host in (f"evil.example:{port}", "127.0.0.1", "localhost", f"127.0.0.1:{port + 1}", f"127.0.0.2:{port}",
                     f"[::1]:{port}", f"127.0.0.1.evil.example:{port}", f"evil.example@127.0.0.1:{port}", "", "*",
                     f"127.0.0.1:{port}, evil.example"):
            for path in ("/", "/api/v1/info"):
                self.assert_refused(self.ask("GET", path, headers={"Host": host}), 403, "wrong-host")

    def test_no_name_and_two_are_refused(self):
        own = f"Host: 127.0.0.1:{self.served.port}\r\n"
        for hosts in ("", own + own, own + "Host: evil.example\r\n"):
            for version in ("1.0", "1.1"):
                answer = self.raw(f"GET / HTTP/{version}\r\n{hosts}\r\n".encode())
                self.assertIn(b" 403 ", answer.split(b"\r\n")[0])
                self.assertIn(b"wrong-host", answer)

    def test_both_of_its_own_names_are_right(self):
        for host in ("127.0.0.1", "localhost", "LocalHost"):
            self.assertEqual(self.ask("GET", "/", headers={"Host": f"{host}:{self.served.port}"})[0], 200)

    def test_another_origin_is_refused(self):
        port = self.served.port
        for origin in ("http://evil.example", "null", f"https://127.0.0.1:{port}", f"http://127.0.0.1:{port + 1}",
                       f"http://127.0.0.1:{port}.evil.example", f"http://evil.example:{port}", "file://",
                       f"http://127.0.0.1:{port}/", "http://127.0.0.1"):
            for method, path, body in (("GET", "/", None), ("GET", "/api/v1/info", None),
                                       ("POST", "/api/v1/trace", "{}"), ("OPTIONS", "/api/v1/trace", None)):
                self.assert_refused(self.ask(method, path, body, {"Origin": origin}), 403, "foreign-origin")

    def test_its_own_origin_is_right(self):
        for name in ("127.0.0.1", "localhost"):
            origin = {"Origin": f"http://{name}:{self.served.port}"}
            self.assertEqual(self.ask("GET", "/api/v1/info", headers=origin)[0], 200)

    def test_what_a_form_can_send_is_refused(self):
        for kind in ("application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain", None,
                     "text/plain; application/json"):
            self.assert_refused(self.ask("POST", "/api/v1/trace", "{}", {"Content-Type": kind}), 415, "wrong-type")


class Heads(View):
    """Heads that are no HTTP, or too much of it, are refused, and the next request is answered."""

    def tearDown(self):
        self.assertEqual(self.ask("GET", "/api/v1/info")[0], 200)

    def test_what_is_no_request(self):
        for data in (b"\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/2.0\r\n\r\n", b"\0" * 100 + b"\r\n\r\n",
                     b"BREW / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n"):
            answer = self.raw(data)
            self.assertTrue(answer == b"" or answer.startswith(b"HTTP/1.1 4"), answer)

    def test_endless_heads(self):
        own = f"Host: 127.0.0.1:{self.served.port}\r\n".encode()
        for data in (b"G" * 1_000_000, b"GET /" + b"a" * 1_000_000,
                     b"GET / HTTP/1.1\r\n" + own + b"X: " + b"a" * 1_000_000,
                     b"GET / HTTP/1.1\r\n" + own + b"X: a\r\n" * 100_000):
            self.assertNotIn(b" 200 ", self.raw(data).split(b"\r\n")[0])

    def test_long_paths(self):
        for length in (201, 4000, 8000):
            head = f"GET /{'a' * length} HTTP/1.1\r\nHost: 127.0.0.1:{self.served.port}\r\n\r\n"
            self.assertIn(b" 414 ", self.raw(head.encode()).split(b"\r\n")[0])

    def test_ranges_are_not_served(self):
        for ranges in ("bytes=0-0", "bytes=" + ",".join(["0-0"] * 1900), "bytes=5-1", "lines=1"):
            head = (f"GET /index.html HTTP/1.1\r\nHost: 127.0.0.1:{self.served.port}\r\nRange: {ranges}\r\n\r\n")
            answer = self.raw(head.encode())
            self.assertNotIn(b" 206 ", answer.split(b"\r\n")[0])
            self.assertLess(len(answer), 2000)

    def test_lengths_that_are_none(self):
        for headers in ({"Content-Length": "-1"}, {"Content-Length": "2x"}, {"Content-Length": "9" * 30},
                        {"Content-Length": None}, {"Content-Length": "2", "Transfer-Encoding": "chunked"},
                        {"Transfer-Encoding": "gzip, chunked"}, {"Content-Encoding": "gzip"}):
            status, _, body = self.ask("POST", "/api/v1/trace", "{}", headers)
            self.assertIn(status, (400, 411, 415), (headers, body))
            self.assertIn(json.loads(body)["code"], ("bad-request", "wrong-type"))


if __name__ == "__main__":
    view.main()
