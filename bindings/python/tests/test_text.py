"""Texts of models from Python: tokenizers, writing as the command does, filling masks, beams, chats."""

import json
import os
import pathlib
import shutil
import subprocess

import numpy as np
import pytest

import glasshead
from glasshead import Session, Taps, Tokenizer
from model_files import FOLDER, INDEX, ROOT, TOLERANCES, expected_of

pytestmark = pytest.mark.skipif(not Tokenizer.is_available(), reason="built without tokenizers")
VOCABULARIES = ROOT / "tests" / "data" / "tokenizers"
COMMAND = ROOT / "build" / "release" / "bin" / "glasshead"
IDS = [5, 6, 7, 11]


@pytest.fixture(scope="module")
def talker(tmp_path_factory):
    """The tiny llama with a vocabulary of 67 words beside it."""
    folder = tmp_path_factory.mktemp("talker")
    for name in ("config.json", "model.safetensors"):
        shutil.copy(FOLDER / "llama" / name, folder)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"word{n}" for n in range(62))]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n")
    return glasshead.Model(folder)


@pytest.fixture(scope="module")
def stories():
    folder = pathlib.Path(os.environ.get("GLASSHEAD_MODELS", ROOT.parent / "shared" / "models")) / "stories260K"
    if not folder.is_dir():
        pytest.skip("stories260K is not here")
    return glasshead.Model(folder)


def command(*arguments):
    if not COMMAND.exists():
        pytest.skip("the command is not built")
    done = subprocess.run([COMMAND, "run", *arguments, "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", ["byte_bpe", "llama", "t5", "bert", "roberta"])
def test_ids_and_byte_ranges_are_those_of_hugging_face(name):
    words = Tokenizer(VOCABULARIES / name)
    expected = json.loads((VOCABULARIES / name / "expected.json").read_text(encoding="utf-8"))
    texts = json.loads((VOCABULARIES / "corpus.json").read_text(encoding="utf-8"))["texts"]
    before, after = expected["around"]
    assert len(texts) > 20
    for text, row in zip(texts, expected["rows"], strict=True):
        encoding = words.encode(text, adds_special=False)
        assert encoding.ids == row["ids"]
        assert encoding.bytes == list(zip(row["bytes"][::2], row["bytes"][1::2], strict=True))
        assert words.encode(text.encode()).ids == before + row["ids"] + after
        assert words.decode(row["ids"], skips_special=False) == row["decoded"]
        assert "".join(words.decode_stream(row["ids"])) == words.decode(row["ids"])


def test_a_vocabulary_can_be_asked():
    words = Tokenizer(VOCABULARIES / "bert")
    mask = words.mask
    assert words.token(mask) == "[MASK]" and words.id_of("[MASK]") == mask and words.is_special(mask)
    assert (words.token(words.cls), words.token(words.sep), words.token(words.pad)) == ("[CLS]", "[SEP]", "[PAD]")
    assert words.bos is None and words.id_of("no such token") is None and len(words) > 0
    assert Tokenizer(VOCABULARIES / "byte_bpe").bytes_of(0) == b"!"
    with pytest.raises(glasshead.OptionError, match="text: a int"):
        words.encode(3)
    with pytest.raises(glasshead.OptionError, match="id"):
        words.token(-1)
    with pytest.raises(glasshead.OptionError, match="a whole number is needed"):
        words.token("the")
    with pytest.raises(glasshead.OptionError):
        words.decode([10**9])


def test_half_a_character_is_kept_back():
    words = Tokenizer(VOCABULARIES / "byte_bpe")
    text = "naïve 👩‍🔬 ☃"
    pieces = list(words.decode_stream(words.encode(text).ids))
    assert "".join(pieces) == text and all("\ufffd" not in piece for piece in pieces)
    cut = words.encode("👩").ids[:-1]
    assert "".join(words.decode_stream(cut)) == words.decode(cut) == "\ufffd"


def test_chats_take_the_form_of_the_template():
    template = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    assert glasshead.chat_form(template) == "chatml" and glasshead.chat_form("?") == ""
    assert glasshead.chat_prompt(template, [("system", "Be brief."), ("user", "Why?")]) == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nWhy?<|im_end|>\n<|im_start|>assistant\n"
    )
    with pytest.raises(glasshead.OptionError) as refused:
        glasshead.chat_prompt(template, [("user", 3), "Why?"])
    assert [where for where, _ in refused.value.problems] == ["turns[0]", "turns[1]"]
    with pytest.raises(glasshead.OptionError, match="system, user or assistant"):
        glasshead.chat_prompt(template, [("tool", "x")])
    for wrong in (lambda: glasshead.chat_prompt("", [("user", "Why?")]), lambda: glasshead.chat_form(None)):
        with pytest.raises(glasshead.OptionError, match="chat_template"):
            wrong()
    with pytest.raises(glasshead.OptionError, match="turns: 'Why"):
        glasshead.chat_prompt(template, "Why?")


