"""What a call does to the process: time, memory, threads, forks."""

import subprocess
import sys
import threading
import time

import numpy as np

import glasshead

sdpa = glasshead.scaled_dot_product_attention


def small(dtype=np.float32):
    rng = np.random.default_rng(1)
    return [rng.standard_normal((1, 2, 8, 16)).astype(dtype) for _ in range(3)]


def resident():
    with open("/proc/self/statm", encoding="ascii") as numbers:
        return int(numbers.read().split()[1]) * 4096


def growth(call, times, warm=2000):
    for _ in range(warm):
        call()
    before = resident()
    for _ in range(times):
        call()
    return resident() - before


def refused(call):
    def wrapped():
        try:
            call()
        except glasshead.Error:
            return
        raise AssertionError("not refused")

    return wrapped


def test_a_hundred_thousand_calls_leave_nothing_behind():
    q, k, v = small()
    mask, bias = np.ones((8, 8), bool), np.zeros((8, 8), np.float32)
    cache = glasshead.KvCache(2, 16)
    cache.append(k, v)
    references = [sys.getrefcount(x) for x in (q, k, v, mask, bias)]
    calls = {
        "plain": (lambda: sdpa(q, k, v), 100_000),
        "options": (lambda: sdpa(q, k, v, mask=mask, bias=bias, is_causal=True, return_rows=True), 20_000),
        "refused": (refused(lambda: sdpa(q, k, v, softcap=-1)), 20_000),
        "weights": (lambda: glasshead.attention_weights(q, k, heads=1), 20_000),
        "cache": (lambda: cache.attend(q), 20_000),
        "plan": (lambda: glasshead.plan_attend(q, k, v, mask=mask), 20_000),
        "doctor": (lambda: glasshead.diagnose(q, k, v, out=v, mask=mask), 300),
        "trace": (lambda: glasshead.trace(q[0, 0], k[0, 0], v[0, 0])["out"], 2_000),
    }
    grown = {name: growth(call, times, min(times, 2000)) for name, (call, times) in calls.items()}
    # The allocator keeps some pages; a leak of 16 bytes a call would be 1.6 MB.
    assert all(size < 1_000_000 for size in grown.values()), grown
    assert [sys.getrefcount(x) for x in (q, k, v, mask, bias)] == references


def test_a_call_on_eight_tokens_takes_microseconds():
    q, k, v = small()
    times = []
    for _ in range(2000):
        start = time.perf_counter_ns()
        sdpa(q, k, v)
        times.append(time.perf_counter_ns() - start)
    # The quickest: about 10 on an idle core. The median is that of whatever else shares the core.
    print(f"a call on 8 tokens: {min(times) / 1000:.1f} us, median {sorted(times)[len(times) // 2] / 1000:.1f} us")
    assert min(times) < 100_000


def test_other_threads_run_meanwhile():
    q, k, v = (np.ones((1, 4, 3000, 64), np.float32) for _ in range(3))
    ticks, is_over = [], threading.Event()

    def tick():
        while not is_over.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    ticker = threading.Thread(target=tick)
    ticker.start()
    begin = time.perf_counter()
    sdpa(q, k, v, context=glasshead.Context(threads=1))
    end = time.perf_counter()
    is_over.set()
    ticker.join()
    inside = [t for t in ticks if begin + 0.005 < t < end - 0.005]
    assert len(inside) >= 5, f"{len(inside)} ticks in {end - begin:.3f} s"


def test_threads_share_a_cache():
    q, k, v = small(np.float64)
    cache = glasshead.KvCache(2, 16, dtype="f64")
    cache.append(k, v)
    wanted = cache.attend(q)
    wrong = []

    def read():
        for _ in range(300):
            if not np.array_equal(cache.attend(q, sequences=[0]), wanted):
                wrong.append(1)

    def grow():
        for _ in range(300):
            cache.append(k[0], v[0], cache.fork())

    threads = [threading.Thread(target=work) for work in (read, grow, read)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and cache.sequences == 301


FORK = """
import os
import numpy as np
import glasshead
x = np.random.default_rng(1).standard_normal((1, 4, 300, 32)).astype(np.float32)
two = glasshead.Context(threads=2)
wanted = glasshead.scaled_dot_product_attention(x, x, x, context=two)
child = os.fork()
if child == 0:
    same = np.array_equal(glasshead.scaled_dot_product_attention(x, x, x, context=two), wanted)
    os._exit(0 if same else 1)
_, status = os.waitpid(child, 0)
print(os.waitstatus_to_exitcode(status))
"""


def test_a_forked_child_computes_too():
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", FORK], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr, done.returncode) == ("0\n", "", 0)


def test_nothing_is_said_at_the_end():
    program = "import numpy as np, glasshead as g; x = np.ones((2, 2))\n"
    program += "t = g.trace(x, x, x); c = g.KvCache(1, 2); o = g.Context()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
