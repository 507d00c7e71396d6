"""Speech models, from their configurations."""

from typing import Any

import torch
import transformers as hub
from recipe import Build, Recipe, Step, from_config
from sizes import Size

Model = tuple[torch.nn.Module, Step]


def _waves(kind: str, **extra: Any) -> Build:
    """A model that takes the wave itself, and is trained by connectionist temporal classification."""

    def build(size: Size) -> Model:
        config = getattr(hub, f"{kind}Config")(
            hidden_size=size.width,
            num_hidden_layers=size.layers,
            num_attention_heads=size.heads,
            intermediate_size=2 * size.width,
            vocab_size=size.classes + 8,
            conv_dim=(16, 24, 32),
            conv_stride=(5, 2, 2),
            conv_kernel=(10, 3, 3),
            num_conv_pos_embeddings=8,
            num_conv_pos_embedding_groups=4,
            mask_time_length=2,
            mask_time_prob=0.2,
            pad_token_id=0,
            **extra,
        )
        targets = torch.randint(1, size.classes, (size.batch, 6))
        return from_config(
            getattr(hub, f"{kind}ForCTC"), config, input_values=size.waves(20 * size.length + 400), labels=targets
        )

    return build


def _whisper(size: Size) -> Model:
    config = hub.WhisperConfig(
        vocab_size=size.words,
        num_mel_bins=24,
        d_model=size.width,
        encoder_layers=1,
        decoder_layers=2,
        encoder_attention_heads=size.heads,
        decoder_attention_heads=size.heads,
        encoder_ffn_dim=2 * size.width,
        decoder_ffn_dim=2 * size.width,
        max_source_positions=size.length,
        max_target_positions=64,
        decoder_start_token_id=1,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        suppress_tokens=None,
        begin_suppress_tokens=None,
    )
    mels = torch.randn(size.batch, 24, 2 * size.length)
    return from_config(
        hub.WhisperForConditionalGeneration, config, input_features=mels, labels=size.tokens(size.length // 2)
    )


def _spectrogram(size: Size) -> Model:
    config = hub.ASTConfig(
        hidden_size=size.width,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        intermediate_size=2 * size.width,
        patch_size=8,
        frequency_stride=6,
        time_stride=6,
        max_length=size.length + 16,
        num_mel_bins=24,
        num_labels=size.classes,
    )
    frames = torch.randn(size.batch, size.length + 16, 24)
    return from_config(hub.ASTForAudioClassification, config, input_values=frames, labels=size.labels())


def _speech_to_text(size: Size) -> Model:
    config = hub.Speech2TextConfig(
        vocab_size=size.words,
        d_model=size.width,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=size.heads,
        decoder_attention_heads=size.heads,
        encoder_ffn_dim=48,
        decoder_ffn_dim=64,
        conv_channels=32,
        input_feat_per_channel=20,
        max_source_positions=256,
        max_target_positions=64,
        pad_token_id=1,
        decoder_start_token_id=2,
    )
    frames = torch.randn(size.batch, 2 * size.length, 20)
    return from_config(hub.Speech2TextForConditionalGeneration, config, input_features=frames, labels=size.tokens(12))


SPEECH = (
    Recipe(name="wav2vec2", build=_waves("Wav2Vec2")),
    Recipe(name="hubert", build=_waves("Hubert")),
    Recipe(name="sew", build=_waves("SEW", squeeze_factor=2)),
    Recipe(name="wavlm", build=_waves("WavLM")),
    Recipe(name="unispeech", build=_waves("UniSpeech")),
    Recipe(name="whisper", build=_whisper),
    Recipe(name="audio-spectrogram-transformer", build=_spectrogram),
    Recipe(name="speech-to-text", build=_speech_to_text),
)
