"""is_bf16.py FILE.npy: every value of the f32 array is one that bf16 can hold."""
import struct
import sys

data = open(sys.argv[1], "rb").read()
length = struct.unpack("<H", data[8:10])[0]
assert b"'<f4'" in data[10 : 10 + length], data[10 : 10 + length]
words = struct.unpack(f"<{(len(data) - 10 - length) // 4}I", data[10 + length :])
assert words and all(word & 0xFFFF == 0 for word in words), "more digits than bf16 has"
assert len(set(words)) > 1, "all alike"
