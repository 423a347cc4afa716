"""Models from Python: the numbers of Hugging Face transformers, taps, changes, batches, and what is refused."""

import pathlib
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import glasshead
from glasshead import HidePairs, Patch, ReplaceHead, Session, Tap, Taps
from model_files import FOLDER, INDEX, TOLERANCES, expected_of

IDS = [5, 6, 7, 11, 13, 17, 19]


@pytest.fixture(scope="module")
def llama():
    return glasshead.Model(FOLDER / "llama")


@pytest.fixture(scope="module")
def bert():
    return glasshead.Model(FOLDER / "bert")


@pytest.fixture(scope="module")
def t5():
    return glasshead.Model(FOLDER / "t5")


def stacks_of(model):
    return {"decoder": ["decoder"], "encoder": ["encoder"], "encoder-decoder": ["encoder", "decoder"]}[model.kind]


def assert_near(ours, theirs, kind):
    scale = 1 if kind == "weights" else np.abs(theirs).max()
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=TOLERANCES[kind] * scale)


def run(session, wanted, taps):
    """The logits of one of the expected texts, if the model has any."""
    model = session.model
    if model.kind == "encoder":
        types = [wanted["types"]] if "types" in wanted else None
        (rows,) = session.encode([wanted["ids"]], segments=types, taps=taps)
        return session.logits(rows) if model.has_logits else None
    if model.kind == "encoder-decoder":
        sequence = session.read(wanted["ids"], taps=taps)
        return session.forward(wanted["decoder_ids"], sequence=sequence, rows="all", taps=taps)
    session.truncate(0)
    return session.forward(wanted["ids"], rows="all", taps=taps)


@pytest.mark.parametrize("entry", INDEX["models"], ids=lambda entry: entry["name"])
def test_every_family_gives_the_numbers_of_transformers(entry):
    model = glasshead.Model(FOLDER / entry["path"], context=entry.get("context", 0))
    session = Session(model)
    for wanted in expected_of(entry["name"]):
        taps = Taps(*(f"{stack}.*.self.weights" for stack in stacks_of(model)))
        logits = run(session, wanted, taps)
        if logits is not None:
            assert_near(logits, wanted["logits"], "logits")
        if "embedding" in wanted:
            types = [wanted["types"]] if "types" in wanted else None
            assert_near(session.embed([wanted["ids"]], segments=types)[0], wanted["embedding"], "logits")
        compared = 0
        for name, theirs in wanted.items():
            *stack, what, layer = ("", "", *name.split("."))[-3:]
            if what == "weights":
                assert_near(taps[f"{stack[0] or stacks_of(model)[0]}.{layer}.self.weights"], theirs, "weights")
                compared += 1
        assert compared >= model.layers


def test_it_says_what_it_is(llama, bert, t5):
    assert (llama.family, llama.kind, llama.layers, llama.d_model, llama.vocab) == ("llama", "decoder", 2, 24, 67)
    assert (llama.heads(1), llama.bos, llama.eos, llama.pad, llama.has_logits) == (6, 1, [2], 0, True)
    assert (bert.kind, t5.kind, t5.decoder_start) == ("encoder", "encoder-decoder", 0)
    assert llama.path == str(FOLDER / "llama") and llama.bytes > 4 * llama.parameters
    assert llama.tap_names[0] == "embedding" and llama.tap_names[-1] == "logits"
    assert llama.facts.stacks[0].layers[1].self.kv_heads == 3 and llama.facts.parameters == llama.parameters
    assert "llama, decoder" in repr(llama) and repr(Session(llama))
    assert repr(llama.facts).startswith("glasshead.ModelFacts(name=")


def test_published_configurations_need_no_files():
    facts = glasshead.model_facts("llama-2-70b")
    assert "llama-2-70b" in glasshead.known_models() and facts.format == ""
    # 80 layers, 8 key/value heads of 128 + 128 numbers, 4,096 tokens, 4 bytes
    assert facts.cost(4096).cache_bytes == 80 * 8 * 256 * 4096 * 4
    assert facts.cost(4096).cache_bytes_per_head == 8 * facts.cost(4096).cache_bytes
    assert {"llama", "gpt2", "bert", "t5"} <= {family.name for family in glasshead.model_families()}
    with pytest.raises(glasshead.IoError):
        glasshead.model_facts("llama-9")


