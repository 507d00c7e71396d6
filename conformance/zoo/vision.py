"""Vision models, from their configurations: classification, segmentation, detection."""

from collections.abc import Callable
from typing import Any

import torch
import transformers as hub
from recipe import Build, Recipe, Step, from_config
from sizes import Size

Model = tuple[torch.nn.Module, Step]
Choose = Callable[[Size], dict[str, Any]]


def _classifier(kind: str, choose: Choose) -> Build:
    """Of the model's `...ForImageClassification`."""

    def build(size: Size) -> Model:
        config = getattr(hub, f"{kind}Config")(num_labels=size.classes, **choose(size))
        head = getattr(hub, f"{kind}ForImageClassification")
        return from_config(head, config, pixel_values=size.images(), labels=size.labels())

    return build


def _patches(**extra: Any) -> Choose:
    """The names of vision transformers of one scale."""

    def choose(size: Size) -> dict[str, Any]:
        return {
            "hidden_size": size.width,
            "num_hidden_layers": size.layers,
            "num_attention_heads": size.heads,
            "intermediate_size": 2 * size.width + 16,
            "image_size": size.image,
            "patch_size": 8 if size.image < 64 else 16,
            **extra,
        }

    return choose


def _windows(**extra: Any) -> Choose:
    """The names of Swin."""

    def choose(size: Size) -> dict[str, Any]:
        shared = {"embed_dim": size.width // 2, "depths": [1, 2], "num_heads": [2, 4], "window_size": 4}
        return {**shared, "image_size": size.image, "patch_size": 4, **extra}

    return choose


def _stages(**extra: Any) -> Choose:
    """The names of ConvNeXt."""

    def choose(size: Size) -> dict[str, Any]:
        widths = [size.width // 4, size.width // 2, size.width]
        return {"hidden_sizes": widths, "depths": [1, 1, 2], "num_stages": 3, **extra}

    return choose


def _residual(layer: str) -> Choose:
    def choose(size: Size) -> dict[str, Any]:
        widths = [size.width // 2, size.width]
        return {"embedding_size": size.width // 4, "hidden_sizes": widths, "depths": [1, 2], "layer_type": layer}

    return choose


def _regnet(size: Size) -> dict[str, Any]:
    widths = [size.width // 2, size.width]
    return {"embedding_size": 16, "hidden_sizes": widths, "depths": [1, 1], "groups_width": 8, "layer_type": "y"}


def _levit(size: Size) -> dict[str, Any]:
    widths = [size.width, size.width + 16, size.width + 32]
    return {
        "image_size": 64,
        "hidden_sizes": widths,
        "num_attention_heads": [2, 3, 4],
        "depths": [1, 1, 1],
        "key_dim": [8, 8, 8],
        "down_ops": [["Subsample", 8, widths[0] // 8, 4, 2, 2], ["Subsample", 8, widths[1] // 8, 4, 2, 2]],
    }


def _pyramid(**extra: Any) -> Choose:
    """The names of PVT and SegFormer: four scales."""

    def choose(size: Size) -> dict[str, Any]:
        half = size.width // 2
        return {
            "hidden_sizes": [16, half, half + 16, size.width],
            "depths": [1, 1, 1, 1],
            "num_attention_heads": [1, 2, 2, 4],
            **extra,
        }

    return choose


def _levit_build(size: Size) -> Model:
    config = hub.LevitConfig(num_labels=size.classes, **_levit(size))
    images = torch.randn(size.batch, 3, 64, 64)
    return from_config(hub.LevitForImageClassification, config, pixel_values=images, labels=size.labels())


def _poolformer(size: Size) -> dict[str, Any]:
    half = size.width // 2
    return {"hidden_sizes": [16, half, half, size.width], "depths": [1, 1, 1, 1], "num_encoder_blocks": 4}


def _mobilevit(size: Size) -> dict[str, Any]:
    return {
        "image_size": size.image,
        "hidden_sizes": [size.width, size.width + 16, size.width + 32],
        "neck_hidden_sizes": [8, 16, 24, 32, 40, 48, 64],
        "num_attention_heads": 4,
    }


def _focalnet(size: Size) -> dict[str, Any]:
    widths = [size.width // 2, size.width]
    return {"image_size": size.image, "embed_dim": widths[0], "hidden_sizes": widths, "depths": [1, 1]}


def _bit(size: Size) -> dict[str, Any]:
    return {"embedding_size": 16, "hidden_sizes": [32, 2 * size.width], "depths": [1, 1], "num_groups": 8}


def _semantic(size: Size) -> torch.Tensor:
    return torch.randint(0, size.classes, (size.batch, size.image, size.image))


def _segformer(size: Size) -> Model:
    config = hub.SegformerConfig(num_labels=size.classes, decoder_hidden_size=size.width, **_pyramid()(size))
    head = hub.SegformerForSemanticSegmentation
    return from_config(head, config, pixel_values=size.images(), labels=_semantic(size))


def _dpt(size: Size) -> Model:
    config = hub.DPTConfig(
        num_labels=size.classes,
        backbone_out_indices=[0, 1, 2, 3],
        neck_hidden_sizes=[16, 16, 24, 32],
        fusion_hidden_size=size.width // 2,
        reassemble_factors=[4, 2, 1, 0.5],
        **{**_patches()(size), "num_hidden_layers": 4, "image_size": 64, "patch_size": 16},
    )
    images = torch.randn(size.batch, 3, 64, 64)
    return from_config(hub.DPTForDepthEstimation, config, pixel_values=images)


def _upernet(size: Size) -> Model:
    widths = [16, size.width // 2, size.width, size.width]
    backbone = hub.ConvNextConfig(
        hidden_sizes=widths, depths=[1, 1, 1, 1], out_features=["stage1", "stage2", "stage3", "stage4"]
    )
    config = hub.UperNetConfig(
        backbone_config=backbone,
        num_labels=size.classes,
        hidden_size=32,
        auxiliary_in_channels=size.width,
        auxiliary_channels=24,
    )
    images, labels = torch.randn(size.batch, 3, 64, 64), torch.randint(0, size.classes, (size.batch, 64, 64))
    return from_config(hub.UperNetForSemanticSegmentation, config, pixel_values=images, labels=labels)


def _resnet_backbone(size: Size, stages: tuple[str, ...]) -> Any:
    widths = [16, 24, 32, size.width]
    return hub.ResNetConfig(
        embedding_size=16, hidden_sizes=widths, depths=[1, 1, 1, 1], layer_type="basic", out_features=list(stages)
    )


def _detector(kind: str, stages: tuple[str, ...] = ("stage4",), **extra: Any) -> Build:
    """A detector with a transformer on top of a ResNet; it is shown boxes without matching them to objects."""

    def build(size: Size) -> Model:
        width = 32 * (1 + size.width // 32)
        config = getattr(hub, f"{kind}Config")(
            use_timm_backbone=False,
            use_pretrained_backbone=False,
            backbone=None,
            backbone_config=_resnet_backbone(size, stages),
            num_queries=12,
            d_model=width,
            encoder_layers=1,
            decoder_layers=2,
            encoder_attention_heads=size.heads,
            decoder_attention_heads=size.heads,
            encoder_ffn_dim=2 * size.width,
            decoder_ffn_dim=2 * size.width,
            num_labels=size.classes,
            **extra,
        )
        model = getattr(hub, f"{kind}ForObjectDetection")
        return from_config(model, config, pixel_values=torch.randn(size.batch, 3, 64, 64))

    return build


def _yolos(size: Size) -> Model:
    chosen = _patches(num_detection_tokens=10)(size)
    chosen["image_size"] = [size.image, size.image]
    config = hub.YolosConfig(num_labels=size.classes, **chosen)
    return from_config(hub.YolosForObjectDetection, config, pixel_values=size.images())


def _masks(size: Size) -> Model:
    width = 32 * (1 + size.width // 32)
    backbone = hub.SwinConfig(
        image_size=64,
        patch_size=4,
        embed_dim=16,
        depths=[1, 1, 1, 1],
        num_heads=[2, 2, 4, 4],
        window_size=2,
        out_features=["stage1", "stage2", "stage3", "stage4"],
    )
    config = hub.Mask2FormerConfig(
        backbone_config=backbone,
        num_labels=size.classes,
        feature_size=width,
        mask_feature_size=width,
        hidden_dim=width,
        encoder_feedforward_dim=48,
        dim_feedforward=64,
        encoder_layers=1,
        decoder_layers=2,
        num_attention_heads=size.heads,
        num_queries=10,
        train_num_points=64,
    )
    masks = [torch.randint(0, 2, (3, 64, 64)).float() for _ in range(size.batch)]
    classes = [torch.randint(0, size.classes, (3,)) for _ in range(size.batch)]
    images = torch.randn(size.batch, 3, 64, 64)
    return from_config(
        hub.Mask2FormerForUniversalSegmentation,
        config,
        pixel_values=images,
        mask_labels=masks,
        class_labels=classes,
    )


def _clip(size: Size) -> Model:
    shared = {
        "hidden_size": size.width,
        "num_hidden_layers": size.layers,
        "num_attention_heads": size.heads,
        "intermediate_size": 2 * size.width,
        "projection_dim": 24,
    }
    config = hub.CLIPConfig(
        text_config={**shared, "vocab_size": size.words, "max_position_embeddings": 64, "eos_token_id": 2},
        vision_config={**shared, "image_size": size.image, "patch_size": 16},
        projection_dim=24,
    )
    return from_config(hub.CLIPModel, config, input_ids=size.tokens(), pixel_values=size.images(), return_loss=True)


def _masked_autoencoder(size: Size) -> Model:
    config = hub.ViTMAEConfig(
        decoder_hidden_size=32,
        decoder_num_hidden_layers=1,
        decoder_num_attention_heads=4,
        decoder_intermediate_size=64,
        **_patches()(size),
    )
    return from_config(hub.ViTMAEForPreTraining, config, pixel_values=size.images())


VISION = tuple(
    Recipe(name=name, build=build, images=True)
    for name, build in (
        ("vit", _classifier("ViT", _patches())),
        ("deit", _classifier("DeiT", _patches())),
        ("beit", _classifier("Beit", _patches())),
        ("dinov2", _classifier("Dinov2", _patches())),
        ("swin", _classifier("Swin", _windows())),
        ("swinv2", _classifier("Swinv2", _windows())),
        ("convnext", _classifier("ConvNext", _stages())),
        ("convnextv2", _classifier("ConvNextV2", _stages())),
        ("resnet-basic", _classifier("ResNet", _residual("basic"))),
        ("resnet-bottleneck", _classifier("ResNet", _residual("bottleneck"))),
        ("regnet", _classifier("RegNet", _regnet)),
        ("mobilenet-v1", _classifier("MobileNetV1", lambda size: {"depth_multiplier": 0.125 + size.width / 640})),
        ("mobilenet-v2", _classifier("MobileNetV2", lambda size: {"depth_multiplier": 0.125 + size.width / 640})),
        (
            "efficientnet",
            _classifier(
                "EfficientNet",
                lambda size: {
                    "width_coefficient": 0.1 + size.width / 320,
                    "depth_coefficient": 0.3,
                    "hidden_dim": 128 + 4 * size.width,
                    "image_size": size.image,
                },
            ),
        ),
        ("levit", _levit_build),
        ("pvt", _classifier("Pvt", lambda size: {**_pyramid()(size), "image_size": size.image})),
        ("pvt-v2", _classifier("PvtV2", lambda size: {**_pyramid()(size), "image_size": size.image})),
        ("poolformer", _classifier("PoolFormer", _poolformer)),
        ("mobilevit", _classifier("MobileViT", _mobilevit)),
        ("focalnet", _classifier("FocalNet", _focalnet)),
        ("bit", _classifier("Bit", _bit)),
        ("segformer", _segformer),
        ("dpt", _dpt),
        ("upernet", _upernet),
        ("detr", _detector("Detr")),
        ("conditional-detr", _detector("ConditionalDetr")),
        (
            "deformable-detr",
            _detector(
                "DeformableDetr", ("stage2", "stage3", "stage4"), num_feature_levels=3, disable_custom_kernels=True
            ),
        ),
        ("yolos", _yolos),
        ("mask2former", _masks),
        ("clip", _clip),
        ("vit-mae", _masked_autoencoder),
    )
)
