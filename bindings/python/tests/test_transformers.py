"""attn_implementation="glasshead" in Hugging Face transformers, on small models with random weights."""

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import glasshead.torch  # noqa: E402

glasshead.torch.register()


def model_of(implementation, **more):
    """A decoder with grouped heads: the same weights whatever computes its attention."""
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=50, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=64, attn_implementation=implementation, **more,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config).eval()


@pytest.fixture
def tokens():
    return torch.randint(0, 50, (2, 9), generator=torch.Generator().manual_seed(1))


def test_logits_are_those_of_the_plain_implementation(tokens):
    with torch.no_grad():
        ours, plain = (model_of(name)(tokens).logits for name in ("glasshead", "eager"))
    torch.testing.assert_close(ours, plain, rtol=1e-4, atol=1e-5)


def test_left_padding_is_hidden(tokens):
    mask = torch.ones_like(tokens)
    mask[0, :4] = 0
    with torch.no_grad():
        ours, plain = (model_of(name)(tokens, attention_mask=mask).logits for name in ("glasshead", "eager"))
    torch.testing.assert_close(ours[0, 4:], plain[0, 4:], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(ours[1], plain[1], rtol=1e-4, atol=1e-5)


def test_generation_with_a_cache(tokens):
    ours, plain = (
        model_of(name).generate(tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=12, do_sample=False,
                                pad_token_id=0)
        for name in ("glasshead", "eager")
    )  # fmt: skip
    assert torch.equal(ours, plain)


def test_gradients_are_those_of_the_plain_implementation(tokens):
    found = []
    for name in ("glasshead", "eager"):
        model = model_of(name)
        model(tokens, labels=tokens).loss.backward()
        found.append({key: parameter.grad for key, parameter in model.named_parameters()})
    for key, gradient in found[0].items():
        torch.testing.assert_close(gradient, found[1][key], rtol=1e-3, atol=1e-5, msg=key)


def test_attentions_come_from_the_fused_path(tokens):
    with torch.no_grad():
        ours = model_of("glasshead")(tokens, output_attentions=True).attentions
        plain = model_of("eager")(tokens, output_attentions=True).attentions
    assert len(ours) == len(plain) == 2
    for a, b in zip(ours, plain, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)


def test_a_learned_position_bias_has_its_gradient(tokens):
    """T5: a bias of each head from a table of distances, in the encoder and the decoder."""
    found = []
    for name in ("glasshead", "eager"):
        torch.manual_seed(0)
        config = transformers.T5Config(
            vocab_size=50, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, dropout_rate=0.0,
            decoder_start_token_id=0, attn_implementation=name,
        )  # fmt: skip
        model = transformers.T5ForConditionalGeneration(config)
        mask = torch.ones_like(tokens)
        mask[0, 6:] = 0
        done = model(input_ids=tokens, attention_mask=mask, labels=tokens[:, :5].contiguous())
        done.loss.backward()
        table = model.decoder.block[0].layer[0].SelfAttention.relative_attention_bias.weight
        found.append((done.logits, *(parameter.grad for parameter in model.parameters()), table.grad))
    assert found[0][-1].abs().max() > 0
    for ours, plain in zip(*found, strict=True):
        torch.testing.assert_close(ours, plain, rtol=1e-3, atol=1e-5)


def test_a_saved_model_gives_the_same_numbers(tokens, tmp_path):
    model = model_of("eager", bos_token_id=1, eos_token_id=None)
    model.save_pretrained(tmp_path)
    session, taps = glasshead.Session(glasshead.Model(tmp_path)), glasshead.Taps("decoder.*.self.weights")
    text = tokens[0].tolist()
    with torch.no_grad():
        plain = model(tokens[:1], output_attentions=True)
        written = model.generate(tokens[:1], max_new_tokens=12, do_sample=False, pad_token_id=0)
    logits = session.forward(text, rows="all", taps=taps)
    torch.testing.assert_close(torch.from_numpy(logits), plain.logits[0], rtol=2e-4, atol=1e-5)
    for layer, weights in enumerate(plain.attentions):
        ours = torch.from_numpy(taps[f"decoder.{layer}.self.weights"])
        torch.testing.assert_close(ours, weights[0], rtol=0, atol=1e-5)
    session.truncate(0)
    assert session.generate(text, max_tokens=12).ids == written[0, len(text) :].tolist()