def test_batched_and_in_parts_are_alone_bit_for_bit(llama):
    texts = [IDS, [3, 1, 4, 1, 5], [9]]
    alone = []
    for text in texts:
        alone.append(Session(llama).forward(text, rows="all"))
    session = Session(llama, rows_at_once=4)
    numbers = [0, session.add(), session.fork(0)]
    together = session.forward(dict(zip(numbers, texts, strict=True)), rows="all")
    assert np.array_equal(together, np.concatenate(alone))
    assert [session.length(number) for number in numbers] == [7, 5, 1] and session.cache_bytes > 0
    session.truncate(2)
    assert np.array_equal(session.forward(IDS[2:], rows="last"), alone[0][-1:])
    session.truncate(0)
    steps = [session.forward([one])[0] for one in IDS]
    assert np.array_equal(np.array(steps), alone[0])
    assert np.array_equal(session.forward({0: np.array([8]), 2: range(3)}, rows="none").shape, (0, 0))
    session.drop(1)
    assert session.add() == 1


def test_threads_of_the_context_change_nothing(llama):
    one, two = (Session(llama, context=glasshead.Context(threads=n)).forward(IDS, rows="all") for n in (1, 2))
    assert np.array_equal(one, two)


def test_results_are_the_callers_own(llama):
    session = Session(llama)
    taps = Taps("decoder.0.self.q")
    first = session.forward(IDS, taps=taps)
    kept, seen, q = first.copy(), taps["decoder.0.self.q"], taps["decoder.0.self.q"].copy()
    session.forward(IDS, taps=taps)
    assert np.array_equal(first, kept) and np.array_equal(seen, q)
    assert first.flags.writeable and first.dtype == np.float32
    assert taps["decoder.0.self.q"].shape == (6, 14, 4 * 2)
    del session, taps
    assert np.array_equal(first, kept) and np.array_equal(seen, q)


def test_taps_are_a_mapping_in_order_of_computation(llama):
    taps = Taps("logits", Tap("decoder.1.self.weights", heads=[4, 2], positions=(3, 5)), "decoder.*.out")
    assert dict(taps) == {} and "of no run" in repr(taps)
    Session(llama).forward(IDS, taps=taps)
    assert list(taps) == ["decoder.0.out", "decoder.1.self.weights", "decoder.1.out", "logits"]
    assert {name: array.shape for name, array in taps.items()} == {
        "decoder.0.out": (7, 24),
        "decoder.1.self.weights": (2, 3, 7),
        "decoder.1.out": (7, 24),
        "logits": (1, 67),
    }
    everything = Taps("decoder.1.self.weights")
    Session(llama).forward(IDS, taps=everything)
    assert np.array_equal(taps["decoder.1.self.weights"], everything["decoder.1.self.weights"][[2, 4], 3:6])
    assert "decoder.1.out [7, 24]" in repr(taps)
    second = Taps("embedding", sequence=1)
    session = Session(llama)
    session.forward({0: IDS, session.add(): [9, 8]}, taps=second)
    assert second["embedding"].shape == (2, 24)


def test_a_hidden_position_is_read_by_nobody_else(llama):
    session, taps = Session(llama), Taps("decoder.*.self.weights")
    plain = session.forward(IDS)
    session.truncate(0)
    session.change(HidePairs(keys=[2]))
    hidden = session.forward(IDS, taps=taps)
    for weights in taps.values():
        assert np.all(weights[:, 3:, 2] == 0) and np.all(weights[:, 2, 2] > 0)
        np.testing.assert_allclose(weights.sum(-1), 1, rtol=1e-6)
    assert not np.array_equal(plain, hidden)
    session.truncate(0)
    session.change(HidePairs(keys=[2], queries=[5], layers=[1], heads=[3]))
    taps = Taps("decoder.*.self.weights")
    session.forward(IDS, taps=taps)
    zeros = {tuple(at) for name in taps for at in np.argwhere(np.tril(taps[name] == 0)) if name[8] == "1"}
    assert zeros == {(3, 5, 2)} and np.all(np.tril(taps["decoder.0.self.weights"] == 0) == 0)
    session.truncate(0)
    session.change()
    assert np.array_equal(session.forward(IDS), plain)


