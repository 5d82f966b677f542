"""Ends a file of strategies behind its second operator."""

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
at = operators = 0
while operators < 2:
    tag, at = varint(data, at)
    value, at = varint(data, at)
    if tag & 7 == 2:  # a length, which bytes follow
        at += value
    operators += tag >> 3 == 2
pathlib.Path(sys.argv[2]).write_bytes(data[:at])
