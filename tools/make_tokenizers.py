"""Makes tests/data/tokenizers: small vocabularies of every kind, and what the `tokenizers` wheel makes of a corpus.

    python tools/make_tokenizers.py

Needs `tokenizers`, in the version that index.json records. The vocabularies are trained on the corpus itself."""

from __future__ import annotations

import json
import pathlib
import random
import shutil
import struct
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

OUT = pathlib.Path(__file__).parents[1] / "tests/data/tokenizers"
SEED = 6

SENTENCES = """
The animal didn't cross the street because it was tired; they'll say it's 12345.67 metres (or 8,848)!
Attention weights never have to be stored to be seen. I'M SURE we've HE'LL don't o'clock 'tis
In 2026, 1234567890 tokens cost $0.02 -- that's 3.14e-10 €/token, isn't it?
def attend(q, k, v):\n    scores = q @ k.T\n\treturn softmax(scores) @ v  # naïve\r\n\r\n\r\nx += 1
Ünïcödé: façade, naïve café, Straße, Ærøskøbing, Łódź, İstanbul, ﬁ ligature, ſharp s, Ω Ω K
Быстрая коричневая лиса перепрыгивает через ленивую собаку. Съешь же ещё этих мягких французских булок
Η γρήγορη καφέ αλεπού πηδάει πάνω από το τεμπέλικο σκυλί. Ξεσκεπάζω τὴν ψυχοφθόρα βδελυγμία
敏捷的棕色狐狸跳过了懒狗。注意力机制就是一切！第１２３号
素早い茶色の狐はのろまな犬を飛び越える。東京都は２３区あります。ｶﾀｶﾅ ガギグ
빠른 갈색 여우가 게으른 개를 뛰어넘습니다. 한국어 각
الثعلب البني السريع يقفز فوق الكلب الكسول ١٢٣٤٥ والسَّلامُ
השועל החום המהיר קופץ מעל הכלב העצלן שָׁלוֹם
तेज़ भूरी लोमड़ी आलसी कुत्ते के ऊपर कूदती है। १२३ क्षत्रिय
สุนัขจิ้งจอกสีน้ำตาลกระโดดข้ามสุนัขขี้เกียจ ๑๒๓ กำ
Con cáo nâu nhanh nhẹn nhảy qua con chó lười biếng. Tiếng Việt đẹp
👩‍👩‍👧‍👦 family, 🏳️‍🌈 flag, 👍🏽 thumbs, 🇩🇪🇯🇵 flags, 1️⃣ keycap, 🧑🏿‍🚀 astronaut, ☺️ ☺ ❤️‍🔥
""".strip().split("\n")

ODD = [
    "",
    " ",
    "a",
    "  two  spaces\n",
    "\n",
    "\r\n\r\n",
    "\t\ttabs\tand\t spaces \t",
    "      six spaces, then word",
    "trailing spaces      ",
    "   \n   \n\n   mixed \n blank lines\n\n\n",
    "no\u00a0break\u2003em\u3000ideographic\u200bzero\u2028line\u2029paragraph\x85nel",
    "0 1 12 123 1234 12345 123456 1234567 ½ ² Ⅷ ٣ 四 १२",
    "CamelCase HTTPServer iPhone XMLHttpRequest snake_case SCREAMING_CASE ABCdefGHI mixedCASE123abc",
    "'s 't 're 've 'm 'll 'd 'S 'T 'RE 'VE 'M 'LL 'D ’s 'ſ it'S DON'T",
    "a/b//c\\d\\\\e <<>> {}[]()!@#$%^&*-_=+|;:'\",.?/~`",
    "...!!!???---___+++===<<<>>>^^^~~~|||``` $$$ a+b=c a<b>c x^2 ~y |z|",
    "e\u0301 vs \u00e9; A\u030a vs \u00c5 vs \u212b; \u1100\u1161\u11a8 vs \uac01; q\u0323\u0307 q\u0307\u0323",
    "\u0301\u0302combining first, Z\u0351\u036b\u0343\u0347algo\u0300\u0301",
    "<|endoftext|>",
    "<|im_start|>user\nHi there<|im_end|>\n<|im_start|>assistant\n",
    "before<|endoftext|>after <|endoftext|> spaced <tool>x</tool>",
    "<s>x</s> [CLS] y [SEP] [MASK]. <unk> <0x41> <mask>",
    "x\0y\x01\x02\x1b[0m\x7fz",
    "\ufeffBOM, \ufffd replacement, \ufffe\uffff noncharacters, \ue000\uf8ff private \U0010ffff\U000f0000",
    "soft\u00adhyphen left\u200eto\u202eright\u2066isolates\u2069",
    "▁lower one eighth block ▁▁ twice Ġ Ċ Ā ł",
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx end",
]


