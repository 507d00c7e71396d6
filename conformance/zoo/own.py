"""Models that are written out here: those of other fields than language, and classics of vision."""

import torch
from recipe import Recipe, Step
from sizes import Size
from torch import nn
from torch.nn import functional as F

Model = tuple[nn.Module, Step]


def _block(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True))


class _UNet(nn.Module):
    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.down = nn.ModuleList([_block(3, width), _block(width, 2 * width)])
        self.middle = _block(2 * width, 4 * width)
        self.up = nn.ModuleList([_block(6 * width, 2 * width), _block(3 * width, width)])
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = []
        for layer in self.down:
            x = layer(x)
            kept.append(x)
            x = F.max_pool2d(x, 2)
        x = self.middle(x)
        for layer in self.up:
            x = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
            x = layer(torch.cat([x, kept.pop()], dim=1))
        return self.head(x)


def _unet(size: Size) -> Model:
    model, images = _UNet(size.width // 4, size.classes), size.images()
    labels = torch.randint(0, size.classes, (size.batch, size.image, size.image))
    return model, lambda: F.cross_entropy(model(images), labels)


class _Recurrent(nn.Module):
    def __init__(self, kind: type[nn.RNNBase], size: Size) -> None:
        super().__init__()
        self.embedding = nn.Embedding(size.words, size.width)
        self.layers = kind(size.width, size.width + 8, num_layers=2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * size.width + 16, size.words)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        hidden, _ = self.layers(self.embedding(tokens))
        return self.head(hidden)


def _recurrent(kind: type[nn.RNNBase], size: Size) -> Model:
    model, tokens = _Recurrent(kind, size), size.tokens(6)
    return model, lambda: F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())


