"""PyTorch's DistributedDataParallel over Gloo, as `trireme bench ddp` measures it.

    pytorch_ddp.py SOCKET RANK RANKS PORT MODEL BATCH THREADS

Obeys the same lines as our own worker (src/trireme/cli/torch/bench/ddp_worker.cpp) and builds the same models.
"""
import os
import socket
import struct
import sys
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel


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


class Block(nn.Module):
    def __init__(self, before, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(before, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.down = None
        if stride != 1 or before != width:
            self.down = nn.Sequential(nn.Conv2d(before, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + (x if self.down is None else self.down(x)))


class ResNet18(nn.Module):
    """With the stem for small images: 3x3, stride 1, no pooling."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        layers, before = [], 64
        for width, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
            layers += [Block(before, width, stride), Block(width, width, 1)]
            before = width
        self.layers = nn.Sequential(*layers)
        self.fc = nn.Linear(512, 10)

    def forward(self, x):
        x = self.layers(F.relu(self.bn1(self.conv1(x))))
        return self.fc(F.adaptive_avg_pool2d(x, 1).flatten(1))


def mlp(width):
    return nn.Sequential(nn.Flatten(), nn.Linear(784, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
                         nn.Linear(width, 10))


MODELS = {
    "lenet": (LeNet, (1, 28, 28)),
    "mlp": (lambda: mlp(512), (1, 28, 28)),
    "mlp-wide": (lambda: mlp(2048), (1, 28, 28)),
    "resnet18": (ResNet18, (3, 32, 32)),
}


def main():
    path, rank, ranks, port, name, batch, threads = sys.argv[1:]
    rank, ranks, batch, threads = int(rank), int(ranks), int(batch), int(threads)
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=ranks)
    make, shape = MODELS[name]
    bare = make()
    model = DistributedDataParallel(bare)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)
    x = torch.randn(batch, *shape)
    y = torch.arange(batch) % 10

    def run(mode):
        if mode == "step":
            F.cross_entropy(model(x), y).backward()
        else:
            F.cross_entropy(bare(x), y).backward() if ranks == 1 else quiet()
            if mode == "barrier":
                dist.barrier()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    def quiet():
        with model.no_sync():
            F.cross_entropy(model(x), y).backward()

    wire = socket.socket(socket.AF_UNIX)
    wire.connect(path)
    wire.sendall(f"hello {rank} PyTorch {torch.__version__}\n".encode())
    lines = wire.makefile("rb")
    for line in lines:
        words = line.decode().split()
        if words[0] == "quit":
            wire.sendall(b"ok\n")
            break
        _, mode, warmup, iterations = words
        for _ in range(int(warmup)):
            run(mode)
        dist.barrier()
        times = []
        for _ in range(int(iterations)):
            begin = time.perf_counter()
            run(mode)
            times.append(1e6 * (time.perf_counter() - begin))
        wire.sendall(f"ok {len(times)} 0\n".encode() + struct.pack(f"{len(times)}f", *times))
    os._exit(0)


main()