def corpus() -> list[str]:
    """Sentences, odd things, and soup: characters drawn from all of Unicode, and bytes read as Latin-1."""
    draw = random.Random(SEED)
    soup = []
    for top in (0x80, 0x250, 0x3000, 0x10000, 0x1FFFF, 0x10FFFF):
        characters = (chr(draw.randrange(top)) for _ in range(36))
        soup.append("".join(c for c in characters if not 0xD800 <= ord(c) <= 0xDFFF))
    soup += ["".join(chr(draw.randrange(256)) for _ in range(40)) for _ in range(2)]
    return SENTENCES + ODD + soup


TEXTS = corpus()


def byte_offsets(text: str, offsets: list[tuple[int, int]]) -> list[int]:
    """The wheel counts characters; we count bytes."""
    at = [0]
    for c in text:
        at.append(at[-1] + len(c.encode()))
    return [at[edge] for pair in offsets for edge in pair]


def surrounding(tokenizer: Tokenizer) -> list[list[int]]:
    """What stands before and after a text."""
    whole = tokenizer.encode("a", add_special_tokens=True)
    before = next(n for n, added in enumerate(whole.special_tokens_mask) if not added)
    inner = len(tokenizer.encode("a", add_special_tokens=False).ids)
    return [whole.ids[:before], whole.ids[before + inner :]]


def expected(tokenizer: Tokenizer, texts: list[str]) -> list[dict[str, Any]]:
    rows = []
    around = surrounding(tokenizer)
    for text in texts:
        bare = tokenizer.encode(text, add_special_tokens=False)
        whole = tokenizer.encode(text, add_special_tokens=True).ids
        assert whole == around[0] + bare.ids + around[1]
        decoded = tokenizer.decode(bare.ids, skip_special_tokens=False)
        rows.append({"ids": bare.ids, "bytes": byte_offsets(text, bare.offsets), "decoded": decoded})
    return rows


def digest(tokenizer: Tokenizer) -> list[str]:
    """FNV-1a over the ids of every character between a letter and a digit, by blocks of 4,096 characters."""
    blocks = []
    for start in [*range(0, 0x20000, 0x1000), 0x20000, 0xE0000]:
        text = "".join(f"x{chr(c)}1" for c in range(start, start + 0x1000) if not 0xD800 <= c <= 0xDFFF)
        value = 0xCBF29CE484222325
        for id in tokenizer.encode(text, add_special_tokens=False).ids:
            value = ((value ^ id) * 0x100000001B3) % 2**64
        blocks.append(f"{value:016x}")
    return blocks


# MODELS: the patterns as the vocabularies' own files have them.
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace("{1,3}", "")
QWEN35 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
TEKKEN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
GPT4O = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def split(pattern: str) -> Any:
    return pre_tokenizers.Split(Regex(pattern), "isolated")


def cut(*patterns: str) -> Any:
    steps = [split(pattern) for pattern in patterns]
    return pre_tokenizers.Sequence([*steps, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def gpt2() -> Any:
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)


# tokenizer.ggml.pre -> (pre-tokenizer, NFC, ignore_merges)
PRES: dict[str, tuple[Callable[[], Any], bool, bool]] = {
    "gpt-2": (gpt2, False, False),
    "smollm": (lambda: pre_tokenizers.Sequence([pre_tokenizers.Digits(True), gpt2()]), False, False),
    "llama-bpe": (lambda: cut(LLAMA3), False, True),
    "dbrx": (lambda: cut(LLAMA3), False, False),
    "qwen2": (lambda: cut(QWEN2), True, False),
    "stablelm2": (lambda: cut(QWEN2), False, False),
    "qwen35": (lambda: cut(QWEN35), True, False),
    "tekken": (lambda: cut(TEKKEN), False, True),
    "gpt-4o": (lambda: cut(GPT4O), False, False),
    "falcon": (lambda: cut(r"[\p{P}\$\+<=>\^~\|`]+", GPT2, "[0-9][0-9][0-9]"), False, False),
}
ADDED = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def byte_level(pre: Any, composes: bool, vocab: dict[str, int], merges: list[Any], ignores: bool) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges, ignore_merges=ignores))
    if composes:
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in ADDED])
    tokenizer.add_tokens([AddedToken("<tool>", special=False, normalized=False)])
    return tokenizer


