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


def machine(flops_per_us, alpha_us=0, memory_bytes_per_us=1e30):
    """A small alpha: of strategies that move as much, those with fewer collectives."""
    cost = {"alpha_us": alpha_us, "hop_us": 0, "beta_us_per_byte": 1}
    json.dump({"name": "bytes", "source": "test", "flops_per_us": flops_per_us, "memory_bytes_per_us": memory_bytes_per_us, "launch_us": 0,
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
    assert -1e-3 <= found - formula <= slack, (what, found, formula)


def takes(what, report, wanted):
    """The search itself took these strategies, {operator: strategy}; the network says nothing of them."""
    global checked
    checked += 1
    assert report["search"]["least_optimal"], what
    found = {o["name"]: tuple(map(tuple, o["in_strategy"])) for o in report["operators"]}
    assert {name: found[name] for name in wanted} == wanted, (what, found, wanted)


def product(a, b, c):
    return ((a, b), (b, c))


def in_batches(a, b, c):
    """The same of a left operand of three dimensions, the first of which is cut."""
    return ((a, 1, b), (b, c))


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
    """Columns then rows by t, the batch by d: 4 w H / n (F (d - 1) + M (t - 1)), in units of w H H / n with rho = M / H and n = 8: where
    F = 4 H, the best (d, t) changes at rho = 1, 4 and 16. The search finds it, and those strategies.
    F = 3 H: at 3 / 4, 3 and 12. But below rho = 1 a product moves less where 8 = b c than in 8 columns or rows: V(a, b, c) of products() is
    2 (3 (b - 1) + c - 1) rho = 12 rho for up in (1, 2, 4), or for down in (1, 4, 2), instead of 14 rho; where F = 4 H both are 14 rho. The two
    do not fit each other; one of them beside the other product in the usual form is 14 rho + 12 rho, from 3 / 4 on 12 rho + 6 + 6 rho."""
    machine(1000, alpha_us=1)
    n, H = 8, 4000
    usual = lambda d, t: (product(d, 1, t), product(d, t, 1))
    mixed = [(0.74, 26 * 0.74, (product(1, 1, 8), product(1, 4, 2))), (0.76, 6 + 18 * 0.76, (product(1, 2, 4), product(2, 4, 1))),
             (0.96, 6 + 18 * 0.96, (product(1, 2, 4), product(2, 4, 1)))]
    for wider, cases in ((3, ((1.04, (2, 4)), (2.9, (2, 4)), (3.1, (4, 2)), (11.9, (4, 2)), (12.1, (8, 1)))),
                         (4, ((0.96, (1, 8)), (1.04, (2, 4)), (3.92, (2, 4)), (4.08, (4, 2)), (15.6, (4, 2)), (16.4, (8, 1))))):
        formulas = [(rho, 4 * (wider * (d - 1) + rho * (t - 1)), usual(d, t)) for rho, (d, t) in cases]
        for rho, best in cases:
            assert best == min(divisions(n), key=lambda dt: wider * (dt[0] - 1) + rho * (dt[1] - 1)), rho
        for rho, formula, (up, down) in formulas + (mixed if wider == 3 else []):
            M, F = round(H * rho), wider * H
            assert formula <= min(4 * (wider * (d - 1) + rho * (t - 1)) for d, t in divisions(n)) + 1e-9, rho
            report = explain(network(f"%label: f32[{M}, {H}]", f"""
  param %x: f32[{M}, {H}] = Normal(0.01)
  param %w1: f32[{H}, {F}] = Normal(0.01)
  param %w2: f32[{F}, {H}] = Normal(0.01)
  %h = MatMul(%x, %w1) @ "up"
  %a = GeLU(%h)
  %y = MatMul(%a, %w2) @ "down"
  %loss = MSELoss(%y, %label)""", "label"), n)
            expect(("two layers", wider, rho), moved(report), W * H * H / n * formula)
            takes(("two layers", wider, rho), report, {"up": up, "down": down})


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
    """w / n (24 h h (d - 1) + 8 M h (t - 1)) where the whole layer has one division; the best of the four divisions of 8 changes at
    M / h = 3 / 4, 3 and 12. Free to cut every operator on its own, the search needs no more than the best of the four, and takes what
    free_layer says."""
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
        report = explain(network(inputs, LAYER.format(S=M // 8, h=h, f=4 * h, IN="", OUT=""), "label"), n)
        assert moved(report) <= min(found.values()), (rho, moved(report), found)


def free_layer():
    """A layer has no need of one division: the sum behind a half is a ReduceScatter, and the AllGather before the next half may have
    another group, so that every half pays for its own. With 4 h h weights in attention and 8 h h in the layers behind it, n = 8 and
    rho = M / h, in units of w h h / n:
    attention: 8 (d - 1) + 4 rho (t - 1); below rho = 8 / 3 the product behind heads that are cut in (2, 4) moves less as (2, 2, 2):
    2 (1 + rho + rho) instead of 2 (1 + 3 rho) (V(a, b, c) of products()). So 8 + 10 rho, 24 + 4 rho and 56: they change at 8 / 3 and 8.
    up and down: 16 (d - 1) + 4 rho (t - 1), which changes at 1, 4 and 16.
    The 3 / 4, 3 and 12 of one division lie between those of the halves, and a search that changes all at once there would miss up to
    a sixth."""
    machine(1000, alpha_us=1)
    n, h = 8, 800
    for rho, attention, behind in ((0.76, (2, 4), (1, 8)), (0.96, (2, 4), (1, 8)), (1.04, (2, 4), (2, 4)), (2.6, (2, 4), (2, 4)),
                                   (2.7, (4, 2), (2, 4)), (2.9, (4, 2), (2, 4)), (3.1, (4, 2), (2, 4)), (3.9, (4, 2), (2, 4)),
                                   (4.1, (4, 2), (4, 2)), (7.9, (4, 2), (4, 2)), (8.1, (8, 1), (4, 2)), (11.9, (8, 1), (4, 2)),
                                   (12.1, (8, 1), (4, 2)), (15.9, (8, 1), (4, 2)), (16.1, (8, 1), (8, 1))):
        M = round(rho * h)
        report = explain(network(f"%label: f32[8, {M // 8}, {h}]", LAYER.format(S=M // 8, h=h, f=4 * h, IN="", OUT=""), "label"), n)
        price = {(2, 4): 8 + 10 * rho, (4, 2): 24 + 4 * rho, (8, 1): 56}
        first = price[attention]
        (d, t), (e, u) = attention, behind
        expect(("free layer", rho), moved(report), W * h * h / n * (first + 16 * (e - 1) + 4 * rho * (u - 1)))
        assert first == min(price.values()) and behind == min(divisions(n), key=lambda eu: 16 * (eu[0] - 1) + 4 * rho * (eu[1] - 1)), rho
        takes(("free layer", rho), report,
              {"q": in_batches(d, 1, t), "k": in_batches(d, 1, t), "v": in_batches(d, 1, t), "attention": ((d, 1, t),) * 3,
               "p": in_batches(2, 2, 2) if attention == (2, 4) else in_batches(d, t, 1), "up": in_batches(e, 1, u), "down": in_batches(e, u, 1)})
        one = min(24 * (d - 1) + 8 * rho * (t - 1) for d, t in divisions(n))
        assert moved(report) <= W * h * h / n * one + SCALARS, (rho, one)


def free_layer_of_two():
    """Among two devices nothing but the batch or columns and rows can be cut, and Megatron's counts are the search's own: 2 AllReduces
    forward and 2 backward of M h numbers; halves change at M / h = 2 and 4."""
    machine(1000, alpha_us=1e4) # a start takes less than a hundredth of a sum: AllReduce beats ReduceScatter and AllGather, nothing else changes
    n, h = 2, 800
    for rho, attention, behind in ((1, (1, 2), (1, 2)), (1.98, (1, 2), (1, 2)), (2.02, (2, 1), (1, 2)), (3.98, (2, 1), (1, 2)), (4.02, (2, 1), (2, 1))):
        M = round(rho * h)
        report = explain(network(f"%label: f32[8, {M // 8}, {h}]", LAYER.format(S=M // 8, h=h, f=4 * h, IN="", OUT=""), "label"), n)
        (d, t), (e, u) = attention, behind
        expect(("free layer of two", rho), moved(report), W * h * h / n * (8 * (d - 1) + 4 * rho * (t - 1) + 16 * (e - 1) + 4 * rho * (u - 1)))
        takes(("free layer of two", rho), report, {"q": in_batches(d, 1, t), "k": in_batches(d, 1, t), "v": in_batches(d, 1, t),
              "p": in_batches(d, t, 1), "up": in_batches(e, 1, u), "down": in_batches(e, u, 1)})
        if rho < 2:
            for phase in ("forward", "backward"):
                collectives = [(c["kind"], c["bytes"]) for c in report["collectives"] if c["phase"] == phase]
                assert collectives == [("AllReduce", 2 * (n - 1) / n * M * h * W)] * 2, (rho, phase, collectives)


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
    # Free, it takes less, for a batch that arrives in pieces can be turned into columns: an AlltoAll of M 25088 / n instead of a gather of
    # M 25088. Rows then sum M 4096, M 4096 and M 1000 numbers, each onto columns for the next rows. fc7 in (1, 2, 4) gathers 3 and sums 1
    # of what 7 pieces would, and turns its pieces once: 5 instead of 7. fc8 sums M 1000 by rows where columns would sum M 4096 backward.
    machine(1000, alpha_us=1)
    report = explain(network(f"%label: f32[{M}, 1000]", body.replace("PIN6", "").replace("PIN7", "").replace("PIN8", ""), "label"), n)
    free = 2 * W * M / n * ((n - 1) * (25088 / n + 4096 + 1000) + 5 * 4096)
    expect("classifier of vgg16, free", moved(report), free)
    takes("classifier of vgg16, free", report, {"fc6": product(1, 8, 1), "fc7": product(1, 2, 4), "fc8": product(1, 8, 1)})
    assert 2 * free < formula, (free, formula)
    # The same within the whole network: convolutions cut the batch.
    whole = explain(f"{examples}/vgg16/net.mir", n, "-D", f"batch={M}", "--parallel-mode", "auto_parallel", "--search-mode", "optimal")
    assert 5.9 * moved(whole) <= vgg["cost"]["communication_bytes"], moved(whole)
    wanted = {f"classifier.{i}.matmul": ((a, b), (c, b)) for i, a, b, c in ((0, 1, 8, 1), (3, 1, 2, 4), (6, 1, 8, 1))} # transposed weights
    wanted.update({o["name"]: ((8, 1, 1, 1), (1, 1, 1, 1)) for o in whole["operators"] if o["op"] == "Conv2D"})
    takes("vgg16, free", whole, wanted)
    # ResNet-50 is data parallel but for its classifier, of which two devices cut the contraction below M = 1012 (see classifier).
    machine(1000)
    for M, pieces in ((1008, ((1, 2), (1, 2))), (1016, ((2, 1), (1, 1)))):
        report = explain(f"{examples}/resnet50/net.mir", 2, "-D", f"batch={M}", "--parallel-mode", "auto_parallel", "--search-mode", "optimal")
        wanted = {o["name"]: ((2, 1, 1, 1), (1, 1, 1, 1)) for o in report["operators"] if o["op"] == "Conv2D"}
        assert len(wanted) == 53
        takes(("resnet50, free", M), report, wanted | {"fc.matmul": pieces})
        fc = 2048 * 1000 if M > 1012 else M * 1000 + M * 2048 / 2
        expect(("resnet50, free", M), moved(report), W * (25557032 - 2048 * 1000 + fc), W * 4 * channels + SCALARS)


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
        # Free: not these three alone, but no other division of 8 moves less.
        free = bytes_of("")
        every = min(bytes_of(pinned(a, b, c)) for a, rest in divisions(n) for b, c in divisions(rest))
        assert free == every, (M, free, every)


def free_classifier():
    """Behind a batch that is cut in n, (a, b, c) moves 2 w / n ((a - 1) K N + (b - 1) M N + (c - 1 / b) M K). With 2048 numbers and 1000
    classes the contraction moves less than columns, and rows win from M = K N / (N + K / 2) = 1011.9 on two devices, not from 1000; on 8
    devices rows alone win from 4 K N / (N + K / 2) = 4047.4. With many classes columns move less than the contraction: on two devices rows
    win from M = N, on 8 devices the best division changes at N / 4, N and 4 N."""
    machine(1000, alpha_us=1)
    for n, M, K, N, best in ((2, 1010, 2048, 1000, (1, 2, 1)), (2, 1014, 2048, 1000, (2, 1, 1)),
                             (8, 4040, 2048, 1000, (4, 2, 1)), (8, 4056, 2048, 1000, (8, 1, 1)),
                             (2, 4088, 512, 4096, (1, 1, 2)), (2, 4104, 512, 4096, (2, 1, 1)),
                             (8, 1016, 512, 4096, (1, 1, 8)), (8, 1032, 512, 4096, (2, 1, 4)), (8, 4088, 512, 4096, (2, 1, 4)),
                             (8, 4104, 512, 4096, (4, 1, 2)), (8, 16376, 512, 4096, (4, 1, 2)), (8, 16392, 512, 4096, (8, 1, 1))):
        report = explain(network(f"%label: f32[{M}, {N}]", f"""
  param %x: f32[{M}, {K}] = Normal(0.01)
  param %w: f32[{K}, {N}] = Normal(0.01)
  %a = ReLU(%x) @ "features" {{in_strategy: (({n}, 1))}}
  %y = MatMul(%a, %w) @ "fc"
  %loss = MSELoss(%y, %label)""", "label"), n)
        a, b, c = best
        expect(("free classifier", n, M, N), moved(report), 2 * W / n * ((a - 1) * K * N + (b - 1) * M * N + (c - 1 / b) * M * K))
        takes(("free classifier", n, M, N), report, {"fc": product(*best)})


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


def free_tables():
    """What is looked up goes to layers that cut the batch. A table of V < B F / n rows stays whole, for its gradient is smaller than what
    columns send; above, columns win, however large it is: rows would send n times as much. Columns need D >= n. A table of one column is
    whole as well, and all look up everything: half of what rows move, as only gradients are gathered. Rows win where updating a whole table
    on every rank takes longer than that: 3 w V (1 - 1 / n) bytes of memory and as many again for its gradient."""
    n, B, F = 8, 512, 4
    share = 2 * (n - 1) / n * W
    for V, D, memory, wanted, formula in (
            (248, 64, 1e30, ((1, 1), (8, 1)), share * 248 * 64), (264, 64, 1e30, ((1, 8), (1, 1)), share * B * F * 64 / n),
            (10**7, 64, 1e30, ((1, 8), (1, 1)), share * B * F * 64 / n), (10**7, 64, 1000, ((1, 8), (1, 1)), share * B * F * 64 / n),
            (10**5, 1, 1000, ((1, 1), (1, 1)), share / 2 * B * F), (10**7, 1, 1000, ((8, 1), (1, 1)), share * B * F)):
        machine(1e30, alpha_us=1, memory_bytes_per_us=memory)
        report = explain(network(f"%ids: i32[{B}, {F}], %label: f32[{B}, {F}, {D}]", f"""
  param %table: f32[{V}, {D}] = Normal(0.01)
  %y = Gather(%table, %ids, 0) @ "lookup"
  %loss = MSELoss(%y, %label) {{in_strategy: ((8, 1, 1), (8, 1, 1))}}""", "ids: integers(0, 9)", "label"), n)
        expect(("free table", V, D), moved(report), formula)
        takes(("free table", V, D), report, {"lookup": wanted})


CUT = "((1, 8, 1, 1), (8, 1, 1))"


def experts():
    """T tokens of a device, h numbers each, of which each goes to k of n experts with places for c times as many: by AlltoAll, there and
    back, forward and backward, 4 (n - 1) / n T k c h numbers move; gathering the tokens and summing what experts made of them moves
    4 (n - 1) T h. So AlltoAll is taken below k c = n."""
    machine(1000, alpha_us=1)
    n, B, S, h = 8, 8, 64, 16
    T = B * S // n
    for kc in (2, 7.5, 8.5):
        C = round(kc * S / n)
        def explained(pins, f=32):
            body = f"""
  param %x: f32[{B}, {S}, {h}] = Normal(0.01)
  param %w1: f32[{n}, {h}, {f}] = Normal(0.01)
  param %w2: f32[{n}, {f}, {h}] = Normal(0.01)
  %a = ReLU(%x) @ "tokens" {{in_strategy: ((8, 1, 1))}}
  %sent = BatchMatMul(%sends, %a, transpose_a: true) @ "sent"
  %rows = Reshape(%sent, ({B}, {n}, {C}, {h})) @ "rows"
  %u = BatchMatMul(%rows, %w1) @ "up"
  %v = ReLU(%u)
  %d = BatchMatMul(%v, %w2) @ "down"
  %all = Reshape(%d, ({B}, {n * C}, {h})) @ "all"
  %y = BatchMatMul(%sends, %all) @ "back"
  %loss = MSELoss(%y, %label) {{in_strategy: ((8, 1, 1), (8, 1, 1))}}"""
            for name, pin in pins.items():
                body = body.replace(f'@ "{name}"', f'@ "{name}" {{in_strategy: {pin}}}')
            return explain(network(f"%sends: f32[{B}, {S}, {n * C}], %label: f32[{B}, {S}, {h}]", body, "sends", "label"), n)

        def bytes_of(pins):
            return moved(explained({"up": CUT, "down": CUT} | pins))
        sent = bytes_of({"sent": "((8, 1, 1), (8, 1, 1))", "rows": "((8, 1, 1))", "all": "((8, 1, 1, 1))", "back": "((8, 1, 1), (8, 1, 1))"})
        gathered = bytes_of({"sent": "((1, 1, 8), (1, 1, 1))", "rows": "((1, 8, 1))", "all": "((1, 8, 1, 1))", "back": "((1, 1, 8), (1, 8, 1))"})
        expect(("experts", kc, "AlltoAll"), sent, 4 * (n - 1) / n * T * kc * h * W)
        expect(("experts", kc, "gathered"), gathered, 4 * (n - 1) * T * h * W)
        assert (sent < gathered) == (kc < n), (kc, sent, gathered)
        # The search decides how tokens get there where experts are cut, and that they are where copies of them would move more: with
        # hidden layers of 1024 the gradients of copies are 2 (n - 1) / n of 2 n h f numbers.
        ways = {"sent": ((8, 1, 1), (8, 1, 1)), "back": ((8, 1, 1), (8, 1, 1))} if kc < n else {"sent": ((1, 1, 8), (1, 1, 1)), "back": ((1, 1, 8), (1, 8, 1))}
        cut = {"up": ((1, 8, 1, 1), (8, 1, 1)), "down": ((1, 8, 1, 1), (8, 1, 1))}
        for free in (explained({"up": CUT, "down": CUT}), explained({}, f=1024)):
            expect(("free experts", kc), moved(free), min(4 * (n - 1) / n * T * kc * h * W, 4 * (n - 1) * T * h * W))
            takes(("free experts", kc), free, ways | cut)
            kinds = {c["kind"] for c in free["search"]["collectives"] if c["bytes"] > SCALARS}
            assert kinds == ({"AlltoAll"} if kc < n else {"ReduceScatter", "AllGather"}), (kc, kinds)


products()
two_layers()
transformer_layer()
free_layer()
free_layer_of_two()
layer_counts()
convolutional(sys.argv[1])
classifier()
free_classifier()
tables()
free_tables()
experts()
print(f"{checked} numbers are those of the formulas")
assert checked >= 224
