"""Ends a file of strategies behind its second operator, or behind its first parameter where a third argument stands."""

import pathlib
import sys


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


data = pathlib.Path(sys.argv[1]).read_bytes()
field, left = (3, 1) if sys.argv[3:] else (2, 2)
at = 0
while left > 0:
    tag, at = varint(data, at)
    value, at = varint(data, at)
    if tag & 7 == 2:  # a length, which bytes follow
        at += value
    left -= tag >> 3 == field
pathlib.Path(sys.argv[2]).write_bytes(data[:at])