def train_byte_bpe() -> tuple[dict[str, int], list[Any]]:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = gpt2()
    trainer = trainers.BpeTrainer(
        vocab_size=620, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False, min_frequency=2
    )
    tokenizer.train_from_iterator(TEXTS * 2, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    # Some merges that reach over the borders at which the patterns cut: where one cuts wrongly, ids differ.
    vocab, merges = model["vocab"], [tuple(merge) for merge in model["merges"]]
    for left, right in ("12", "34", "'s", "'S", "Xx", ".\n", "/b", " 1", "\n\n", "aB", "+=", "1a", "$$"):
        pair = tuple(c.translate({32: 0x120, 10: 0x10A}) for c in (left, right))
        if "".join(pair) not in vocab:
            vocab["".join(pair)] = len(vocab)
            merges.append(pair)
    return vocab, merges


def write(folder: str, tokenizer: Tokenizer, files: dict[str, Any], name: str = "expected.json") -> None:
    has_digest = folder == "bert" or name in ("gpt-2.json", "gpt-4o.json")
    out = OUT / folder
    out.mkdir(parents=True, exist_ok=True)
    for file, content in files.items():
        text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, indent=0)
        (out / file).write_text(text, encoding="utf-8", newline="\n")
    rows = [json.dumps(row, separators=(",", ":")) for row in expected(tokenizer, TEXTS)]
    head = json.dumps(
        {"around": surrounding(tokenizer), "unicode": digest(tokenizer) if has_digest else []}, separators=(",", ":")
    )
    (out / name).write_text(head[:-1] + ',"rows":[\n' + ",\n".join(rows) + "\n]}\n", encoding="utf-8")


def merges_text(merges: list[Any]) -> str:
    return "#version: 0.2\n" + "".join(f"{left} {right}\n" for left, right in merges)


def make_byte_bpe() -> None:
    vocab, merges = train_byte_bpe()
    whole = byte_level(gpt2(), False, vocab, merges, False)
    saved = json.loads(whole.to_str())
    saved["truncation"] = {"max_length": 8, "strategy": "LongestFirst", "stride": 0, "direction": "Right"}
    saved["padding"] = {
        "strategy": {"Fixed": 16},
        "direction": "Right",
        "pad_to_multiple_of": None,
        "pad_id": 0,
        "pad_type_id": 0,
        "pad_token": "!",
    }  # both are to be switched off
    config = {"eos_token": "<|endoftext|>", "pad_token": {"content": "<|im_end|>"}, "chat_template": "<|im_start|>"}
    write("byte_bpe", whole, {"tokenizer.json": saved, "tokenizer_config.json": config})
    # The vocabulary without a pre-tokenizer: vocab.json and merges.txt, and what GGUF's names make of it.
    n = len(vocab)
    added = {str(n + i): {"content": token, "special": True} for i, token in enumerate(ADDED)}
    added[str(n + 3)] = {"content": "<tool>", "special": False}
    files = {
        "vocab.json": vocab,
        "merges.txt": merges_text(merges),
        "tokenizer_config.json": {"added_tokens_decoder": added, "eos_token": "<|endoftext|>"},
    }
    for name, (pre, composes, ignores) in PRES.items():
        tokenizer = byte_level(pre(), composes, vocab, merges, ignores)
        write("parts", tokenizer, files, f"{name}.json")
    roberta = dict(vocab)
    for token in ("<s>", "<pad>", "</s>", "<unk>", "<mask>"):
        roberta[token] = len(roberta)
    tokenizer = Tokenizer(models.BPE(vocab=roberta, merges=merges))
    tokenizer.pre_tokenizer = gpt2()
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.RobertaProcessing(
        ("</s>", roberta["</s>"]), ("<s>", roberta["<s>"]), trim_offsets=True, add_prefix_space=False
    )
    tokenizer.add_special_tokens([AddedToken(t, normalized=False) for t in ("<s>", "<pad>", "</s>", "<unk>")])
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True, normalized=False)])
    files = {"vocab.json": roberta, "merges.txt": merges_text(merges), "config.json": {"model_type": "roberta"}}
    write("roberta", tokenizer, files)


