"""Makes the golden data that other programs compute.

    python tools/make_golden.py models [NAME...]     # tests/data/models: tiny checkpoints of every family
    python tools/make_golden.py real [NAME...]       # tests/data/models/real: what others compute with real weights

Needs torch, transformers, gguf and, for real ones, accelerate and xllamacpp, in the versions that the index.json
beside the data records. Real weights: tools/fetch_models.py; stories260K as tests/data/models/README.md says."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import pathlib
import sys
from importlib.metadata import version
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).parent))
ROOT = pathlib.Path(__file__).parents[1]
PACKAGES = ("torch", "transformers", "safetensors", "numpy", "gguf")


def make_models(names: list[str], out: pathlib.Path) -> None:
    import transformers

    from golden import models, quantised, specs

    transformers.logging.set_verbosity_error()
    makers = [(spec, models.make) for spec in specs.SPECS] + [(spec, quantised.make) for spec in quantised.SPECS]
    unknown = set(names) - {spec.name for spec, _ in makers}
    if unknown:
        sys.exit(f"make_golden: no model {', '.join(sorted(unknown))}")
    index = out / "index.json"
    kept = json.loads(index.read_text())["models"] if index.exists() else []
    order = [spec.name for spec, _ in makers]

    def folder(entry: dict[str, Any]) -> str:
        return entry["path"].split("/")[0]

    # Written after each model: an index never names what is not there, nor leaves out what is.
    for spec, make in makers:
        if names and spec.name not in names:
            continue
        kept = [entry for entry in kept if folder(entry) in order and folder(entry) != spec.name]
        kept = sorted(kept + make(spec, out), key=lambda entry: order.index(folder(entry)))
        record = {
            "script": "tools/make_golden.py models",
            "python": sys.version.split()[0],
            "packages": {name: version(name).split("+")[0] for name in PACKAGES},
            "tolerances": {"logits": models.LOGITS, "weights": models.WEIGHTS, "states": models.STATES},
            "models": kept,
        }
        index.write_text(json.dumps(record, indent=1) + "\n")


def make_real(names: list[str], out: pathlib.Path) -> None:
    import transformers

    from golden import real

    transformers.logging.set_verbosity_error()
    out.mkdir(parents=True, exist_ok=True)
    index = out / "index.json"
    record = json.loads(index.read_text()) if index.exists() else {"script": "tools/make_golden.py real", "models": {}}
    for name in names or real.MAKERS:
        places = [ROOT / "build/models" / name, ROOT / "tests/data/models" / name]
        if named := os.environ.get("GLASSHEAD_MODELS"):
            places.insert(0, pathlib.Path(named, name))
        folder = next((place for place in places if place.is_dir()), None)
        if folder is None:
            sys.exit(f"make_golden: {name} is in none of {', '.join(map(str, places))}")
        real.MAKERS[name](folder, out)
        packages = (*PACKAGES, "tokenizers", *(("accelerate", "xllamacpp") if name == "smollm2" else ()))
        record["models"][name] = {
            "weights": {f.name: hashlib.sha256(f.read_bytes()).hexdigest() for f in real.weights_of(folder)},
            "python": sys.version.split()[0],
            "packages": {package: version(package).split("+")[0] for package in packages},
        }
        index.write_text(json.dumps(record, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["models", "real"])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "tests/data/models")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    if arguments.what == "models":
        make_models(arguments.names, arguments.out)
    else:
        make_real(arguments.names, arguments.out / "real")


if __name__ == "__main__":
    main()
