"""The rows of the comparison: what is computed, in which shape. One table, read by everything else here."""
import dataclasses


NOT_SLOWER = 0.97


@dataclasses.dataclass(frozen=True)
class Row:
    """Queries [batch, heads, q_len, d]; keys and values [batch, kv_heads, kv_len, d]. The last query stands at the last key."""
    name: str
    group: str           # the heading it stands under
    heads: int
    q_len: int
    kv_len: int
    d: int
    kv_heads: int = 0    # 0: as many as heads
    batch: int = 1
    causal: bool = False
    window: int = 0      # keys in sight, the query's own included; 0: all
    bias: bool = False   # a dense f32 bias [q_len, kv_len], the same for all heads
    boolean: bool = False  # random booleans [q_len, kv_len], half of them true; the same for all heads
    backward: bool = False
    dtype: str = "f32"   # "f32" or "bf16": of q, k and v; "int8": f32 numbers, of which k and v are kept in 8 bits, each operator in its way

    def __post_init__(self):
        if not self.kv_heads:
            object.__setattr__(self, "kv_heads", self.heads)

    @property
    def pairs(self):
        """(query, key) pairs of one head that are computed: hidden by rule do not count, hidden by a table do."""
        if not self.causal:
            return self.q_len * self.kv_len
        first = self.kv_len - self.q_len
        seen = (first + i + 1 for i in range(self.q_len))
        return sum(min(n, self.window) if self.window else n for n in seen)

    @property
    def flops(self):
        """Multiplications and additions of the products: two forward, five backward."""
        return 2 * (5 if self.backward else 2) * self.d * self.pairs * self.heads * self.batch

    @property
    def kv_bytes(self):
        """Bytes of keys and values, each row counted once: what a decode step must read."""
        return 2 * self.batch * self.kv_heads * self.kv_len * self.d * {"f32": 4, "bf16": 2, "int8": 1}[self.dtype]

    @property
    def is_decode(self):
        return self.q_len == 1

    @property
    def goal(self):
        """How many times as fast as the best peer Glasshead means to be: 1.1 in full prefill, 1.4 in causal, 2 in grouped decoding, 1.5
        backward; nowhere slower, which is called 0.97 because two measurements of the same thing differ by so much."""
        if self.group == "Prefill":
            return 1.4 if self.causal else 1.1
        return {"Decode": 2.0, "Backward": 1.5}.get(self.group, NOT_SLOWER)

    @property
    def says(self):
        """The row in words, for tables."""
        heads = f"H{self.heads}" if self.heads == self.kv_heads else f"H{self.heads}/{self.kv_heads}"
        length = f"{self.kv_len:,} keys" if self.is_decode else f"N{self.q_len}"
        batch = f"B{self.batch} " if self.batch > 1 else ""
        kind = [w for w, on in (("causal", self.causal and not self.is_decode), (f"window {self.window}", self.window),
                                ("dense bias", self.bias), ("boolean mask", self.boolean), ("backward", self.backward)) if on]
        return f"{batch}{heads} {length} d{self.d} {', '.join(kind) or ('' if self.is_decode else 'full')} {self.dtype}".replace("  ", " ")


def _square(name, group, n, **rest):
    return Row(name, group, **{"heads": 12, "q_len": n, "kv_len": n, "d": 64, **rest})


def _decode(keys, dtype):
    return Row(f"decode-{keys}-{dtype}", "Decode", heads=32, kv_heads=8, q_len=1, kv_len=keys, d=128, causal=True, dtype=dtype)


ROWS = (
    _square("full-512", "Prefill", 512),
    _square("causal-512", "Prefill", 512, causal=True),
    _square("full-2048", "Prefill", 2048),
    _square("causal-2048", "Prefill", 2048, causal=True),
    _square("gqa-causal-2048", "Prefill", 2048, heads=32, kv_heads=8, d=128, causal=True),
    _square("short-16", "Short rows", 16, causal=True),
    _square("short-64", "Short rows", 64, causal=True),
    _square("short-128", "Short rows", 128, causal=True),
    _square("short-256", "Short rows", 256, causal=True),
    _square("short-16-batch", "Short rows", 16, causal=True, batch=64),
    _decode(4096, "f32"),
    _decode(16384, "f32"),
    _decode(4096, "bf16"),
    _decode(16384, "bf16"),
    _decode(4096, "int8"),
    _decode(16384, "int8"),
    _square("bias-2048", "Masks and bias", 2048, bias=True),
    _square("boolean-2048", "Masks and bias", 2048, boolean=True),
    _square("window-2048", "Masks and bias", 2048, causal=True, window=256),
    _square("backward-512", "Backward", 512, causal=True, backward=True),
    _square("backward-2048", "Backward", 2048, causal=True, backward=True),
)
QUICK = ("short-64", "decode-4096-f32", "backward-512")
# Measured on two threads as well, where nothing else is asked for.
TWO_THREADS = ("full-2048", "causal-2048", "gqa-causal-2048", "decode-16384-f32", "decode-16384-bf16", "decode-16384-int8", "backward-2048")


def choose(patterns):
    """Rows whose name contains one of the comma-separated patterns; all for an empty string."""
    wanted = [p for p in patterns.split(",") if p]
    chosen = [row for row in ROWS if not wanted or any(p in row.name for p in wanted)]
    if not chosen:
        raise SystemExit(f"no row's name contains any of {patterns}; the rows are {', '.join(row.name for row in ROWS)}")
    return chosen


def named(name):
    return next(row for row in ROWS if row.name == name)
