"""The models of bench/step_models.cpp for PyTorch: the same shapes, parameters in the same order, the same batches' sizes."""

import torch
from torch import nn

VOCABULARY, CONTEXT, WIDTH, LAYERS, HEADS = 256, 64, 320, 8, 5


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.queries_keys_values, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.queries_keys_values(self.norm_1(x)).view(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(parts[0], parts[1], parts[2], is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(nn.functional.gelu(self.up(self.norm_2(x))))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.place = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, text):
        x = self.token(text) + self.place(torch.arange(text.size(1)))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Shortcut(nn.Module):
    def __init__(self, into, out, stride):
        super().__init__()

        def convolution(channels_in, channels_out, size, step):
            return nn.Conv2d(channels_in, channels_out, size, step, size // 2, bias=False)

        self.body = nn.Sequential(convolution(into, out, 3, stride), nn.BatchNorm2d(out), nn.ReLU(),
                                  convolution(out, out, 3, 1), nn.BatchNorm2d(out))
        self.past = nn.Sequential(convolution(into, out, 1, stride), nn.BatchNorm2d(out))

    def forward(self, x):
        return torch.relu(self.body(x) + self.past(x))


def gpt():
    text = torch.randint(VOCABULARY, (4, CONTEXT + 1))

    def loss(model):
        logits = model(text[:, :CONTEXT])
        return nn.functional.cross_entropy(logits.reshape(-1, VOCABULARY), text[:, 1:].reshape(-1))

    return Gpt(), loss


def cnn():
    model = nn.Sequential(Shortcut(3, 64, 1), Shortcut(64, 128, 2), Shortcut(128, 256, 2), Shortcut(256, 256, 2),
                          nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 10))
    pictures, kinds = torch.randn(8, 3, 32, 32), torch.randint(10, (8,))
    return model, lambda model: nn.functional.cross_entropy(model(pictures), kinds)


def mlp():
    layers = []
    for _ in range(500):
        layers += [nn.Linear(32, 32), nn.Tanh()]
    x = torch.randn(16, 32)
    return nn.Sequential(*layers), lambda model: model(x).square().mean()


MODELS = {"gpt": gpt, "cnn": cnn, "mlp": mlp}
