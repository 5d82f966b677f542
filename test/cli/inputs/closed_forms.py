"""closed_forms.py EXAMPLES: what the search expects to move, against formulas that are derived by hand.

The machine of the test computes slowly enough that all devices share the work, and a byte takes a microsecond: strategies differ
in bytes alone. All formulas are bytes that a rank receives in a training step, of f32.
"""
import json
import subprocess
import sys

W = 4  # bytes of an element
SCALARS = 64  # sums of single numbers, such as the loss: a few bytes each
KINDS = ["AllReduce", "ReduceScatter", "AllGather", "AlltoAll", "CollectivePermute", "Exchange"]
checked = 0


def machine(flops_per_us):
    cost = {"alpha_us": 0, "hop_us": 0, "beta_us_per_byte": 1}
    json.dump({"name": "bytes", "source": "test", "flops_per_us": flops_per_us, "memory_bytes_per_us": 1e30, "launch_us": 0,
               "levels": [{"name": "any", "ranks": 0, "collectives": {kind: cost for kind in KINDS}}]}, open("bytes.json", "w"))


def explain(path, devices, *arguments):
    command = ["msc", "explain", path, "--devices", str(devices), "--machine", "bytes.json", "--json", *arguments]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, (command, run.stderr)
    return json.loads(run.stdout)


def network(inputs, body, *names):
    columns = ", ".join(name if ":" in name else f"{name}: uniform" for name in names)
    open("one.mir", "w").write(f"""network n({inputs}) {{
{body}
  return loss: %loss
}}
dataset {{source: Random(seed: 1), columns: {{{columns}}}, steps: 4}}
train {{optimizer: SGD(learning_rate: 0.2), minimize: loss, epochs: 1}}
context {{search_mode: optimal, dataset_strategy: full_batch}}
""")
    return "one.mir"


def moved(report):
    """What the price is made of; the plan has no more."""
    predicted = sum(c["bytes"] for c in report["search"]["collectives"])
    assert report["cost"]["communication_bytes"] <= predicted, (report["cost"], predicted)
    return predicted


def expect(what, found, formula, slack=SCALARS):
    global checked
    checked += 1
    assert 0 <= found - formula <= slack, (what, found, formula)


def pinned(a, b, c):
    return f"{{in_strategy: (({a}, {b}), ({b}, {c}))}}"


