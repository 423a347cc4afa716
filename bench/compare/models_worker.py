"""One engine on one row of models.py in a process of its own: `models_worker.py ENGINE ROW FOLDER THREADS`, driven line by line by models.py.

It says what it is and how far its answer is from transformers' in f32, then times a turn of the row's repeats for each line it is sent: milliseconds of one."""
import ctypes
import importlib.metadata
import json
import os
import pathlib
import sys
import time

ENGINE, ROW, FOLDER, THREADS = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]), int(sys.argv[4])
for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "GLASSHEAD_THREADS"):
    os.environ[variable] = str(THREADS)
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])
ANSWERS = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # what a library prints stays out of the answers

import numpy  # noqa: E402

import models  # noqa: E402

row = models.named(ROW)
IDS = models.tokens(row)


def log_probabilities(logits):
    wide = logits.astype(numpy.float64)
    wide -= wide.max()
    return wide - numpy.log(numpy.exp(wide).sum())


class Glasshead:
    """This library, through ours_model.cc."""

    def __init__(self):
        self.shim = ctypes.CDLL(str(models.SHIM))
        self.shim.glasshead_model_open.restype = ctypes.c_void_p
        self.shim.glasshead_compare_isa.restype = ctypes.c_char_p
        self.error = ctypes.create_string_buffer(2000)
        self.handle = self.shim.glasshead_model_open(str(models.path_of(row, FOLDER)).encode(), self.error, ctypes.c_size_t(2000))
        if not self.handle:
            raise RuntimeError(self.error.value.decode())
        self.ids = numpy.ascontiguousarray(IDS)
        self.logits = numpy.zeros(row.vocab, numpy.float32)
        self.written = numpy.zeros(row.count, numpy.int64)
        self.vectors = numpy.zeros((row.texts, row.width), numpy.float32)

    def version(self):
        text = (models.ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
        return f"{text.split('project(glasshead VERSION ')[1].split()[0]} ({self.shim.glasshead_compare_isa().decode()})"

    def _call(self, name, *arguments):
        pass_on = [a.ctypes.data_as(ctypes.c_void_p) if isinstance(a, numpy.ndarray) else ctypes.c_int64(a) for a in arguments]
        if not getattr(self.shim, name)(ctypes.c_void_p(self.handle), *pass_on, self.error, ctypes.c_size_t(2000)):
            raise RuntimeError(self.error.value.decode())

    def read(self):
        self._call("glasshead_model_read", self.ids, self.ids.size, self.logits)

    def prepare(self):
        self.read()
        self.first = int(self.logits.argmax())

    def write(self):
        self._call("glasshead_model_write", self.first, row.count - 1, self.written)

    def embed(self):
        self._call("glasshead_model_embed", self.ids, row.texts, row.tokens, self.vectors)

    def probabilities(self):
        return dict(enumerate(log_probabilities(self.logits)))

    def text(self):
        return [self.first, *self.written[:-1].tolist()]

    def embeddings(self):
        return self.vectors


class Torch:
    """Hugging Face transformers on PyTorch, in f32."""

    def __init__(self):
        import torch
        import transformers

        torch.set_num_threads(THREADS)
        self.torch, kind = torch, transformers.AutoModel if row.work == "embed" else transformers.AutoModelForCausalLM
        self.model = kind.from_pretrained(models.path_of(row, FOLDER), dtype=torch.float32).eval()
        self.ids = torch.from_numpy(IDS)

    def version(self):
        return f"{importlib.metadata.version('transformers')} on PyTorch {importlib.metadata.version('torch')}"

    def read(self):
        with self.torch.inference_mode():
            out = self.model(self.ids, use_cache=True, logits_to_keep=1)
        self.cache, self.logits = out.past_key_values, out.logits[0, -1].numpy()

    def prepare(self):
        self.read()
        self.first = int(self.logits.argmax())

    def write(self):
        self.written, next_id = [], self.first
        with self.torch.inference_mode():
            for _ in range(row.count - 1):
                out = self.model(self.torch.tensor([[next_id]]), past_key_values=self.cache, use_cache=True)
                next_id = int(out.logits[0, -1].argmax())
                self.written.append(next_id)

    def embed(self):
        with self.torch.inference_mode():
            self.rows = self.model(input_ids=self.ids, attention_mask=self.torch.ones_like(self.ids)).last_hidden_state

    def probabilities(self):
        return dict(enumerate(log_probabilities(self.logits)))

    def text(self):
        return [self.first, *self.written]

    def embeddings(self):
        return models.pooled(self.rows.numpy())


class LlamaCpp:
    """llama.cpp, through xllamacpp; its own clock times reading and writing."""

    def __init__(self):
        import xllamacpp

        self.library = xllamacpp
        parameters = xllamacpp.CommonParams()
        parameters.model.path = str(models.path_of(row, FOLDER))
        parameters.n_ctx, parameters.n_parallel, parameters.warmup = 1024, 1, False
        parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = THREADS
        self.server = xllamacpp.Server(parameters)

    def version(self):
        return f"{importlib.metadata.version('xllamacpp')} (wheel)"

    def _complete(self, count):
        answer = self.server.handle_completions({"prompt": IDS[0].tolist(), "max_tokens": count, "temperature": 0.0, "cache_prompt": False,
                                                 "logprobs": 20 if count == 1 else 1, "samplers": ["temperature"], "ignore_eos": True})
        answer = json.loads(answer) if isinstance(answer, str) else answer
        if "choices" not in answer:
            raise RuntimeError(str(answer))
        self.times, self.seen = answer["timings"], answer["choices"][0]["logprobs"]["content"]

    def read(self):
        self._complete(1)
        return self.times["prompt_ms"]

    def prepare(self):
        pass

    def write(self):
        self._complete(row.count)
        # Of the tokens, the first comes with the prompt.
        return self.times["predicted_ms"]

    def probabilities(self):
        return {one["id"]: one["logprob"] for one in self.seen[0]["top_logprobs"]}

    def text(self):
        return [one["id"] for one in self.seen]


class OnnxRuntime:
    """ONNX Runtime on the graph that torch.onnx exports from transformers' model."""

    def __init__(self):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = THREADS, 1
        self.session = onnxruntime.InferenceSession(str(FOLDER / "minilm.onnx"), options, providers=["CPUExecutionProvider"])
        self.inputs = {"input_ids": IDS, "attention_mask": numpy.ones_like(IDS), "token_type_ids": numpy.zeros_like(IDS)}

    def version(self):
        return importlib.metadata.version("onnxruntime")

    def embed(self):
        self.rows = self.session.run(None, self.inputs)[0]

    def embeddings(self):
        return models.pooled(self.rows)


def run(engine):
    """Once: milliseconds."""
    if row.work == "write":
        engine.prepare()
    start = time.perf_counter()
    own = getattr(engine, row.work)()
    return own if own is not None else (time.perf_counter() - start) * 1e3


def answer(engine):
    if row.work == "read":
        return {"probabilities": {str(n): float(p) for n, p in engine.probabilities().items()}}
    return {"text": engine.text()} if row.work == "write" else {"vectors": engine.embeddings().tolist()}


def main():
    try:
        engine = {"glasshead": Glasshead, "transformers": Torch, "llama.cpp": LlamaCpp, "onnxruntime": OnnxRuntime}[ENGINE]()
        run(engine)
        got = answer(engine)
        reference = FOLDER / f"{models.reference_of(row)}.json"
        if not reference.exists():
            reference.write_text(json.dumps(got))
        wrong = models.distance(row, got, json.loads(reference.read_text()))
    except Exception as problem:  # the library refuses: its own words are the reason
        return print(json.dumps({"cannot": f"{type(problem).__name__}: {problem}"}), file=ANSWERS, flush=True)
    print(json.dumps({"version": engine.version(), **wrong}), file=ANSWERS, flush=True)
    for _ in sys.stdin:
        cpu = time.process_time()
        ms = sum(run(engine) for _ in range(row.repeats)) / row.repeats
        cpu_ms = (time.process_time() - cpu) * 1e3 / row.repeats
        print(json.dumps({"ms": float(f"{ms:.6g}"), "cpu_ms": float(f"{cpu_ms:.6g}")}), file=ANSWERS, flush=True)


main()