def test_heads_are_replaced_and_places_patched(llama):
    session = Session(llama)
    taps = Taps("decoder.0.self.out", "decoder.0.out")
    plain = session.forward(IDS, taps=taps)
    outs, rows = taps["decoder.0.self.out"], taps["decoder.0.out"]
    session.truncate(0)
    mean = outs[4].astype(np.float64).mean(axis=0).astype(np.float32)
    session.change(glasshead.mean_of_head(0, 4, outs), ReplaceHead(0, 1))
    taps = Taps("decoder.0.self.out")
    ablated = session.forward(IDS, taps=taps)
    found = taps["decoder.0.self.out"]
    assert np.array_equal(found[4], np.tile(mean, (7, 1))) and np.all(found[1] == 0)
    assert np.array_equal(found[[0, 2, 3, 5]], outs[[0, 2, 3, 5]])
    session.truncate(0)
    session.change(ReplaceHead(0, 1), Patch("decoder.0.out", rows))  # all that layer 1 reads is as it was
    assert np.array_equal(session.forward(IDS), plain) and not np.array_equal(plain, ablated)
    session.truncate(0)
    session.change(Patch("decoder.0.out", rows[3:].astype(np.float64), position=3))
    assert np.array_equal(session.forward(IDS), plain)


def test_the_lens_of_the_last_layer_is_the_logits(llama):
    session, taps = Session(llama), Taps("decoder.*.out")
    logits = session.forward(IDS, rows="all", taps=taps)
    assert np.array_equal(session.lens(taps["decoder.1.out"]), logits)
    assert session.lens(taps["decoder.0.out"][-1:]).shape == (1, 67)


def test_encoders_read_texts_of_their_own_lengths(bert):
    session = Session(bert)
    both = session.encode([IDS, IDS[:3]], segments=[[0, 0, 0, 1, 1, 1, 1], [0, 1, 1]])
    assert [rows.shape for rows in both] == [(7, bert.d_model), (3, bert.d_model)]
    assert np.array_equal(both[1], session.encode([IDS[:3]], segments=[[0, 1, 1]])[0])
    vectors = Session(glasshead.Model(FOLDER / "minilm")).embed([IDS, IDS[:3]])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-6)


def test_what_a_row_of_logits_says():
    logits = np.log(np.array([1, 4, 2, 1], np.float32) / 8)
    found = glasshead.most_probable(logits, 3)
    assert [one.id for one in found] == [1, 2, 0] and found[0].token is None
    np.testing.assert_allclose([one.probability for one in found], [0.5, 0.25, 0.125], rtol=1e-6)
    even = np.zeros(4, np.float32)
    assert glasshead.kl_divergence(logits, logits) == 0
    np.testing.assert_allclose(
        glasshead.kl_divergence(logits, even), sum(p * np.log(p * 4) for p in (0.125, 0.5, 0.25, 0.125)), rtol=1e-6
    )
    assert glasshead.sample(logits) == 1 and glasshead.sample(logits, repetition_penalty=4, text=[1]) == 2
    drawn = [glasshead.sample(logits, temperature=1, top_k=2, seed=7, draw=n) for n in range(200)]
    assert set(drawn) == {1, 2} and 90 < drawn.count(1) < 175  # 133 of 200 expected, six deviations
    with pytest.raises(glasshead.ShapeError, match="3 logits where before has 4"):
        glasshead.kl_divergence(even, even[:3])


def problems(kind, call):
    with pytest.raises(kind) as refused:
        call()
    assert "::" not in str(refused.value) and refused.value.function
    return [where for where, _ in refused.value.problems]