SAMPLING = {"temperature": 1.5, "top_k": 20, "top_p": 0.95, "min_p": 0.01, "repetition_penalty": 1.2, "seed": 3}
FLAGS = ["--temperature", "1.5", "--top-k", "20", "--top-p", "0.95", "--min-p", "0.01", "--repetition-penalty", "1.2"]


def test_texts_are_those_of_the_command(talker):
    prompt = "word3 word5 word8"
    for options, flags in ({}, []), (SAMPLING, [*FLAGS, "--seed", "3"]):
        told = command(talker.path, "--prompt", prompt, "--max-tokens", "30", *flags)
        found = Session(talker).generate(prompt, max_tokens=30, **options)
        assert (found.ids, found.text, found.why) == (told["ids"], told["text"], told["stop"])
        told = command(talker.path, "--tokens", "5,6,7,11", "--ignore-eos", "--max-tokens", "9", *flags)
        assert Session(talker).generate(IDS, max_tokens=9, stops_at_eos=False, **options).ids == told["ids"]


def test_a_stream_is_the_text_one_id_at_a_time(talker):
    wanted = Session(talker).generate(IDS, max_tokens=20, **SAMPLING)
    session = Session(talker)
    stream = session.stream(IDS, max_tokens=20, **SAMPLING)
    other, ids = session.add(), []
    for one in stream:
        ids.append(one)
        session.forward([one], sequence=other)  # the session may do other things between two tokens
        assert stream.why is None
    assert (ids, stream.why) == (wanted.ids, wanted.why) and session.length(other) == len(ids)
    assert next(stream, None) is None
    pieces = talker.tokenizer.decode_stream(Session(talker).stream(IDS, max_tokens=20, **SAMPLING))
    assert "".join(pieces) == wanted.text


