"""Prints a network in which so many operators read one value and wait for sums far behind it."""
import sys

readers = int(sys.argv[1])
print("network n(%x: f32[4096, 2048], %y: f32[4096, 2048]) {\n  param %w: f32[2048, 2048] = Normal(0.02)\n  %a = MatMul(%x, %w)")
for i in range(readers):
    print(f"  %t{i} = {['Tanh', 'Sigmoid', 'ReLU'][i % 3]}(%a)")
print("  %s0 = Add(%t0, %a)")
for i in range(1, readers):
    print(f"  %s{i} = Add(%s{i - 1}, %t{i})")
print(f"  %loss = MSELoss(%s{readers - 1}, %y)\n  return loss: %loss\n}}")
print("train {optimizer: Adam(learning_rate: 0.01), minimize: loss, epochs: 1}")
