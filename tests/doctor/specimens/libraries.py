"""Asks the doctor about right outputs of installed libraries: `python libraries.py GLASSHEAD SEED COUNT`.

On each of COUNT random inputs PyTorch's scaled_dot_product_attention (f32, f16, bf16) and ONNX Runtime's Attention (f32,
f16) are run, as far as they are installed, and `glasshead attend` (f32, f16); prints how many outputs were called wrong.
What a library doesn't take is passed over, and counted.
"""
import importlib.util
import pathlib
import sys
import tempfile

import numpy as np

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent), str(pathlib.Path(__file__).resolve().parent.parent / "recorded")]
import make  # noqa: E402
import numpy_test  # noqa: E402
import right  # noqa: E402

NUMPY = {"f32": np.float32, "f16": np.float16}


class Passed(Exception):
    pass


def torch_sdpa(dtype, q, k, v, scale, rules):
    import torch
    if rules["cap"] is not None:
        raise Passed("softcap")
    kind = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}[dtype]
    t = lambda x: torch.from_numpy(np.ascontiguousarray(x, np.float32)).to(kind)  # noqa: E731
    allowed = rules["allowed"]
    mask, is_causal = torch.from_numpy(allowed), False
    if rules["bias"] is not None:
        mask = t(np.where(allowed, rules["bias"], -np.inf))
    elif (allowed == np.tri(*allowed.shape[2:], dtype=bool)).all():
        mask, is_causal = None, True
    elif allowed.all():
        mask = None
    out = torch.nn.functional.scaled_dot_product_attention(t(q), t(k), t(v), attn_mask=mask, is_causal=is_causal, scale=scale,
                                                           enable_gqa=q.shape[1] != k.shape[1])
    return out.float().numpy()


def ort_attention(dtype, q, k, v, scale, rules):
    if dtype == "bf16":
        raise Passed("no bf16")
    kind = NUMPY[dtype]
    mask = rules["allowed"]
    if rules["bias"] is not None:
        mask = np.where(rules["allowed"], rules["bias"], -np.inf).astype(kind)
    a = {"q": q.astype(kind), "k": k.astype(kind), "v": v.astype(kind), "mask": mask}
    return make.ort_attention(a, scale=scale, **({} if rules["cap"] is None else {"softcap": rules["cap"]})).astype(np.float32)


def attend(folder, dtype, q, k, v, flags, files):
    if dtype == "bf16":
        raise Passed("no bf16 in .npy")
    done = numpy_test.run(folder, ["attend", *flags, "-o", str(folder / "ours.npy")], {"q": q, "k": k, "v": v}, files, dtype)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return np.load(folder / "ours.npy").astype(np.float32)


def main(program, seed, count):
    numpy_test.PROGRAM = program
    peers = [("glasshead", None)] + [(name, run) for name, run in (("torch", torch_sdpa), ("onnxruntime", ort_attention))
             if importlib.util.find_spec(name) is not None]
    tally = {}
    with tempfile.TemporaryDirectory() as name_of_folder:
        folder = pathlib.Path(name_of_folder)
        for _, dtype, q, k, v, scale, flags, files, rules in right.cases(seed, count):
            for name, run in peers:
                counts = tally.setdefault((name, dtype), {"right": 0, "wrong": 0, "passed over": 0})
                try:
                    out = run(dtype, q, k, v, scale, rules) if run else attend(folder, dtype, q, k, v, flags, files)
                except Passed:
                    counts["passed over"] += 1
                    continue
                said = numpy_test.say(folder, q, k, v, {"out": out}, flags, files, dtype)
                counts["right" if said["verdict"] == "right" else "wrong"] += 1
                if said["verdict"] != "right":
                    print(name, dtype, rules["rule"], flags, q.shape, k.shape, v.shape, said["worst"], [c["name"] for c in said["causes"]])
    for (name, dtype), counts in tally.items():
        print(name, dtype, counts)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
