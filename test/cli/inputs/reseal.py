"""Changes a plan and seals it again, so that only the change is wrong: reseal.py IN OUT [--format N] [--replace A=B] [--truncate N]."""
import argparse
import hashlib
import struct

parser = argparse.ArgumentParser()
parser.add_argument("source")
parser.add_argument("target")
parser.add_argument("--format", type=int)
parser.add_argument("--replace", action="append", default=[], help="equally long words")
parser.add_argument("--truncate", type=int, default=0, help="bytes cut off the end of the content")
options = parser.parse_args()

with open(options.source, "rb") as file:
    data = file.read()
magic, version, content = data[:8], data[8:12], data[12:-32]
if options.format is not None:
    version = struct.pack("<I", options.format)
for pair in options.replace:
    old, new = (word.encode() for word in pair.split("="))
    assert len(old) == len(new)
    content = content.replace(old, new)
content = content[: len(content) - options.truncate]
sealed = magic + version + content
with open(options.target, "wb") as file:
    file.write(sealed + hashlib.sha256(sealed).digest())
