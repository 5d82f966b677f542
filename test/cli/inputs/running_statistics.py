"""Running statistics of BatchNorm after one step, and images normalised by them:
running_statistics.py IMAGE MEAN VARIANCE [NORMALISED]; files are .npy."""
import math
import struct
import sys


def read(path):
    with open(path, "rb") as file:
        data = file.read()
    header = 10 + struct.unpack("<H", data[8:10])[0]
    return struct.unpack(f"<{(len(data) - header) // 4}f", data[header:])


def close(a, b):
    return abs(a - b) <= 1e-5 * max(1, abs(b))


image, mean, variance = (read(path) for path in sys.argv[1:4])
channels, plane = len(mean), 10
batch = len(image) // (channels * plane)
for c in range(channels):
    elements = [image[(n * channels + c) * plane + i] for n in range(batch) for i in range(plane)]
    m = sum(elements) / len(elements)
    v = sum((x - m) ** 2 for x in elements) / (len(elements) - 1)
    if not close(mean[c], 0.1 * m) or not close(variance[c], 0.9 + 0.1 * v):
        sys.exit(f"channel {c}: {mean[c]}, {variance[c]} instead of {0.1 * m}, {0.9 + 0.1 * v}")
if len(sys.argv) > 4:
    for i, (x, y) in enumerate(zip(image, read(sys.argv[4]))):
        c = i // plane % channels
        if not close(y, (x - mean[c]) / math.sqrt(variance[c] + 1e-5)):
            sys.exit(f"element {i}: {y} is not {x} normalised by the running statistics")