def make_sentencepiece_bpe() -> None:
    """Pieces by frequency with SentencePiece's scores; the wheel gets merges made from them, as its own converter does
    (transformers, convert_slow_tokenizer.generate_merges)."""
    trained = Tokenizer(models.BPE(unk_token="<unk>"))
    trained.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    trained.train_from_iterator(TEXTS, trainers.BpeTrainer(vocab_size=420, show_progress=False, limit_alphabet=120))
    learned = [token for token, _ in sorted(trained.get_vocab().items(), key=lambda pair: pair[1])]
    whole = [token for token in learned if len(token) > 1]
    single = [token for token in learned if len(token) == 1]
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *whole, *single, "<tool>"]
    kinds = [2, 3, 3, *[6] * 256, *[1] * (len(whole) + len(single)), 4]
    scores = [0.0] * 259 + [-float(n) for n in range(len(whole) + len(single))] + [0.0]
    vocab = {piece: id for id, piece in enumerate(pieces)}
    normal = {piece for piece, kind in zip(pieces, kinds, strict=True) if kind == 1}
    merges = []
    for piece in normal:
        cuts = [(piece[:n], piece[n:]) for n in range(1, len(piece))]
        merges += [(scores[vocab[piece]], len(a), a, b) for a, b in cuts if a in normal and b in normal]
    merges.sort(key=lambda merge: (-merge[0], -merge[1]))
    for adds_space in (True, False):
        pairs = [(a, b) for *_, a, b in merges]
        model = models.BPE(vocab=vocab, merges=pairs, unk_token="<unk>", fuse_unk=True, byte_fallback=True)
        tokenizer = Tokenizer(model)
        steps = [normalizers.Prepend("▁")] if adds_space else []
        tokenizer.normalizer = normalizers.Sequence([*steps, normalizers.Replace(" ", "▁")])
        chain = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
        tokenizer.decoder = decoders.Sequence(chain + ([decoders.Strip(" ", 1, 0)] if adds_space else []))
        tokenizer.add_special_tokens([AddedToken("<s>", normalized=False), AddedToken("</s>", normalized=False)])
        tokenizer.add_tokens([AddedToken("<tool>", normalized=False)])
        tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
        name = "llama" if adds_space else "gemma"
        gguf = {"tokens": pieces, "scores": scores, "token_type": kinds}
        saved = json.loads(tokenizer.to_str())
        write(name, tokenizer, {"tokenizer.json": saved} | ({"gguf.json": gguf} if adds_space else {}))


def make_wordpiece() -> None:
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    for name, lowers in (("bert", True), ("bert_cased", False)):
        normalizer = normalizers.BertNormalizer(lowercase=lowers)
        trained = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        trained.normalizer = normalizer
        trained.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        trainer = trainers.WordPieceTrainer(vocab_size=560, special_tokens=specials, show_progress=False)
        trained.train_from_iterator(TEXTS * 2, trainer)
        pieces = [token for token, _ in sorted(trained.get_vocab().items(), key=lambda pair: pair[1])]
        tokenizer = Tokenizer(models.WordPiece(vocab=trained.get_vocab(), unk_token="[UNK]"))
        tokenizer.normalizer = normalizer
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        tokenizer.decoder = decoders.WordPiece()
        tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in specials])
        tokenizer.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
        )
        write(name, tokenizer, {"vocab.txt": "".join(piece + "\n" for piece in pieces)})


def make_unigram() -> None:
    trained = Tokenizer(models.Unigram())
    marks = {"replacement": "▁", "prepend_scheme": "always"}
    steps = normalizers.Sequence([normalizers.Strip(False, True), normalizers.Replace(Regex(" {2,}"), "▁")])
    trained.normalizer = steps
    trained.pre_tokenizer = pre_tokenizers.Metaspace(**marks)
    trainer = trainers.UnigramTrainer(
        vocab_size=300, special_tokens=["<pad>", "</s>", "<unk>"], unk_token="<unk>", show_progress=False
    )
    trained.train_from_iterator(SENTENCES[:10], trainer)
    pieces = [  # f32, as a GGUF has them
        (piece, struct.unpack("<f", struct.pack("<f", score))[0])
        for piece, score in json.loads(trained.to_str())["model"]["vocab"]
    ]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=2))
    tokenizer.normalizer = steps
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(**marks)
    tokenizer.decoder = decoders.Metaspace(**marks)
    tokenizer.add_special_tokens([AddedToken("<pad>", normalized=False), AddedToken("</s>", normalized=False)])
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    kinds = [3, 3, 2, *[1] * (len(pieces) - 3)]
    gguf = {"tokens": [p for p, _ in pieces], "scores": [s for _, s in pieces], "token_type": kinds}
    write("t5", tokenizer, {"tokenizer.json": json.loads(tokenizer.to_str()), "gguf.json": gguf})


def main() -> None:
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    make_byte_bpe()
    make_sentencepiece_bpe()
    make_wordpiece()
    make_unigram()
    lines = ",\n".join(json.dumps(text) for text in TEXTS)
    (OUT / "corpus.json").write_text('{"texts":[\n' + lines + "\n]}\n", encoding="utf-8")
    record = {
        "script": "tools/make_tokenizers.py",
        "seed": SEED,
        "packages": {"tokenizers": version("tokenizers")},
        "expected": "around: ids put before and after a text; rows: ids and byte ranges of each text without them, "
        "and the ids decoded, special tokens too",
        "unicode": "FNV-1a of the ids of x?1 for every character ?, by 4,096 characters from U+0000 to U+1FFFF, then "
        "U+20000 and U+E0000",
    }
    (OUT / "index.json").write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
