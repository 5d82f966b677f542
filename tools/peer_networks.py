"""Networks that benchmarks compare with: those of examples/ in the words of PyTorch and of JAX. Without PyTorch its networks are names only, and so are
JAX's functions without JAX."""
try:
    import torch
    import torch.nn.functional as F
except ImportError:
    torch = None
try:
    import jax
    import jax.numpy as jnp
except ImportError:
    jax = None


class Bottleneck(*([torch.nn.Module] if torch else [])):
    def __init__(self, inputs, channels, stride):
        super().__init__()
        nn = torch.nn
        self.body = nn.Sequential(
            nn.Conv2d(inputs, channels, 1, bias=False), nn.BatchNorm2d(channels), nn.ReLU(),
            nn.Conv2d(channels, channels, 3, stride, 1, bias=False), nn.BatchNorm2d(channels), nn.ReLU(),
            nn.Conv2d(channels, 4 * channels, 1, bias=False), nn.BatchNorm2d(4 * channels))
        same = inputs == 4 * channels and stride == 1
        self.side = nn.Identity() if same else nn.Sequential(nn.Conv2d(inputs, 4 * channels, 1, stride, bias=False), nn.BatchNorm2d(4 * channels))

    def forward(self, x):
        return F.relu(self.body(x) + self.side(x))


class ResNet50(*([torch.nn.Module] if torch else [])):
    def __init__(self, classes=1000):
        super().__init__()
        nn = torch.nn
        layers, inputs = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
        for channels, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
            for i in range(blocks):
                layers.append(Bottleneck(inputs, channels, stride if i == 0 else 1))
                inputs = 4 * channels
        self.layers, self.fc = nn.Sequential(*layers), nn.Linear(inputs, classes)

    def forward(self, image, label):
        return F.cross_entropy(self.fc(self.layers(image).mean((2, 3))), label)


class Block(*([torch.nn.Module] if torch else [])):
    def __init__(self, width, heads, hidden, before, causal, approximate):
        super().__init__()
        nn = torch.nn
        self.heads, self.before, self.causal, self.approximate = heads, before, causal, approximate
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def attend(self, n):
        parts = [p(n).view(*n.shape[:2], self.heads, -1).transpose(1, 2) for p in (self.q, self.k, self.v)]
        return self.o(F.scaled_dot_product_attention(*parts, is_causal=self.causal).transpose(1, 2).reshape(n.shape))

    def widen(self, n):
        return self.down(F.gelu(self.up(n), approximate=self.approximate))

    def forward(self, x):
        if self.before:
            x = x + self.attend(self.ln_1(x))
            return x + self.widen(self.ln_2(x))
        x = self.ln_1(x + self.attend(x))
        return self.ln_2(x + self.widen(x))


class Words(*([torch.nn.Module] if torch else [])):
    """GPT-2, or BERT with its head for words; projections apart, as in examples/."""

    def __init__(self, layers, width, heads, hidden, length, vocabulary, bert=False):
        super().__init__()
        nn = torch.nn
        self.bert = bert
        self.word = nn.Parameter(torch.randn(vocabulary, width) * 0.02)
        self.place = nn.Parameter(torch.randn(length, width) * 0.01)
        self.blocks = nn.ModuleList(Block(width, heads, hidden, not bert, not bert, "none" if bert else "tanh") for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        if bert:
            self.kind, self.first, self.dense, self.bias = nn.Embedding(2, width), nn.LayerNorm(width), nn.Linear(width, width), nn.Parameter(torch.zeros(vocabulary))

    def forward(self, ids, labels, kinds=None):
        x = F.embedding(ids, self.word) + self.place
        if self.bert:
            x = self.first(x + self.kind(kinds))
        for block in self.blocks:
            x = block(x)
        x = self.norm(F.gelu(self.dense(x)) if self.bert else x)
        logits = F.linear(x, self.word, self.bias if self.bert else None)
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), labels.view(-1))


def cast_in_jax(tree, narrow):
    """Floats in bf16."""
    return jax.tree.map(lambda x: x.astype(jnp.bfloat16) if narrow and jnp.issubdtype(x.dtype, jnp.floating) else x, tree)


def trains_in_jax(loss, weights, data, narrow, decay=0.0):
    """A step of JAX's with Momentum: loss(weights, *data), compiled as a whole, weights and moments given away; the step reads the loss."""
    def step_of(weights, moments, data):
        value, gradients = jax.value_and_grad(lambda w: loss(cast_in_jax(w, narrow), *cast_in_jax(data, narrow)))(weights)
        moments = jax.tree.map(lambda m, g, w: 0.9 * m + g + decay * w, moments, gradients, weights)
        return jax.tree.map(lambda w, m: w - 0.001 * m, weights, moments), moments, value

    update = jax.jit(step_of, donate_argnums=(0, 1))
    state = [weights, jax.tree.map(jnp.zeros_like, weights)]

    def step():
        *state[:], value = update(*state, data)
        jax.block_until_ready(state)
        return float(value)

    return step


