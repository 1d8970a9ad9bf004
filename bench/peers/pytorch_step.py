"""Whole training steps in plain PyTorch, as `trireme bench step` measures them.

    pytorch_step.py SOCKET MODEL BATCH LENGTH THREADS DTYPE

Obeys the same lines as our own worker (src/trireme/cli/torch/bench/step_worker.cpp) and builds the same models.
"""
import math
import os
import socket
import struct
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

VOCABULARY = 256

if int(torch.__version__.split(".")[0]) < 2:
    # Its oneDNN dies in bf16 on CPUs with AMX.
    os.environ.setdefault("DNNL_MAX_CPU_ISA", "AVX512_CORE_BF16")


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1, self.fc2, self.fc3 = nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2).flatten(1)
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))


class Padded(nn.Module):
    """The shortcut without parameters: every second pixel, zeros for the new channels."""

    def __init__(self, new):
        super().__init__()
        self.new = new

    def forward(self, x):
        return F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.new // 2, self.new - self.new // 2))


class Block(nn.Module):
    def __init__(self, before, width, stride, padded):
        super().__init__()
        self.conv1 = nn.Conv2d(before, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.down = None
        if stride != 1 or before != width:
            self.down = Padded(width - before) if padded else nn.Sequential(
                nn.Conv2d(before, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        y = self.bn2(self.conv2(y))
        y += x if self.down is None else self.down(x)
        return F.relu(y, inplace=True)


class ResNet(nn.Module):
    """With the stem for small images: 3x3, stride 1, no pooling."""

    def __init__(self, widths, blocks, padded):
        super().__init__()
        self.conv1 = nn.Conv2d(3, widths[0], 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(widths[0])
        layers, before = [], widths[0]
        for width in widths:
            for k in range(blocks):
                layers.append(Block(before, width, 2 if k == 0 and width != widths[0] else 1, padded))
                before = width
        self.layers = nn.Sequential(*layers)
        self.fc = nn.Linear(before, 10)

    def forward(self, x):
        x = self.layers(F.relu(self.bn1(self.conv1(x)), inplace=True))
        return self.fc(F.adaptive_avg_pool2d(x, 1).flatten(1))


class Vgg11(nn.Sequential):
    def __init__(self):
        layers, before = [], 3
        for width in (64, 0, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0):
            if width == 0:
                layers.append(nn.MaxPool2d(2))
                continue
            layers += [nn.Conv2d(before, width, 3, padding=1), nn.ReLU(inplace=True)]
            before = width
        super().__init__(*layers, nn.Flatten(), nn.Linear(512, 10))


class LstmLm(nn.Module):
    def __init__(self, width=256, layers=2):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, width)
        self.lstm = nn.LSTM(width, width, layers, batch_first=True, dropout=0.2)
        self.drop = nn.Dropout(0.2)
        self.bias = nn.Parameter(torch.zeros(VOCABULARY))

    def forward(self, x):
        y = self.lstm(self.drop(self.embedding(x)))[0]
        return F.linear(self.drop(y), self.embedding.weight, self.bias)


class GptBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.attended = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.drop = nn.Dropout(0.1)

    def attend(self, x):
        n, length, width = x.shape
        q, k, v = (t.view(n, length, self.heads, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, dim=-1))
        if hasattr(F, "scaled_dot_product_attention"):
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=0.1 if self.training else 0.0)
        else:
            scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
            future = torch.ones(length, length, dtype=torch.bool).triu(1)
            y = self.drop(torch.softmax(scores.masked_fill(future, -math.inf), -1)) @ v
        return y.transpose(1, 2).reshape(n, length, width)

    def forward(self, x):
        x = x + self.drop(self.attended(self.attend(self.norm1(x))))
        return x + self.drop(self.down(F.gelu(self.up(self.norm2(x)))))


class Gpt(nn.Module):
    def __init__(self, length, width=256, heads=4, layers=4):
        super().__init__()
        self.token, self.position = nn.Embedding(VOCABULARY, width), nn.Embedding(length, width)
        self.drop = nn.Dropout(0.1)
        self.blocks = nn.Sequential(*(GptBlock(width, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        x = self.drop(self.token(x) + self.position.weight[:x.shape[1]])
        return F.linear(self.norm(self.blocks(x)), self.token.weight)


def mlp(width):
    return nn.Sequential(nn.Flatten(), nn.Linear(784, width), nn.ReLU(inplace=True), nn.Linear(width, width),
                         nn.ReLU(inplace=True), nn.Linear(width, 10))


GREY, COLOUR = (1, 28, 28), (3, 32, 32)
MODELS = {
    "lenet": (lambda length: LeNet(), GREY),
    "mlp": (lambda length: mlp(512), GREY),
    "mlp-wide": (lambda length: mlp(2048), GREY),
    "vgg11": (lambda length: Vgg11(), COLOUR),
    "resnet18": (lambda length: ResNet((64, 128, 256, 512), 2, False), COLOUR),
    "resnet32": (lambda length: ResNet((16, 32, 64), 5, True), COLOUR),
    "lstm-lm": (lambda length: LstmLm(), None),
    "gpt-small": (Gpt, None),
}


def main():
    path, name, batch, length, threads, dtype = sys.argv[1:]
    batch, length, threads = int(batch), int(length), int(threads)
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    make, shape = MODELS[name]
    model = make(length)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)
    x = torch.randint(VOCABULARY, (batch, length)) if shape is None else torch.randn(batch, *shape)
    y = torch.randint(VOCABULARY, (batch, length)) if shape is None else torch.arange(batch) % 10

    def step():
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype == "bf16"):
            scores = model(x)
        F.cross_entropy(scores.float().flatten(0, -2), y.flatten()).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    wire = socket.socket(socket.AF_UNIX)
    wire.connect(path)
    wire.sendall(f"hello 0 PyTorch {torch.__version__}\n".encode())
    for line in wire.makefile("rb"):
        words = line.decode().split()
        if words[0] == "quit":
            wire.sendall(b"ok\n")
            break
        _, _, warmup, iterations = words
        for _ in range(int(warmup)):
            step()
        times = []
        for _ in range(int(iterations)):
            begin = time.perf_counter()
            step()
            times.append(1e6 * (time.perf_counter() - begin))
        wire.sendall(f"ok {len(times)} 0\n".encode() + struct.pack(f"{len(times)}f", *times))
    os._exit(0)


main()
