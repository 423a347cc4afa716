"""tests/data/models: the index names what is there and nothing else, sizes stay small, provenance is complete."""

import json
import pathlib
import struct
import unittest

ROOT = pathlib.Path(__file__).parents[1] / "data/models"
INDEX = json.loads((ROOT / "index.json").read_text())
PUBLISHED = {"real", "rxnmapper-albert"}


def arrays(path):
    """Names and shapes of a .safetensors file."""
    data = path.read_bytes()
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + length])
    return {name: entry["shape"] for name, entry in header.items() if name != "__metadata__"}


class ModelData(unittest.TestCase):
    def test_every_folder_is_in_the_index(self):
        folders = {path.name for path in ROOT.iterdir() if path.is_dir()}
        self.assertEqual(folders, {entry["path"].split("/")[0] for entry in INDEX["models"]} | PUBLISHED)
        names = [entry["name"] for entry in INDEX["models"]]
        self.assertEqual(len(names), len(set(names)))

    def test_every_file_is_opened_by_some_entry(self):
        opened = {"README.md", "index.json"}
        for entry in INDEX["models"]:
            path = ROOT / entry["path"]
            opened |= {entry["expected"]} | ({entry["path"]} if path.is_file() else set())
            if path.is_dir():
                opened |= {
                    f"{entry['path']}/{p.name}"
                    for p in path.iterdir()
                    if p.name.startswith(("model", "config")) and p.suffix != ".gguf"
                }
        found = {str(p.relative_to(ROOT)) for p in ROOT.rglob("*") if p.is_file()}
        self.assertEqual({p for p in found if p.split("/")[0] not in PUBLISHED}, opened)

    def test_checkpoints_are_small(self):
        for path in ROOT.rglob("model*"):
            if path.relative_to(ROOT).parts[0] not in PUBLISHED:
                self.assertLessEqual(path.stat().st_size, 200_000, path)

    def test_texts_are_complete(self):
        for entry in INDEX["models"]:
            with self.subTest(entry["name"]):
                there = arrays(ROOT / entry["expected"])
                self.assertEqual({name.split(".")[0] for name in there}, {str(t) for t in range(entry["texts"])})
                for text in range(entry["texts"]):
                    (length,) = there[f"{text}.ids"]
                    stack = "encoder." if entry["kind"] == "encoder-decoder" else ""
                    self.assertEqual(there[f"{text}.{stack}in.0"][0], length)
                    self.assertEqual(there[f"{text}.{stack}weights.0"][1:], [length, length])

    def test_versions_and_weights_are_recorded(self):
        self.assertLessEqual({"torch", "transformers", "gguf"}, INDEX["packages"].keys())
        real = json.loads((ROOT / "real/index.json").read_text())["models"]
        for name, record in real.items():
            self.assertTrue((ROOT / f"real/{name}.safetensors").is_file())
            self.assertTrue(record["weights"] and record["packages"])


if __name__ == "__main__":
    unittest.main()
