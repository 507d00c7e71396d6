"""Language models, from their configurations."""

from typing import Any

import torch
import transformers as hub
from recipe import Build, Recipe, Step, from_config
from sizes import Size

Model = tuple[torch.nn.Module, Step]


def _encoder(kind: str, head: str = "ForMaskedLM", **extra: Any) -> Build:
    """A masked language model whose configuration has BERT's names."""

    def build(size: Size) -> Model:
        config = getattr(hub, f"{kind}Config")(
            hidden_size=size.width,
            num_hidden_layers=size.layers,
            num_attention_heads=size.heads,
            intermediate_size=2 * size.width + 16,
            max_position_embeddings=128,
            vocab_size=size.words,
            pad_token_id=0,
            **extra,
        )
        tokens = size.tokens()
        return from_config(getattr(hub, f"{kind}{head}"), config, input_ids=tokens, labels=tokens)

    return build


def _decoder(kind: str, **extra: Any) -> Build:
    """A causal language model whose configuration has Llama's names."""

    def build(size: Size) -> Model:
        config = getattr(hub, f"{kind}Config")(
            hidden_size=size.width,
            num_hidden_layers=size.layers,
            num_attention_heads=size.heads,
            num_key_value_heads=max(1, size.heads // 2),
            intermediate_size=2 * size.width + 32,
            max_position_embeddings=128,
            vocab_size=size.words,
            pad_token_id=0,
            bos_token_id=1,
            eos_token_id=2,
            **extra,
        )
        tokens = size.tokens()
        return from_config(getattr(hub, f"{kind}ForCausalLM"), config, input_ids=tokens, labels=tokens)

    return build


def _named(kind: str, head: str, names: str, **extra: Any) -> Build:
    """A model whose configuration calls width, layers, heads and the feed-forward's width by `names`, in this order."""

    def build(size: Size) -> Model:
        values = (size.width, size.layers, size.heads, 2 * size.width + 16)
        chosen = dict(zip(names.split(), values, strict=False))
        config = getattr(hub, f"{kind}Config")(vocab_size=size.words, **chosen, **extra)
        tokens = size.tokens()
        return from_config(getattr(hub, f"{kind}{head}"), config, input_ids=tokens, labels=tokens)

    return build


def _codegen(size: Size) -> Model:
    config = hub.CodeGenConfig(
        vocab_size=size.words, n_embd=size.width, n_layer=size.layers, n_head=4, n_positions=64, rotary_dim=4
    )
    tokens = size.tokens()
    return from_config(hub.CodeGenForCausalLM, config, input_ids=tokens, labels=tokens)


def _seq2seq(kind: str, **extra: Any) -> Build:
    """An encoder and a decoder whose configuration has BART's names."""

    def build(size: Size) -> Model:
        config = getattr(hub, f"{kind}Config")(
            d_model=size.width,
            encoder_layers=size.layers,
            decoder_layers=size.layers,
            encoder_attention_heads=size.heads,
            decoder_attention_heads=size.heads,
            encoder_ffn_dim=2 * size.width,
            decoder_ffn_dim=2 * size.width + 16,
            max_position_embeddings=128,
            vocab_size=size.words,
            pad_token_id=0,
            **extra,
        )
        head = getattr(hub, f"{kind}ForConditionalGeneration", None) or getattr(hub, f"{kind}MTModel")
        return from_config(head, config, input_ids=size.tokens(), labels=size.tokens(size.length // 2))

    return build


def _t5(kind: str) -> Build:
    def build(size: Size) -> Model:
        config = getattr(hub, f"{kind}Config")(
            d_model=size.width,
            d_kv=size.head,
            d_ff=2 * size.width,
            num_layers=size.layers,
            num_heads=size.heads,
            vocab_size=size.words,
            decoder_start_token_id=0,
        )
        head = getattr(hub, f"{kind}ForConditionalGeneration")
        return from_config(head, config, input_ids=size.tokens(), labels=size.tokens(size.length // 2))

    return build


def _mamba(kind: str, **extra: Any) -> Build:
    def build(size: Size) -> Model:
        config = getattr(hub, f"{kind}Config")(
            hidden_size=size.width,
            num_hidden_layers=size.layers,
            vocab_size=size.words,
            state_size=8,
            pad_token_id=0,
            bos_token_id=1,
            eos_token_id=2,
            **{key: value(size) if callable(value) else value for key, value in extra.items()},
        )
        tokens = size.tokens()
        return from_config(getattr(hub, f"{kind}ForCausalLM"), config, input_ids=tokens, labels=tokens)

    return build


def _rwkv(size: Size) -> Model:
    config = hub.RwkvConfig(
        vocab_size=size.words, hidden_size=size.width, num_hidden_layers=size.layers, context_length=64
    )
    tokens = size.tokens()
    return from_config(hub.RwkvForCausalLM, config, input_ids=tokens, labels=tokens)


_EXPERTS = {"num_local_experts": 4, "num_experts_per_tok": 2}

LANGUAGE = (
    Recipe(name="bert", build=_encoder("Bert")),
    Recipe(name="roberta", build=_encoder("Roberta")),
    Recipe(name="albert", build=_encoder("Albert", embedding_size=24)),
    Recipe(name="electra", build=_encoder("Electra", embedding_size=24)),
    Recipe(name="distilbert", build=_named("DistilBert", "ForMaskedLM", "dim n_layers n_heads hidden_dim")),
    Recipe(name="mobilebert", build=_encoder("MobileBert", embedding_size=32, intra_bottleneck_size=32)),
    Recipe(name="deberta-v2", build=_encoder("DebertaV2", relative_attention=True, pos_att_type=["p2c", "c2p"])),
    Recipe(name="convbert", build=_encoder("ConvBert", embedding_size=32, head_ratio=1, conv_kernel_size=5)),
    Recipe(name="mpnet", build=_encoder("MPNet")),
    Recipe(name="xlnet", build=_named("XLNet", "LMHeadModel", "d_model n_layer n_head d_inner")),
    Recipe(name="gpt2", build=_named("GPT2", "LMHeadModel", "n_embd n_layer n_head n_inner", n_positions=64)),
    Recipe(name="gpt-neox", build=_encoder("GPTNeoX", "ForCausalLM", use_parallel_residual=True)),
    Recipe(name="gptj", build=_named("GPTJ", "ForCausalLM", "n_embd n_layer n_head n_inner", rotary_dim=4)),
    Recipe(name="codegen", build=_codegen),
    Recipe(name="llama", build=_decoder("Llama")),
    Recipe(name="mistral", build=_decoder("Mistral", sliding_window=16)),
    Recipe(name="qwen2", build=_decoder("Qwen2")),
    Recipe(name="qwen3", build=_decoder("Qwen3", head_dim=16)),
    Recipe(name="gemma", build=_decoder("Gemma", head_dim=16)),
    Recipe(name="gemma2", build=_decoder("Gemma2", head_dim=24)),
    Recipe(name="phi", build=_decoder("Phi")),
    Recipe(name="stablelm", build=_decoder("StableLm")),
    Recipe(name="olmo", build=_decoder("Olmo")),
    Recipe(name="cohere", build=_decoder("Cohere")),
    Recipe(name="mixtral", build=_decoder("Mixtral", **_EXPERTS)),
    Recipe(
        name="qwen2-moe",
        build=_decoder(
            "Qwen2Moe",
            num_experts=4,
            num_experts_per_tok=2,
            moe_intermediate_size=48,
            shared_expert_intermediate_size=56,
        ),
    ),
    Recipe(
        name="opt",
        build=_named(
            "OPT",
            "ForCausalLM",
            "hidden_size num_hidden_layers num_attention_heads ffn_dim",
            word_embed_proj_dim=40,
            max_position_embeddings=64,
        ),
    ),
    Recipe(name="bloom", build=_named("Bloom", "ForCausalLM", "hidden_size n_layer n_head")),
    Recipe(name="falcon", build=_named("Falcon", "ForCausalLM", "hidden_size num_hidden_layers num_attention_heads")),
    Recipe(name="t5", build=_t5("T5")),
    Recipe(name="umt5", build=_t5("UMT5")),
    Recipe(name="bart", build=_seq2seq("Bart")),
    Recipe(name="pegasus", build=_seq2seq("Pegasus")),
    Recipe(name="marian", build=_seq2seq("Marian", decoder_start_token_id=1)),
    Recipe(name="mamba", build=_mamba("Mamba")),
    Recipe(name="rwkv", build=_rwkv),
)