def divisions(n):
    return [(a, n // a) for a in range(1, n + 1) if n % a == 0]


def products():
    """V(a, b, c) = 2 w / n ((a - 1) K N + (b - 1) M N + (c - 1) M K) for rows cut in a, the contraction in b, columns in c."""
    machine(1e30)
    M, K, N = 96, 192, 48
    for n in (4, 8, 12, 16):
        for a, rest in divisions(n):
            for b, c in divisions(rest):
                report = explain(network(f"%label: f32[{M}, {N}]", f"""
  param %x: f32[{M}, {K}] = Normal(0.01)
  param %w: f32[{K}, {N}] = Normal(0.01)
  %y = MatMul(%x, %w) @ "mm" {pinned(a, b, c)}
  %loss = MSELoss(%y, %label)""", "label"), n)
                expect(("product", n, a, b, c), moved(report), 2 * W / n * ((a - 1) * K * N + (b - 1) * M * N + (c - 1) * M * K))


def two_layers():
    """Columns then rows by t, the batch by d: 4 w H / n (F (d - 1) + M (t - 1)). With r = M / F and n = 8 the best (d, t) changes at
    r = 1 / 4, 1 and 4; the search finds it."""
    machine(1000)
    n, H, F = 8, 4000, 16000
    for r, best in ((0.24, (1, 8)), (0.26, (2, 4)), (0.98, (2, 4)), (1.02, (4, 2)), (3.9, (4, 2)), (4.1, (8, 1))):
        M = round(F * r)
        d, t = best
        report = explain(network(f"%label: f32[{M}, {H}]", f"""
  param %x: f32[{M}, {H}] = Normal(0.01)
  param %w1: f32[{H}, {F}] = Normal(0.01)
  param %w2: f32[{F}, {H}] = Normal(0.01)
  %h = MatMul(%x, %w1) @ "up"
  %a = GeLU(%h)
  %y = MatMul(%a, %w2) @ "down"
  %loss = MSELoss(%y, %label)""", "label"), n)
        expect(("two layers", r), moved(report), 4 * W * H / n * (F * (d - 1) + M * (t - 1)))
        # Others may move as little: what the best division moves is the least.
        assert best == min(divisions(n), key=lambda dt: F * (dt[0] - 1) + M * (dt[1] - 1)), r


LAYER = """
  param %x: f32[8, {S}, {h}] = Normal(0.01)
  param %wq: f32[{h}, {h}] = Normal(0.01)
  param %wk: f32[{h}, {h}] = Normal(0.01)
  param %wv: f32[{h}, {h}] = Normal(0.01)
  param %wo: f32[{h}, {h}] = Normal(0.01)
  param %w1: f32[{h}, {f}] = Normal(0.01)
  param %w2: f32[{f}, {h}] = Normal(0.01)
  %q = MatMul(%x, %wq) @ "q" {IN}
  %k = MatMul(%x, %wk) @ "k" {IN}
  %v = MatMul(%x, %wv) @ "v" {IN}
  %o, %l = ScaledDotProductAttention(%q, %k, %v, heads: 8) @ "attention"
  %p = MatMul(%o, %wo) @ "p" {OUT}
  %r = Add(%x, %p) @ "r"
  %u = MatMul(%r, %w1) @ "up" {IN}
  %g = GeLU(%u) @ "gelu"
  %d = MatMul(%g, %w2) @ "down" {OUT}
  %y = Add(%r, %d) @ "y"
  %loss = MSELoss(%y, %label)"""


def transformer_layer():
    """w / n (24 h h (d - 1) + 8 M h (t - 1)); the best of the four divisions of 8 changes at M / h = 3 / 4, 3 and 12. Free to cut
    every operator on its own, the search needs no more than the best of the four."""
    machine(1000)
    n, h = 8, 800
    for rho, best in ((0.74, (1, 8)), (0.76, (2, 4)), (2.9, (2, 4)), (3.1, (4, 2)), (11.9, (4, 2)), (12.1, (8, 1))):
        M = round(rho * h)
        inputs, found = f"%label: f32[8, {M // 8}, {h}]", {}
        for d, t in divisions(n):
            body = LAYER.format(S=M // 8, h=h, f=4 * h, IN=f"{{in_strategy: (({d}, 1, 1), (1, {t}))}}",
                                OUT=f"{{in_strategy: (({d}, 1, {t}), ({t}, 1))}}")
            report = explain(network(inputs, body, "label"), n)
            found[d, t] = moved(report)
            expect(("layer", rho, d, t), found[d, t], W / n * (24 * h * h * (d - 1) + 8 * M * h * (t - 1)))
        assert min(found, key=found.get) == best, (rho, found)
        free = moved(explain(network(inputs, LAYER.format(S=M // 8, h=h, f=4 * h, IN="", OUT=""), "label"), n))
        # The input is a parameter: stored in pieces, it and the sums may be cut in two dimensions, which moves less than any division.
        assert free <= min(found.values()) + SCALARS, (rho, free, found)


def layer_counts():
    """Columns then rows among 8: 2 AllReduces of the activation forward and 2 backward, or as many ReduceScatters and gathers."""
    machine(1000)
    M, h, n = 800, 800, 8
    body = LAYER.format(S=M // 8, h=h, f=4 * h, IN=f"{{in_strategy: ((1, 1, 1), (1, {n}))}}", OUT=f"{{in_strategy: ((1, 1, {n}), ({n}, 1))}}")
    for pin in ("r", "gelu", "y"): # whole between the two halves, as Megatron has it
        pieces = "((1, 1, 8))" if pin == "gelu" else "((1, 1, 1), (1, 1, 1))"
        body = body.replace(f'@ "{pin}"', f'@ "{pin}" {{in_strategy: {pieces}}}')
    body = body.replace("MSELoss(%y, %label)", "MSELoss(%y, %label) {in_strategy: ((1, 1, 1), (1, 1, 1))}")
    report = explain(network(f"%label: f32[8, {M // 8}, {h}]", body, "label"), n)
    for phase in ("forward", "backward"):
        collectives = [c for c in report["collectives"] if c["phase"] == phase]
        assert [c["kind"] for c in collectives] == ["AllReduce"] * 2, (phase, [(c["kind"], c["bytes"]) for c in collectives])
        for c in collectives:
            expect(("count", phase), c["bytes"], 2 * (n - 1) / n * M * h * W, 0)


def convolutional(examples):
    """Data parallel: 2 (n - 1) / n of all parameters. VGG-16's classifier, columns, rows, columns: 2 (n - 1) / n of the activations
    instead; the search needs no more than that."""
    machine(1000)
    n, M = 8, 256
    share = 2 * (n - 1) / n * W
    vgg = explain(f"{examples}/vgg16/net.mir", n, "-D", f"batch={M}", "--parallel-mode", "data_parallel")
    expect("vgg16, data parallel", vgg["cost"]["communication_bytes"], share * 138357544)
    # Mean and variance of every channel of its 53 normalised layers travel as well, forward and backward.
    resnet = explain(f"{examples}/resnet50/net.mir", n, "-D", f"batch={M}", "--parallel-mode", "data_parallel")
    channels = 26560
    expect("resnet50, data parallel", resnet["cost"]["communication_bytes"], share * 25557032, share * 4 * channels)
    body = f"""
  param %x: f32[{M}, 25088] = Normal(0.01)
  param %w6: f32[25088, 4096] = Normal(0.01)
  param %w7: f32[4096, 4096] = Normal(0.01)
  param %w8: f32[4096, 1000] = Normal(0.01)
  %a = ReLU(%x) @ "features" {{in_strategy: ((8, 1))}}
  %h6 = MatMul(%a, %w6) @ "fc6" PIN6
  %a6 = ReLU(%h6)
  %h7 = MatMul(%a6, %w7) @ "fc7" PIN7
  %a7 = ReLU(%h7)
  %h8 = MatMul(%a7, %w8) @ "fc8" PIN8
  %loss = MSELoss(%h8, %label)"""
    pins = {"PIN6": pinned(1, 1, 8), "PIN7": pinned(1, 8, 1), "PIN8": pinned(1, 1, 8)}
    text = body
    for name, pin in pins.items():
        text = text.replace(name, pin)
    formula = share * (M * 25088 + M * 4096 + M * 4096)
    report = explain(network(f"%label: f32[{M}, 1000]", text, "label"), n)
    expect("classifier of vgg16", moved(report), formula)
    free = moved(explain(network(f"%label: f32[{M}, 1000]", body.replace("PIN6", "").replace("PIN7", "").replace("PIN8", ""), "label"), n))
    assert free <= formula + SCALARS, (free, formula)
    whole = moved(explain(f"{examples}/vgg16/net.mir", n, "-D", f"batch={M}", "--parallel-mode", "auto_parallel", "--search-mode", "optimal"))
    assert 5.9 * whole <= vgg["cost"]["communication_bytes"], whole


def classifier():
    """2048 to 1000 behind a batch that is cut: data parallel moves K N, columns M K, so columns win below a batch of 1000; the
    contraction moves M N and one exchange of M K each way. The search takes the least."""
    machine(1000)
    n, K, N = 8, 2048, 1000
    for M in (992, 1008, 4000):
        def bytes_of(pin):
            return moved(explain(network(f"%label: f32[{M}, {N}]", f"""
  param %x: f32[{M}, {K}] = Normal(0.01)
  param %w: f32[{K}, {N}] = Normal(0.01)
  %a = ReLU(%x) @ "features" {{in_strategy: ((8, 1))}}
  %y = MatMul(%a, %w) @ "fc" {pin}
  %loss = MSELoss(%y, %label)""", "label"), n))
        share = 2 * (n - 1) / n * W
        rows, columns, contraction = (bytes_of(pinned(*p)) for p in ((8, 1, 1), (1, 1, 8), (1, 8, 1)))
        expect(("classifier", M, "rows"), rows, share * K * N)
        expect(("classifier", M, "columns"), columns, share * M * K)
        expect(("classifier", M, "contraction"), contraction, share * (M * N + M * K / n))
        assert (columns < rows) == (M < 1000), (M, rows, columns)
        free = bytes_of("")
        assert free <= min(rows, columns, contraction) + SCALARS, (M, free)


def tables():
    """V rows of D numbers, B F numbers of rows: a whole table moves the gradient of all its rows; cut by rows or columns, what was
    looked up moves, however large the table is."""
    machine(1e30)
    n, D, B, F = 8, 64, 512, 4
    share = 2 * (n - 1) / n * W
    for V in (4096, 65536):
        def bytes_of(pin):
            return moved(explain(network(f"%ids: i32[{B}, {F}], %label: f32[{B}, {F}, {D}]", f"""
  param %table: f32[{V}, {D}] = Normal(0.01)
  %y = Gather(%table, %ids, 0) @ "lookup" {pin}
  %loss = MSELoss(%y, %label) {{in_strategy: ((8, 1, 1), (8, 1, 1))}}""", "ids: integers(0, 9)", "label"), n))
        expect(("table", V, "whole"), bytes_of("{in_strategy: ((1, 1), (8, 1))}"), share * V * D)
        expect(("table", V, "rows"), bytes_of("{in_strategy: ((8, 1), (1, 1))}"), share * B * F * D)
        # Columns: from columns of all to all of some, forward and backward.
        expect(("table", V, "columns"), bytes_of("{in_strategy: ((1, 8), (1, 1))}"), share * B * F * D / n)


def experts():
    """T tokens of a device, h numbers each, of which each goes to k of n experts with places for c times as many: by AlltoAll, there and
    back, forward and backward, 4 (n - 1) / n T k c h numbers move; gathering the tokens and summing what experts made of them moves
    4 (n - 1) T h. So AlltoAll is taken below k c = n."""
    machine(1000)
    n, B, S, h, f = 8, 8, 64, 16, 32
    T = B * S // n
    for kc in (2, 7.5, 8.5):
        C = round(kc * S / n)
        def bytes_of(pins):
            body = f"""
  param %x: f32[{B}, {S}, {h}] = Normal(0.01)
  param %w1: f32[{n}, {h}, {f}] = Normal(0.01)
  param %w2: f32[{n}, {f}, {h}] = Normal(0.01)
  %a = ReLU(%x) @ "tokens" {{in_strategy: ((8, 1, 1))}}
  %sent = BatchMatMul(%sends, %a, transpose_a: true) @ "sent"
  %rows = Reshape(%sent, ({B}, {n}, {C}, {h})) @ "rows"
  %u = BatchMatMul(%rows, %w1) @ "up" {{in_strategy: ((1, 8, 1, 1), (8, 1, 1))}}
  %v = ReLU(%u)
  %d = BatchMatMul(%v, %w2) @ "down" {{in_strategy: ((1, 8, 1, 1), (8, 1, 1))}}
  %all = Reshape(%d, ({B}, {n * C}, {h})) @ "all"
  %y = BatchMatMul(%sends, %all) @ "back"
  %loss = MSELoss(%y, %label) {{in_strategy: ((8, 1, 1), (8, 1, 1))}}"""
            for name, pin in pins.items():
                body = body.replace(f'@ "{name}"', f'@ "{name}" {{in_strategy: {pin}}}')
            return moved(explain(network(f"%sends: f32[{B}, {S}, {n * C}], %label: f32[{B}, {S}, {h}]", body, "sends", "label"), n))
        sent = bytes_of({"sent": "((8, 1, 1), (8, 1, 1))", "rows": "((8, 1, 1))", "all": "((8, 1, 1, 1))", "back": "((8, 1, 1), (8, 1, 1))"})
        gathered = bytes_of({"sent": "((1, 1, 8), (1, 1, 1))", "rows": "((1, 8, 1))", "all": "((1, 8, 1, 1))", "back": "((1, 1, 8), (1, 8, 1))"})
        expect(("experts", kc, "AlltoAll"), sent, 4 * (n - 1) / n * T * kc * h * W)
        expect(("experts", kc, "gathered"), gathered, 4 * (n - 1) * T * h * W)
        assert (sent < gathered) == (kc < n), (kc, sent, gathered)
        free = bytes_of({})
        assert free <= min(sent, gathered) + SCALARS, (kc, free)


products()
two_layers()
transformer_layer()
layer_counts()
convolutional(sys.argv[1])
classifier()
tables()
experts()
print(f"{checked} numbers are those of the formulas")
assert checked >= 100
