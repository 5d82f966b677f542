"""parameters_of.py REPORT DEVICES STATES LEAST MOST: the parameters of the network, by what a rank stores of them (all cut as far as
that goes) and of STATES tensors like each, lie between LEAST and MOST millions, and compiling took less than a minute."""
import json
import sys

report = json.load(open(sys.argv[1]))
devices, states, least, most = map(float, sys.argv[2:])
millions = report["memory"]["parameter_bytes"] / 4 / (1 + states) * devices / 1e6
assert least <= millions <= most, millions
assert sum(report["timing"].values()) < 60, report["timing"]
assert len(report["collectives"]) > 0
print(f"{millions:.0f} million parameters on {devices:.0f} devices")