class _Generator(nn.Module):
    def __init__(self, size: Size) -> None:
        super().__init__()
        self.start = nn.Linear(32, size.width * 16)
        self.width = size.width
        self.layers = nn.Sequential(
            nn.ConvTranspose2d(size.width, size.width // 2, 4, stride=2, padding=1),
            nn.BatchNorm2d(size.width // 2),
            nn.ReLU(),
            nn.ConvTranspose2d(size.width // 2, 3, 4, stride=2, padding=1),
            nn.Tanh(),
        )

    def forward(self, noise: torch.Tensor) -> torch.Tensor:
        return self.layers(self.start(noise).view(-1, self.width, 4, 4))


def _dcgan(size: Size) -> Model:
    generator = _Generator(size)
    critic = nn.Sequential(
        nn.Conv2d(3, size.width // 2, 4, stride=2, padding=1),
        nn.LeakyReLU(0.2),
        nn.Conv2d(size.width // 2, size.width, 4, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(size.width),
        nn.LeakyReLU(0.2),
        nn.Flatten(),
        nn.Linear(16 * size.width, 1),
    )
    model = nn.ModuleList([generator, critic])
    noise, real = torch.randn(size.batch, 32), torch.randn(size.batch, 3, 16, 16)

    def step() -> torch.Tensor:
        fake = critic(generator(noise))
        truth = critic(real)
        return F.binary_cross_entropy_with_logits(fake, torch.zeros_like(fake)) + (
            F.binary_cross_entropy_with_logits(truth, torch.ones_like(truth))
        )

    return model, step


class _Recommender(nn.Module):
    def __init__(self, size: Size) -> None:
        super().__init__()
        self.tables = nn.ModuleList([nn.Embedding(size.words + 10 * k, 16) for k in range(4)])
        self.dense = nn.Sequential(nn.Linear(13, size.width), nn.ReLU(), nn.Linear(size.width, 16), nn.ReLU())
        self.top = nn.Sequential(nn.Linear(26, size.width), nn.ReLU(), nn.Linear(size.width, 1), nn.Sigmoid())
        self.register_buffer("pairs", torch.tril_indices(5, 5, offset=-1), persistent=False)

    def forward(self, dense: torch.Tensor, sparse: torch.Tensor) -> torch.Tensor:
        first = self.dense(dense)
        rows = torch.stack([first, *(table(sparse[:, k]) for k, table in enumerate(self.tables))], dim=1)
        products = torch.bmm(rows, rows.transpose(1, 2))
        return self.top(torch.cat([first, products[:, self.pairs[0], self.pairs[1]]], dim=1))


def _dlrm(size: Size) -> Model:
    model, rows = _Recommender(size), 16 * size.batch
    dense, sparse = torch.randn(rows, 13), torch.randint(0, size.words, (rows, 4))
    clicks = torch.randint(0, 2, (rows, 1)).float()
    return model, lambda: F.binary_cross_entropy(model(dense, sparse), clicks)


def _pointnet(size: Size) -> Model:
    points = nn.Sequential(
        nn.Conv1d(3, size.width, 1), nn.BatchNorm1d(size.width), nn.ReLU(), nn.Conv1d(size.width, 2 * size.width, 1)
    )
    head = nn.Sequential(nn.Linear(2 * size.width, size.width), nn.ReLU(), nn.Dropout(0.3), nn.Linear(size.width, 7))
    model, cloud = nn.ModuleList([points, head]), torch.randn(size.batch, 3, 4 * size.length)
    labels = torch.randint(0, 7, (size.batch,))
    return model, lambda: F.nll_loss(F.log_softmax(head(points(cloud).amax(dim=-1)), dim=-1), labels)


class _Autoencoder(nn.Module):
    def __init__(self, size: Size) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(size.image, 2 * size.width), nn.ELU(), nn.Linear(2 * size.width, 32))
        self.decoder = nn.Sequential(
            nn.Linear(16, 2 * size.width), nn.Softplus(), nn.Linear(2 * size.width, size.image)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mean, log_variance = self.encoder(x).chunk(2, dim=-1)
        drawn = mean + torch.exp(0.5 * log_variance) * torch.randn_like(mean)
        divergence = -0.5 * (1 + log_variance - mean.pow(2) - log_variance.exp()).sum(dim=-1).mean()
        return F.mse_loss(self.decoder(drawn), x) + divergence


def _vae(size: Size) -> Model:
    model, rows = _Autoencoder(size), torch.randn(8 * size.batch, size.image)
    return model, lambda: model(rows)


class _Denoiser(nn.Module):
    """Group norms, sinusoids of the time, and attention over pixels."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.time = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))
        self.first = nn.Conv2d(3, width, 3, padding=1)
        self.norm = nn.GroupNorm(8, width)
        self.qkv = nn.Conv2d(width, 3 * width, 1)
        self.last = nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        steps = torch.arange(self.width // 2, device=x.device) / (self.width // 2)
        angles = time[:, None] * torch.exp(-9.2 * steps)[None]
        told = self.time(torch.cat([angles.sin(), angles.cos()], dim=-1))
        x = self.first(x) + told[:, :, None, None]
        n, c, h, w = x.shape
        query, key, value = self.qkv(F.silu(self.norm(x))).view(n, 3, c, h * w).unbind(1)
        weights = torch.softmax(query.transpose(1, 2) @ key / c**0.5, dim=-1)
        return self.last(x + (value @ weights.transpose(1, 2)).view(n, c, h, w))


def _diffusion(size: Size) -> Model:
    model, images = _Denoiser(size.width), torch.randn(size.batch, 3, 16, 16)
    time = torch.rand(size.batch)

    def step() -> torch.Tensor:
        noise = torch.randn_like(images)
        kept = torch.cos(time * 1.57)[:, None, None, None]
        noisy = kept * images + torch.sqrt(1 - kept**2) * noise
        return F.smooth_l1_loss(model(noisy, time), noise)

    return model, step


def _vgg(size: Size) -> Model:
    width = size.width // 2
    layers = [
        _block(3, width),
        nn.MaxPool2d(2),
        _block(width, 2 * width),
        nn.MaxPool2d(2),
        _block(2 * width, size.width),
    ]
    model = nn.Sequential(
        *layers,
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(4 * size.width, size.width),
        nn.Hardswish(),
        nn.Dropout(0.5),
        nn.Linear(size.width, size.classes),
    )
    images, labels = size.images(), size.labels()
    return model, lambda: F.cross_entropy(model(images), labels, label_smoothing=0.1)


class _Dense(nn.Module):
    def __init__(self, size: Size) -> None:
        super().__init__()
        grow = size.width // 4
        self.first = nn.Conv2d(3, grow, 3, stride=2, padding=1)
        self.layers = nn.ModuleList([_block(grow * (k + 1), grow) for k in range(4)])
        self.head = nn.Linear(5 * grow, size.classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = [self.first(x)]
        for layer in self.layers:
            found.append(layer(torch.cat(found, dim=1)))
        return self.head(F.avg_pool2d(torch.cat(found, dim=1), 4).mean(dim=(2, 3)))


def _densenet(size: Size) -> Model:
    model, images, labels = _Dense(size), size.images(), size.labels()
    return model, lambda: F.cross_entropy(model(images), labels)


def _super_resolution(size: Size) -> Model:
    model = nn.Sequential(
        nn.Conv2d(3, size.width, 5, padding=2),
        nn.PReLU(),
        nn.Conv2d(size.width, 12, 3, padding=1),
        nn.PixelShuffle(2),
        nn.Hardtanh(),
    )
    small, large = torch.randn(size.batch, 3, 24, 24), torch.randn(size.batch, 3, 48, 48)
    return model, lambda: F.l1_loss(model(small), large)


def _video(size: Size) -> Model:
    model = nn.Sequential(
        nn.Conv3d(3, 8, 3, padding=1),
        nn.BatchNorm3d(8),
        nn.ReLU(),
        nn.MaxPool3d(2),
        nn.Conv3d(8, size.width // 2, 3, padding=1, groups=2),
        nn.ReLU6(),
        nn.AdaptiveAvgPool3d(1),
        nn.Flatten(),
        nn.Linear(size.width // 2, size.classes),
    )
    clips, labels = torch.randn(size.batch, 3, 6, 24, 24), size.labels()
    return model, lambda: F.cross_entropy(model(clips), labels)


class _Graph(nn.Module):
    """Two rounds of messages, summed over the edges' targets."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(12, size.width), nn.Linear(size.width, size.classes)

    def forward(self, nodes: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        for layer in (self.first, self.second):
            sent = layer(nodes)[edges[0]]
            nodes = torch.zeros(nodes.shape[0], sent.shape[1], dtype=sent.dtype).index_add(0, edges[1], sent)
            nodes = F.leaky_relu(nodes / nodes.norm(dim=-1, keepdim=True).clamp(min=1e-6))
        return nodes


def _graph(size: Size) -> Model:
    model, nodes = _Graph(size), torch.randn(3 * size.length, 12)
    edges = torch.randint(0, 3 * size.length, (2, 5 * size.length))
    labels = torch.randint(0, size.classes, (3 * size.length,))
    return model, lambda: F.cross_entropy(model(nodes, edges), labels)


def _temporal(size: Size) -> Model:
    model = nn.Sequential(
        nn.Conv1d(6, size.width, 3, padding=2, dilation=2),
        nn.GroupNorm(4, size.width),
        nn.GELU(approximate="tanh"),
        nn.Conv1d(size.width, size.width, 3, padding=4, dilation=4, groups=4),
        nn.Mish(),
        nn.MaxPool1d(2),
        nn.AdaptiveAvgPool1d(1),
        nn.Flatten(),
        nn.Linear(size.width, 1),
    )
    series, target = torch.randn(size.batch, 6, 2 * size.length), torch.randn(size.batch, 1)
    return model, lambda: F.huber_loss(model(series), target)


def _field(size: Size) -> Model:
    model = nn.Sequential(
        nn.Linear(30, size.width), nn.ReLU(), nn.Linear(size.width, size.width), nn.ReLU(), nn.Linear(size.width, 4)
    )
    rays, seen = torch.rand(8 * size.batch, 24, 3), torch.rand(8 * size.batch, 3)

    def step() -> torch.Tensor:
        waves = torch.cat([f(rays * 2.0**k) for k in range(5) for f in (torch.sin, torch.cos)], dim=-1)
        out = model(waves)
        colour, density = torch.sigmoid(out[..., :3]), F.relu(out[..., 3])
        opaque = 1 - torch.exp(-density * 0.1)
        through = torch.cumprod(torch.cat([torch.ones_like(opaque[:, :1]), 1 - opaque + 1e-10], dim=-1), dim=-1)
        return F.mse_loss(((opaque * through[:, :-1])[..., None] * colour).sum(dim=1), seen)

    return model, step


def _siamese(size: Size) -> Model:
    model = nn.Sequential(nn.Linear(40, size.width), nn.Tanh(), nn.Linear(size.width, 16))
    anchors, others = torch.randn(6 * size.batch, 40), torch.randn(6 * size.batch, 40)

    def step() -> torch.Tensor:
        a, b = F.normalize(model(anchors), dim=-1), F.normalize(model(others), dim=-1)
        scores = a @ b.T / 0.07
        return F.cross_entropy(scores, torch.arange(len(a))) + 0.1 * torch.cdist(a, b).mean()

    return model, step


OWN = (
    Recipe(name="unet", build=_unet, images=True),
    Recipe(name="lstm", build=lambda size: _recurrent(nn.LSTM, size)),
    Recipe(name="gru", build=lambda size: _recurrent(nn.GRU, size)),
    Recipe(name="dcgan", build=_dcgan, images=True),
    Recipe(name="dlrm", build=_dlrm),
    Recipe(name="pointnet", build=_pointnet),
    Recipe(name="vae", build=_vae),
    Recipe(name="diffusion", build=_diffusion, images=True),
    Recipe(name="vgg", build=_vgg, images=True),
    Recipe(name="densenet", build=_densenet, images=True),
    Recipe(name="super-resolution", build=_super_resolution, images=True),
    Recipe(name="video", build=_video),
    Recipe(name="graph", build=_graph),
    Recipe(name="temporal-convolution", build=_temporal),
    Recipe(name="radiance-field", build=_field),
    Recipe(name="siamese", build=_siamese),
)