def test_everything_wrong_is_told_at_once(llama, bert, t5):
    session, option = Session(llama), glasshead.OptionError
    assert problems(option, lambda: session.forward([99, 3])) == ["parts[0].ids"]
    assert problems(option, lambda: session.forward({0: [], 5: [1]})) == ["parts[0].ids", "parts[1].sequence"]
    assert problems(option, lambda: session.forward({0: "abc", 1: 3}, rows="some")) == [
        "parts[0].ids",
        "parts[1].ids",
        "rows",
    ]
    assert problems(option, lambda: session.forward([1.5, True])) == ["parts[0].ids"]
    assert problems(option, lambda: session.forward([2**70])) == ["parts[0].ids"]
    assert problems(option, lambda: session.forward([1], taps="logits")) == ["taps"]
    assert problems(option, lambda: session.forward([1], taps=Taps("decoder.9.out", "x"))) == ["taps", "taps"]
    assert problems(option, lambda: Taps("a", 5, Tap("b", positions=3))) == ["taps[1]", "taps[2].positions"]
    assert problems(option, lambda: session.truncate(3)) == ["length"]
    assert problems(option, lambda: session.fork(4)) == ["sequence"]
    assert problems(option, lambda: session.lens(np.zeros((2, 5)))) == ["rows"]
    assert problems(option, lambda: session.lens(np.zeros(24))) == ["rows"]
    assert problems(option, lambda: session.encode([IDS])) == ["model"]
    assert problems(option, lambda: session.embed("a text")) == ["texts"]
    assert problems(option, lambda: session.read(IDS)) == ["model"]
    assert problems(option, lambda: Session(bert).encode([IDS, [1]], segments=[[0]])) == ["segments"]
    assert problems(option, lambda: Session(bert).generate(IDS)) == ["model"]
    assert problems(option, lambda: Session(t5).add()) == ["model"]
    assert problems(option, lambda: glasshead.mean_of_head("x", 0, np.zeros((3, 4)))) == ["layer", "out"]
    shape, mean = glasshead.ShapeError, glasshead.mean_of_head
    assert problems(shape, lambda: mean(0, 3, np.zeros((3, 2, 4)))) == ["head"]
    assert problems(shape, lambda: mean(0, 0, np.zeros((3, 0, 4)))) == ["out"]
    wrong = ReplaceHead(7, 0), HidePairs([]), Patch("logits", np.zeros((1, 67)))
    assert problems(option, lambda: session.change(*wrong)) == ["changes"] * 3
    assert problems(option, lambda: session.change("x", ReplaceHead(0.5, "1"), Patch(3, "abc"))) == [
        "changes[0]",
        "changes[1].layer",
        "changes[1].head",
        "changes[2].values",
        "changes[2].name",
    ]
    assert problems(option, lambda: session.generate(IDS, temperature="hot", top_k=1.5, seed=-1, stop=[3])) == [
        "temperature",
        "top_k",
        "seed",
        "stop",
    ]
    assert problems(option, lambda: session.generate(IDS, temperature=-1, top_p=0, max_tokens=-1, stop_ids=[99])) == [
        "temperature",
        "top_p",
        "max_tokens",
        "stop_ids",
    ]
    assert problems(option, lambda: session.beam_search(IDS, beams=0, length_penalty=float("nan"))) == [
        "beams",
        "length_penalty",
    ]
    assert problems(option, lambda: Session(3, rows_at_once="x", context=5)) == ["model", "rows_at_once", "context"]
    assert problems(option, lambda: Session(llama, rows_at_once=0)) == ["rows_at_once"]
    assert session.length() == 0  # nothing was read by any of these


def test_models_that_cannot_be_read(tmp_path):
    assert problems(glasshead.IoError, lambda: glasshead.Model(tmp_path / "nothing"))
    (tmp_path / "config.json").write_text("{")
    assert problems(glasshead.Error, lambda: glasshead.Model(tmp_path))
    with pytest.raises(glasshead.Error):
        glasshead.Tokenizer(tmp_path)


def test_unknown_keywords_name_the_one_that_was_meant(llama):
    session = Session(llama)
    with pytest.raises(TypeError, match=r"Session.generate\(\) .*'max_token'. Did you mean 'max_tokens'\?"):
        session.generate(IDS, max_token=3)


def test_taps_of_another_model_are_refused(llama, bert):
    taps = Taps("embedding")
    Session(llama).forward(IDS, taps=taps)
    assert problems(glasshead.OptionError, lambda: Session(bert).encode([IDS], taps=taps)) == ["taps"]


