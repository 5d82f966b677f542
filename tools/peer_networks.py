"""Networks of PyTorch's that benchmarks compare with: those of examples/ in its own words. Without PyTorch they are names only."""
try:
    import torch
    import torch.nn.functional as F
except ImportError:
    torch = None


class Bottleneck(*([torch.nn.Module] if torch else [])):
    def __init__(self, inputs, channels, stride):
        super().__init__()
        nn = torch.nn
        self.body = nn.Sequential(
            nn.Conv2d(inputs, channels, 1, bias=False), nn.BatchNorm2d(channels), nn.ReLU(),
            nn.Conv2d(channels, channels, 3, stride, 1, bias=False), nn.BatchNorm2d(channels), nn.ReLU(),
            nn.Conv2d(channels, 4 * channels, 1, bias=False), nn.BatchNorm2d(4 * channels))
        same = inputs == 4 * channels and stride == 1
        self.side = nn.Identity() if same else nn.Sequential(nn.Conv2d(inputs, 4 * channels, 1, stride, bias=False), nn.BatchNorm2d(4 * channels))

    def forward(self, x):
        return F.relu(self.body(x) + self.side(x))


class ResNet50(*([torch.nn.Module] if torch else [])):
    def __init__(self, classes=1000):
        super().__init__()
        nn = torch.nn
        layers, inputs = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
        for channels, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
            for i in range(blocks):
                layers.append(Bottleneck(inputs, channels, stride if i == 0 else 1))
                inputs = 4 * channels
        self.layers, self.fc = nn.Sequential(*layers), nn.Linear(inputs, classes)

    def forward(self, image, label):
        return F.cross_entropy(self.fc(self.layers(image).mean((2, 3))), label)
