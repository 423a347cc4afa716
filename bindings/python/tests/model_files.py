"""The tiny models of tests/data/models, and what Hugging Face transformers computes with them in float64 (its README
says what is there)."""

import json
import pathlib
import struct

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[3]
FOLDER = ROOT / "tests" / "data" / "models"
INDEX = json.loads((FOLDER / "index.json").read_text(encoding="utf-8"))
TOLERANCES = INDEX["tolerances"]


def read_safetensors(path):
    data = pathlib.Path(path).read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    types = {"F32": np.float32, "F64": np.float64, "I32": np.int32, "I64": np.int64}
    found = {}
    for name, entry in json.loads(data[8 : 8 + size]).items():
        if name != "__metadata__":
            first, end = (8 + size + offset for offset in entry["data_offsets"])
            found[name] = np.frombuffer(data[first:end], types[entry["dtype"]]).reshape(entry["shape"])
    return found


def expected_of(name):
    """The expectations of a model, by name without the text's number: one dict for each text."""
    entry = next(model for model in INDEX["models"] if model["name"] == name)
    arrays = read_safetensors(FOLDER / entry["expected"])
    texts = [{} for _ in range(entry["texts"])]
    for key, array in arrays.items():
        text, _, rest = key.partition(".")
        texts[int(text)][rest] = array
    return texts