def test_the_parts_outlive_their_owners():
    session = Session(glasshead.Model(pathlib.Path(FOLDER / "llama")), context=glasshead.Context(threads=1))
    stream = session.stream(IDS, max_tokens=5)
    wanted = session.model
    del session
    assert len(list(stream)) == 5 and stream.why == "length" and wanted.layers == 2


def test_threads_take_turns(llama):
    session = Session(llama)
    wanted, wrong = Session(llama).forward(IDS), []

    def work(number):
        for _ in range(200):
            if not np.array_equal(session.forward(IDS, sequence=number), wanted):
                wrong.append(number)
            session.truncate(0, number)

    threads = [threading.Thread(target=work, args=(number,)) for number in (0, session.add(), session.add())]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_who_asks_for_a_length_waits_for_a_token_and_not_for_the_text(llama):
    session, written, is_over = Session(llama), [0], threading.Event()

    def write():
        for _ in session.stream(IDS, max_tokens=100_000, stops_at_eos=False):
            written[0] += 1
            if is_over.is_set():
                break

    writer = threading.Thread(target=write)
    writer.start()
    waited = []  # tokens that were read between a question and its answer
    try:
        while len(waited) < 30:
            before = written[0]
            waited.append(session.length() - len(IDS) - before)
    finally:
        is_over.set()
        writer.join()
    # The one that is being written, and the next where it came first. Most questions: what the machine does in between
    # is its own.
    assert np.median(waited) <= 3, waited


def resident():
    with open("/proc/self/statm", encoding="ascii") as numbers:
        return int(numbers.read().split()[1]) * 4096


def test_thousands_of_calls_leave_nothing_behind(llama, bert):
    session, encoder = Session(llama), Session(bert)
    taps = Taps("decoder.*.out")

    def refused():
        with pytest.raises(glasshead.OptionError):
            session.forward([99])

    def forward():
        number = session.fork()
        session.forward({0: IDS, number: IDS}, rows="all")
        session.drop(number)
        session.truncate(0)

    def tap():
        session.forward(IDS, taps=(seen := Taps("decoder.*.self.weights", "decoder.*.self.k")))
        assert len(seen) == 4
        session.truncate(0)

    def change():
        session.change(HidePairs([1]), ReplaceHead(0, 1), Patch("decoder.0.out", np.zeros((2, 24), np.float32)))
        session.change()

    def generate():
        session.generate(IDS, max_tokens=3, stop_ids=[66], on_token=lambda _: True)
        session.truncate(0)

    calls = {
        "forward": forward,
        "refused": refused,
        "taps": tap,
        "change": change,
        "generate": generate,
        "encode": lambda: encoder.encode([IDS, IDS]),
        "embed": lambda: encoder.embed([IDS]),
        "most_probable": lambda: glasshead.most_probable(np.zeros(67, np.float32), 67),
        "sessions": lambda: Session(llama).forward([3]),
    }
    grown = {}
    for name, call in calls.items():
        for _ in range(300):
            call()
        before = resident()
        for _ in range(2000):
            call()
        grown[name] = resident() - before
    # The allocator keeps some pages; 512 bytes a call would be 1 MB.
    assert all(size < 1_000_000 for size in grown.values()), grown
    assert len(taps) == 0


INTERRUPTED = """
import os, signal, sys, threading
import glasshead
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
session = glasshead.Session(glasshead.Model(sys.argv[1]))
def stop():
    while session.length() < 20:
        pass
    os.kill(os.getpid(), signal.SIGINT)
try:
    threading.Thread(target=stop).start()
    session.generate([5, 6], max_tokens=10**9, stops_at_eos=False)
except KeyboardInterrupt:
    print(session.length() >= 20)
"""


def test_control_c_ends_a_text():
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, FOLDER / "llama"], capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_other_threads_run_while_it_computes(llama):
    ticks, is_over = [], threading.Event()

    def tick():
        while not is_over.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    ticker, session = threading.Thread(target=tick), Session(llama, context=glasshead.Context(threads=1))
    ticker.start()
    begin = time.perf_counter()
    session.forward([n % 67 for n in range(3000)], rows="none")
    end = time.perf_counter()
    is_over.set()
    ticker.join()
    inside = [t for t in ticks if begin + 0.005 < t < end - 0.005]
    assert len(inside) >= 5, f"{len(inside)} ticks in {end - begin:.3f} s"
