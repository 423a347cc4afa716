"""The tiny models of tests/data/models and their vocabularies, for tests of the command."""

import json
import os
import struct

MODELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "models")
# struct's letter of a .safetensors type
LETTERS = {"I32": "i", "F32": "f", "F64": "d", "I64": "q"}


def numbers(entry):
    """(shape, values) of what read_safetensors gives for one name."""
    kind, shape, raw = entry
    letter = LETTERS[kind]
    return shape, list(struct.unpack(f"<{len(raw) // struct.calcsize(letter)}{letter}", raw))


def with_spelled(folder, spelled):
    """A copy of the model llama in `folder` (links to its files) with a vocabulary of GPT-2's alphabet: id 7 is "w7", but
    for those that `spelled` names {id: token}."""
    path = os.path.join(folder, "spelled")
    os.mkdir(path)
    llama = os.path.join(MODELS, "llama")
    for name in os.listdir(llama):
        os.symlink(os.path.join(llama, name), os.path.join(path, name))
    with open(os.path.join(llama, "config.json"), encoding="utf-8") as file:
        count = json.load(file)["vocab_size"]
    words = {0: "<unk>", **spelled}
    content = {"version": "1.0", "truncation": None, "padding": None, "normalizer": None,
               "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
               "added_tokens": [{"id": 0, "content": "<unk>", "single_word": False, "lstrip": False, "rstrip": False,
                                 "normalized": False, "special": True}],
               "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
                                 "use_regex": True},
               "post_processor": None,
               "model": {"type": "WordLevel", "vocab": {words.get(n, f"w{n}"): n for n in range(count)},
                         "unk_token": "<unk>"}}
    for name, value in (("tokenizer.json", content), ("tokenizer_config.json", {"unk_token": "<unk>"})):
        with open(os.path.join(path, name), "w", encoding="utf-8") as file:
            json.dump(value, file)
    return path


def with_words(folder, model, special, config=None):
    """A copy of `model` in `folder` (links to its files) with a vocabulary: id 7 is "w7", but for those that `special`
    names {id: token}. Words stand between spaces. `config`: tokenizer_config.json."""
    path = os.path.join(folder, os.path.basename(model))
    os.mkdir(path)
    for name in os.listdir(model):
        os.symlink(os.path.join(model, name), os.path.join(path, name))
    with open(os.path.join(model, "config.json"), encoding="utf-8") as file:
        count = json.load(file)["vocab_size"]
    vocab = {special.get(n, f"w{n}"): n for n in range(count)}
    around = {name: vocab[name] for name in ("[CLS]", "[SEP]") if name in vocab}
    ends = [{"SpecialToken": {"id": name, "type_id": 0}} for name in around]
    words = {
        "version": "1.0", "truncation": None, "padding": None, "normalizer": None, "decoder": None,
        "added_tokens": [{"id": n, "content": token, "single_word": False, "lstrip": False, "rstrip": False,
                          "normalized": False, "special": True} for n, token in special.items()],
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": {"type": "TemplateProcessing",
                           "single": ends[:1] + [{"Sequence": {"id": "A", "type_id": 0}}] + ends[1:],
                           "pair": ends[:1] + [{"Sequence": {"id": name, "type_id": 0}} for name in "AB"],
                           "special_tokens": {name: {"id": name, "ids": [n], "tokens": [name]}
                                              for name, n in around.items()}},
        "model": {"type": "WordLevel", "vocab": vocab, "unk_token": special.get(0, "w0")}}
    names = {f"{kind}_token": f"[{kind.upper()}]" for kind in ("cls", "sep", "mask") if f"[{kind.upper()}]" in vocab}
    for name, content in (("tokenizer.json", words), ("tokenizer_config.json", {**names, **(config or {})})):
        with open(os.path.join(path, name), "w", encoding="utf-8") as file:
            json.dump(content, file)
    return path
