"""PyTorch: torch.nn.functional.scaled_dot_product_attention, with its rules (is_causal, enable_gqa) and with an explicit mask."""
import numpy
import torch
from torch.nn.functional import scaled_dot_product_attention

import case as cases
import peer


def version():
    return torch.__version__


def _tensor(array):
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(numpy.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _mask(case, has_rules):
    """attn_mask, is_causal: tables go into attn_mask; rules too, unless the operator takes them."""
    row = case.row
    rules = row.causal and not row.is_decode
    if case.bias is not None:
        seen = None if not rules else cases.visible(row)
        return torch.from_numpy(case.bias if seen is None else numpy.where(seen, case.bias, -numpy.inf)), False
    if case.allowed is not None or row.window or (rules and not has_rules):
        return torch.from_numpy(cases.visible(row, case.allowed)), False
    return None, bool(rules)


def _sdpa(has_rules):
    def prepare(case, threads):
        peer.no_eight_bits(case)
        torch.set_num_threads(threads)
        torch.manual_seed(0)
        row = case.row
        mask, is_causal = _mask(case, has_rules)
        if not has_rules and mask is None:
            raise peer.CannotRun("there is nothing to mask: the same call as sdpa")
        if has_rules and mask is not None:
            raise peer.CannotRun("it has no rule for this mask: see the explicit form")
        q, k, v = (_tensor(x).requires_grad_(row.backward) for x in (case.q, case.k, case.v))
        options = {"attn_mask": mask, "is_causal": is_causal, "enable_gqa": row.heads != row.kv_heads}
        held, layout = [None], "[batch, heads, length, d] as given; the result is allocated by each call"
        if row.backward:
            out, d_out = scaled_dot_product_attention(q, k, v, **options), torch.from_numpy(case.d_out)

            def run():
                held[0] = torch.autograd.grad(out, (q, k, v), d_out, retain_graph=True)
            return peer.Prepared(run, lambda: [x.numpy() for x in held[0]],
                                 layout + "; the forward pass and what it keeps for this one are not in the time")

        def run():
            with torch.inference_mode():
                held[0] = scaled_dot_product_attention(q, k, v, **options)
        return peer.Prepared(run, lambda: [held[0].float().numpy()], layout)
    return prepare


OPERATORS = {
    "sdpa": peer.Operator("torch.nn.functional.scaled_dot_product_attention (is_causal, enable_gqa)", _sdpa(True)),
    "sdpa-mask": peer.Operator("torch.nn.functional.scaled_dot_product_attention (attn_mask, enable_gqa)", _sdpa(False)),
}
OPERATORS["sdpa-rows"] = peer.rows_of_a_group(OPERATORS["sdpa"])