def draw(shapes, scale=0.02):
    return [scale * jax.random.normal(jax.random.PRNGKey(i), shape) for i, shape in enumerate(shapes)]


def cross_entropy_of_jax(logits, labels):
    return -jnp.take_along_axis(jax.nn.log_softmax(logits.astype(jnp.float32)), labels[:, None], 1).mean()


def words_of_jax(layers, width, heads, hidden, length, vocabulary, batch, narrow, bert=False, attention=None):
    """GPT-2 or BERT; norms in f32. `attention` is an implementation of jax.nn.dot_product_attention."""
    block = dict(g1=(width,), b1=(width,), q=(width, width), qb=(width,), k=(width, width), kb=(width,), v=(width, width), vb=(width,),
                 o=(width, width), ob=(width,), g2=(width,), b2=(width,), up=(width, hidden), ub=(hidden,), down=(hidden, width), db=(width,))
    weights = {"wte": draw([(vocabulary, width)])[0], "wpe": draw([(length, width)])[0], "g": jnp.ones(width), "b": jnp.zeros(width),
               "blocks": [dict(zip(block, draw(block.values()))) for _ in range(layers)]}
    if bert:
        weights |= {"kinds": draw([(2, width)])[0], "g0": jnp.ones(width), "b0": jnp.zeros(width), "dense": draw([(width, width)])[0],
                    "bias": jnp.zeros(vocabulary)}

    def norm(x, g, b):
        y = x.astype(jnp.float32)
        return ((y - y.mean(-1, keepdims=True)) * jax.lax.rsqrt(y.var(-1, keepdims=True) + 1e-5) * g + b).astype(x.dtype)

    def attend(x, p):
        parts = [(x @ p[m] + p[m + "b"]).reshape(batch, length, heads, -1) for m in "qkv"]
        return jax.nn.dot_product_attention(*parts, is_causal=not bert, implementation=attention).reshape(x.shape) @ p["o"] + p["ob"]

    def widen(x, p):
        return jax.nn.gelu(x @ p["up"] + p["ub"], approximate=not bert) @ p["down"] + p["db"]

    def loss(w, ids, following, kinds):
        x = w["wte"][ids] + w["wpe"]
        x = norm(x + w["kinds"][kinds], w["g0"], w["b0"]) if bert else x
        for p in w["blocks"]:
            if bert:
                x = norm(x + attend(x, p), p["g1"], p["b1"])
                x = norm(x + widen(x, p), p["g2"], p["b2"])
            else:
                x = x + attend(norm(x, p["g1"], p["b1"]), p)
                x = x + widen(norm(x, p["g2"], p["b2"]), p)
        x = norm(jax.nn.gelu(x @ w["dense"], approximate=False) if bert else x, w["g"], w["b"])
        logits = x @ w["wte"].T + (w["bias"] if bert else 0)
        return cross_entropy_of_jax(logits.reshape(-1, vocabulary), following.reshape(-1))

    ids = jax.random.randint(jax.random.PRNGKey(1), (batch, length), 0, vocabulary)
    return trains_in_jax(loss, weights, (ids, ids, ids % 2), narrow)


def resnet50_of_jax(size, classes, narrow, batch=32):
    shapes = []  # of every convolution, then of its norm; in the order in which they run

    def layer(inputs, outputs, kernel):
        shapes.extend([(kernel, kernel, inputs, outputs), (outputs,), (outputs,)])

    layer(3, 64, 7)
    inputs, plan = 64, []
    for channels, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for i in range(blocks):
            plan.append((stride if i == 0 else 1, i == 0))
            for part in ((inputs, channels, 1), (channels, channels, 3), (channels, 4 * channels, 1)):
                layer(*part)
            if i == 0:
                layer(inputs, 4 * channels, 1)
            inputs = 4 * channels
    shapes += [(inputs, classes), (classes,)]

    def loss(weights, image, label):
        left = iter(weights)

        def conv(x, stride=1):  # channels last, which is XLA's faster order on processors
            w, g, b = next(left), next(left), next(left)
            pad = w.shape[0] // 2
            y = jax.lax.conv_general_dilated(x, w, (stride, stride), [(pad, pad)] * 2, dimension_numbers=("NHWC", "HWIO", "NHWC"))
            mean, variance = y.mean((0, 1, 2)), y.var((0, 1, 2))
            return (y - mean) * jax.lax.rsqrt(variance + 1e-5) * (1 + g) + b

        x = jax.nn.relu(conv(image, 2))
        x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 3, 3, 1), (1, 2, 2, 1), ((0, 0), (1, 1), (1, 1), (0, 0)))
        for stride, widens in plan:
            y = conv(jax.nn.relu(conv(jax.nn.relu(conv(x)), stride)))
            x = jax.nn.relu(y + (conv(x, stride) if widens else x))
        return cross_entropy_of_jax(x.mean((1, 2)) @ next(left) + next(left), label)

    data = (draw([(batch, size, size, 3)], 1.0)[0], jax.random.randint(jax.random.PRNGKey(1), (batch,), 0, classes))
    return trains_in_jax(loss, draw(shapes), data, narrow, 1e-4)
