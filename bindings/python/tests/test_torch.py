"""glasshead.torch against PyTorch's own attention and its gradients."""

import pytest

torch = pytest.importorskip("torch")

import glasshead  # noqa: E402
import glasshead.torch  # noqa: E402

sdpa = glasshead.torch.scaled_dot_product_attention


def theirs(q, k, v, attn_mask=None, is_causal=False, scale=None, enable_gqa=False):
    """Attention in plain PyTorch operations, as its documentation writes them."""
    k = k.repeat_interleave(q.shape[-3] // k.shape[-3], -3)
    v = v.repeat_interleave(q.shape[-3] // v.shape[-3], -3)
    s = q @ k.transpose(-2, -1) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        s = s.masked_fill(~torch.ones(s.shape[-2:], dtype=torch.bool).tril(), -torch.inf)
    if attn_mask is not None:
        s = s.masked_fill(~attn_mask, -torch.inf) if attn_mask.dtype == torch.bool else s + attn_mask
    return torch.softmax(s, -1) @ v


@pytest.fixture
def qkv():
    generator = torch.Generator().manual_seed(1)

    def make(q_len=6, kv_len=6, heads=4, kv_heads=2, dtype=torch.float64, grad=True):
        shapes = (2, heads, q_len, 5), (2, kv_heads, kv_len, 5), (2, kv_heads, kv_len, 3)
        return [torch.randn(s, generator=generator, dtype=torch.float64).to(dtype).requires_grad_(grad) for s in shapes]

    return make


CALLS = [
    {},
    {"is_causal": True},
    {"scale": -0.7},
    {"attn_mask": torch.rand((6, 6), generator=torch.Generator().manual_seed(2)) < 0.7},
]


@pytest.mark.parametrize("call", CALLS)
def test_values_and_gradients_are_those_of_plain_operations(qkv, call):
    if call.get("attn_mask") is not None:
        call["attn_mask"].fill_diagonal_(True)
    inputs = qkv()
    out, wanted = sdpa(*inputs, enable_gqa=True, **call), theirs(*inputs, **call)
    torch.testing.assert_close(out, wanted, rtol=1e-12, atol=1e-12)
    d_out = torch.randn_like(wanted)
    gradients = (torch.autograd.grad(y, inputs, d_out) for y in (out, wanted))
    for ours, right in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, right, rtol=1e-11, atol=1e-12)


def test_gradcheck(qkv):
    bias = torch.randn((4, 1, 6), dtype=torch.float64, requires_grad=True)
    sinks = torch.randn(4, dtype=torch.float64, requires_grad=True)

    def call(q, k, v, bias, sinks):
        return sdpa(q, k, v, bias, is_causal=True, enable_gqa=True, sinks=sinks, softcap=3.0)

    assert torch.autograd.gradcheck(call, (*qkv(), bias, sinks))


def test_gradcheck_under_dropout(qkv):
    assert torch.autograd.gradcheck(
        lambda q, k, v: sdpa(q, k, v, dropout_p=0.4, dropout_seed=3, enable_gqa=True), qkv()
    )


def test_the_gradient_of_an_attn_mask_is_summed_over_what_it_repeats(qkv):
    q, k, v = qkv(grad=False)
    for shape in [(6, 6), (1, 6), (2, 1, 6, 6), (4, 6, 6)]:
        bias = torch.randn(shape, dtype=torch.float64, requires_grad=True)
        ours, right = sdpa(q, k, v, bias, enable_gqa=True), theirs(q, k, v, bias)
        d_out = torch.randn_like(right)
        gradients = [torch.autograd.grad(out, bias, d_out)[0] for out in (ours, right)]
        torch.testing.assert_close(*gradients, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_narrower_types_are_as_exact_as_pytorch(qkv, dtype):
    inputs = qkv(q_len=64, kv_len=64, dtype=dtype)
    wide = [x.detach().double().requires_grad_() for x in inputs]
    d_out = torch.randn((2, 4, 64, 3)).to(dtype)
    exact = theirs(*wide, is_causal=True)
    exact_gradients = torch.autograd.grad(exact, wide, d_out.double())

    def errors(call):
        out = call(*inputs, is_causal=True, enable_gqa=True)
        assert out.dtype == dtype
        gradients = torch.autograd.grad(out, inputs, d_out)
        return [(a.double() - b).abs().max() for a, b in zip((out, *gradients), (exact, *exact_gradients), strict=True)]

    for ours, plain in zip(errors(sdpa), errors(torch.nn.functional.scaled_dot_product_attention), strict=True):
        assert ours <= 2 * plain + 1e-6


def test_causal_over_unequal_lengths_is_top_left(qkv):
    for q_len, kv_len in [(3, 7), (7, 3)]:
        inputs = qkv(q_len, kv_len, grad=False)
        wanted = torch.nn.functional.scaled_dot_product_attention(*inputs, is_causal=True, enable_gqa=True)
        torch.testing.assert_close(sdpa(*inputs, is_causal=True, enable_gqa=True), wanted, rtol=1e-12, atol=1e-12)
    inputs = qkv(3, 7, grad=False)
    bottom = torch.ones((3, 7), dtype=torch.bool).tril(4)
    torch.testing.assert_close(
        sdpa(*inputs, is_causal=True, align="end", enable_gqa=True), theirs(*inputs, bottom), rtol=1e-12, atol=1e-12
    )


def test_any_strides_and_any_gradient_layout(qkv):
    q, k, v = qkv(grad=False)
    turned = [x.transpose(1, 2).contiguous().transpose(1, 2).requires_grad_() for x in (q, k, v)]
    out = sdpa(*turned, enable_gqa=True)
    out.sum().backward()  # its gradient is a single 1, repeated
    wanted = [x.clone().requires_grad_() for x in (q, k, v)]
    theirs(*wanted).sum().backward()
    for ours, right in zip(turned, wanted, strict=True):
        torch.testing.assert_close(ours.grad, right.grad, rtol=1e-11, atol=1e-12)


def test_dropout_takes_its_seed_from_the_generator(qkv):
    inputs = qkv(grad=False)
    with pytest.raises(glasshead.OptionError, match="dropout_seed"):
        sdpa(*inputs, dropout_p=0.5, enable_gqa=True)
    first, again, other = (
        sdpa(*inputs, dropout_p=0.5, enable_gqa=True, generator=torch.Generator().manual_seed(seed))
        for seed in (1, 1, 2)
    )
    assert torch.equal(first, again) and not torch.equal(first, other)


def test_gradcheck_of_every_term_of_the_bias(qkv):
    q, k, v = qkv(q_len=5, kv_len=6)
    mask, first, second, table = (
        torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in [(5, 6), (4, 5, 1), (1, 6), (8, 4)]
    )

    def call(q, k, v, mask, first, second, table):
        t5 = glasshead.T5(table, False, 5)
        return sdpa(q, k, v, mask, bias=[first, second], alibi=True, t5=t5, align="end", enable_gqa=True)

    assert torch.autograd.gradcheck(call, (q, k, v, mask, first, second, table))
    constant = [x.detach().numpy() for x in (mask, first)]  # arrays that are no tensors have their place in the order
    out = sdpa(q.detach(), k, v, constant[0], bias=[constant[1], second], t5=table, align="end", enable_gqa=True)
    same = sdpa(q.detach(), k, v, mask, bias=[first, second], t5=table, align="end", enable_gqa=True)
    for ours, right in zip(*(torch.autograd.grad(y.sum(), (k, second, table)) for y in (out, same)), strict=True):
        torch.testing.assert_close(ours, right)


def test_a_gradient_that_is_not_computed_is_refused(qkv):
    inputs = qkv()
    with pytest.raises(glasshead.OptionError, match="gradient"):
        sdpa(*inputs, enable_gqa=True, alibi=torch.ones(4, requires_grad=True))
    out = sdpa(*inputs, enable_gqa=True)
    (gradient,) = torch.autograd.grad(out.sum(), inputs[0], create_graph=True)
    with pytest.raises(RuntimeError):
        gradient.sum().backward()


def test_errors_are_the_libraries(qkv):
    q, k, v = qkv()
    with pytest.raises(glasshead.Error, match="enable_gqa=True"):
        sdpa(q, k, v)
    with pytest.raises(glasshead.Error, match="kv_len"):
        sdpa(q, k, v[:, :, :2], enable_gqa=True)