def test_a_text_ends_where_it_is_told_to(talker):
    session = Session(talker)
    whole = session.generate(IDS, max_tokens=12, stops_at_eos=False, temperature=3, seed=1)
    assert len(whole.ids) == 12 and whole.why == "length"

    def again(**options):
        session.truncate(0)
        return session.generate(IDS, **{"max_tokens": 12, "stops_at_eos": False, "temperature": 3, "seed": 1} | options)

    first = whole.ids.index(whole.ids[4])
    ended = again(stop_ids=[whole.ids[4]])
    assert (ended.ids, ended.why) == (whole.ids[:first], "end")
    ended = again(stop=talker.tokenizer.bytes_of(whole.ids[4]).decode().strip())
    assert (ended.ids, ended.why) == (whole.ids[: first + 1], "stop")
    seen = []
    ended = again(on_token=lambda one: seen.append(one) or len(seen) < 3)
    assert ended.ids == seen == whole.ids[:3] and ended.why == "callback"
    assert again(on_token=lambda one: None).ids == whole.ids
    assert again(max_tokens=0).ids == [] and session.length() == len(IDS)
    with pytest.raises(ZeroDivisionError):
        again(on_token=lambda one: one // 0)


def test_taps_follow_a_text(talker):
    session, taps = Session(talker), Taps("decoder.1.out")
    stream = session.stream(IDS, max_tokens=3, stops_at_eos=False, taps=taps)
    lengths = [len(taps["decoder.1.out"]) for _ in stream]
    assert lengths == [4, 5, 6]


def test_without_a_prompt_a_text_begins_as_the_models_do(talker, tmp_path):
    assert Session(talker).generate(max_tokens=5).ids == Session(talker).generate([1], max_tokens=5).ids
    config = json.loads((FOLDER / "llama" / "config.json").read_text())
    del config["bos_token_id"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    shutil.copy(FOLDER / "llama" / "model.safetensors", tmp_path)
    with pytest.raises(glasshead.OptionError, match="begin with no token"):
        Session(glasshead.Model(tmp_path)).generate(max_tokens=5)


@pytest.mark.parametrize("name", [model["name"] for model in INDEX["models"] if model["kind"] == "encoder-decoder"])
def test_beams_are_those_of_transformers(name):
    session = Session(glasshead.Model(FOLDER / next(m["path"] for m in INDEX["models"] if m["name"] == name)))
    for wanted in expected_of(name):
        sequence = session.read(wanted["ids"])
        beams = session.beam_search(beams=3, max_tokens=8, sequence=sequence)
        assert len(beams) == 3
        for beam, theirs, score in zip(beams, wanted["beams"], wanted["beam_scores"], strict=True):
            ids = beam.ids + [1] * beam.is_finished
            assert ids == theirs[: len(ids)].tolist() and not theirs[len(ids) :].any()
            assert beam.log_probability / len(ids) == pytest.approx(score, abs=1e-3)
        greedy = session.generate(max_tokens=len(wanted["greedy"]), sequence=sequence)
        sure = int(np.argmin([*(wanted["margins"] > 2 * TOLERANCES["logits"] * np.abs(wanted["logits"]).max()), False]))
        assert greedy.ids[:sure] == [one for one in wanted["greedy"][:sure].tolist() if one != 1]


def test_masks_are_filled_as_the_command_does():
    model = glasshead.Model(FOLDER / "rxnmapper-albert")
    text = "CC[MASK].N>>CC(=O)[MASK]"
    told = command(model.path, "--fill", text)["masks"]
    found = Session(model).fill(text)
    assert [one.position for one in found] == [mask["position"] for mask in told]
    for one, mask in zip(found, told, strict=True):
        assert [(c.id, c.token, c.probability) for c in one.candidates] == [
            (c["id"], c["token"], c["probability"]) for c in mask["candidates"]
        ]
    assert len(Session(model).fill("[MASK]", count=2)[0].candidates) == 2
    for wrong, match in (("CC", r"no \[MASK\]"), (3, "a string is needed")):
        with pytest.raises(glasshead.OptionError, match=match):
            Session(model).fill(wrong)


def test_texts_can_be_given_where_ids_can(talker):
    model = glasshead.Model(FOLDER / "rxnmapper-albert")
    session, ids = Session(model), model.tokenizer.encode("CCO").ids
    assert np.array_equal(session.encode(["CCO"])[0], session.encode([ids])[0])
    assert np.array_equal(session.embed(["CCO", ids])[0], session.embed([ids])[0])
    session = Session(talker)
    with pytest.raises(glasshead.OptionError, match=r"parts\[0\].ids"):
        session.forward("word3")  # appends ids: how a text goes on is for the caller to say


def test_a_trained_model_tells_its_story(stories):
    found = Session(stories).generate("Once upon a time", max_tokens=24)
    assert found.text.startswith(", there was a little girl named")
    assert Session(stories).generate(max_tokens=3).ids == [403, 407, 261]
