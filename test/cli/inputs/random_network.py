"""Small networks at random: products whose parameters may be shared, sums, softmax and pointwise operators, perhaps a repeat."""
import random


def network(seed, rounds=0, mode="optimal"):
    """The text of a network with 4 to 11 operators, named op1, op2, ..., loss and, of the repeat, mm.{i}, act.{i}, add.{i}; and its mode."""
    draw = random.Random(seed)
    rows, columns = draw.choice([8, 12, 16, 64, 96, 256, 1000]), draw.choice([16, 24, 48, 64, 256, 1024])
    parameters, lines, values = [], [], ["%x"]

    def parameter():
        if not parameters or draw.random() >= 0.25:
            parameters.append(f"%w{len(parameters) + 1}")
            return parameters[-1]
        return draw.choice(parameters)

    def add(call):
        values.append(f"%v{len(values)}")
        lines.append(f'  {values[-1]} = {call} @ "op{len(values) - 1}"')

    add(f"MatMul(%x, {parameter()})")
    for _ in range(draw.randint(3, 7)):
        value = draw.choice(values[-3:])
        add(draw.choice([f"MatMul({value}, {parameter()})", f"MatMul({value}, {parameter()})", f"Add({value}, {draw.choice(values)})", f"Softmax({value})",
                         f"Tanh({value})", f"ReLU({value})"]))
    last = values[-1]
    if rounds:
        lines.append(f"""  %rep = repeat i in 0..{rounds} with %t = {last} {{
    param %w: f32[{columns}, {columns}] = Normal(0.05)
    %m = MatMul(%t, %w) @ "mm.{{i}}"
    %q = Tanh(%m) @ "act.{{i}}"
    %z = Add(%q, %t) @ "add.{{i}}"
    yield %z
  }}""")
        last = "%rep"
    text = "\n".join(lines)
    for value in values[1:-1]:  # what nothing reads
        if f"{value}," not in text and f"{value})" not in text:
            add(f"Add({last}, {value})")
            last = values[-1]
    declared = "\n".join(f"  param {name}: f32[{columns}, {columns}] = Normal(0.05)" for name in parameters)
    text = "\n".join(lines)
    return f"""network n(%x: f32[{rows}, {columns}], %label: f32[{rows}, {columns}]) {{
{declared}
{text}
  %loss = MSELoss({last}, %label) @ "loss"
  return loss: %loss
}}
dataset {{source: Random(seed: 1), columns: {{x: uniform, label: uniform}}, steps: 2}}
train {{optimizer: {draw.choice(["Adam(learning_rate: 0.01)", "SGD(learning_rate: 0.1)"])}, minimize: loss}}
context {{search_mode: {mode}}}
"""
