#!/usr/bin/env python3
"""Fits the polynomials of MathPolynomials.inc: weighted minimax (Lawson iteration over Chebyshev nodes) in 60 digits.

Run it to print the tables anew. It needs nothing but Python's standard library.
"""
from decimal import Decimal as D, getcontext
import math
import struct

getcontext().prec = 60
PI = D("3.14159265358979323846264338327950288419716939937510582097494459")


def chebyshev_nodes(low, high, count):
    middle, half = (low + high) / 2, (high - low) / 2
    return [middle + half * D(math.cos(math.pi * (i + 0.5) / count)) for i in range(count)]


def solve(matrix, right):
    n = len(right)
    rows = [row[:] + [value] for row, value in zip(matrix, right)]
    for column in range(n):
        pivot = max(range(column, n), key=lambda r: abs(rows[r][column]))
        rows[column], rows[pivot] = rows[pivot], rows[column]
        for r in range(column + 1, n):
            factor = rows[r][column] / rows[column][column]
            for k in range(column, n + 1):
                rows[r][k] -= factor * rows[column][k]
    result = [D(0)] * n
    for r in reversed(range(n)):
        result[r] = (rows[r][n] - sum(rows[r][k] * result[k] for k in range(r + 1, n))) / rows[r][r]
    return result


def fit(function, weight, low, high, degree, rounds=12):
    """Coefficients c0..cN with least maximum of |weight * (function - polynomial)|, and that maximum."""
    points = chebyshev_nodes(D(low), D(high), 6 * (degree + 1))
    values = [function(x) for x in points]
    scale = [weight(x) for x in points]
    powers = [[x ** k for k in range(degree + 1)] for x in points]
    lawson = [D(1)] * len(points)
    for _ in range(rounds):
        w = [l * s * s for l, s in zip(lawson, scale)]
        matrix = [[sum(wi * p[i] * p[j] for wi, p in zip(w, powers)) for j in range(degree + 1)] for i in range(degree + 1)]
        right = [sum(wi * p[i] * v for wi, p, v in zip(w, powers, values)) for i in range(degree + 1)]
        coefficients = solve(matrix, right)
        errors = [abs(s * (v - sum(c * q for c, q in zip(coefficients, p)))) for s, v, p in zip(scale, values, powers)]
        worst = max(errors)
        total = sum(l * e for l, e in zip(lawson, errors))
        lawson = [l * e / total * len(points) + D("1e-9") for l, e in zip(lawson, errors)]
    return coefficients, worst


def series(x, first, n):
    """The Taylor series of a sine or cosine: the term x^n / n! and every second one behind it, with changing signs."""
    term = total = first
    while abs(term) > D("1e-58"):
        n += 2
        term = -term * x * x / (n * (n - 1))
        total += term
    return total


def erf(x):
    term = total = x
    n = 0
    while abs(term) > D("1e-58"):
        n += 1
        term = -term * x * x / n
        total += term / (2 * n + 1)
    return 2 / PI.sqrt() * total


def erfc(x):
    if x < 3:
        return 1 - erf(x)
    # Continued fraction, evaluated from the bottom.
    value = D(0)
    for k in range(400, 0, -1):
        value = D(k) / 2 / (x + value)
    return (-x * x).exp() / PI.sqrt() / (x + value)


def tanh(x):
    e = (2 * x).exp()
    return (e - 1) / (e + 1)


def show(name, kind, coefficients, worst):
    def text(value):
        if kind == "float":
            value = struct.unpack("f", struct.pack("f", float(value)))[0]
        return float(value).hex()
    print(f"// weighted error {float(worst):.2e}")
    lines = ",\n    ".join(text(c) for c in coefficients)
    print(f"constexpr double {name}[] = {{\n    {lines}}};")


def main():
    one = lambda x: D(1)
    near = lambda x: x if abs(x) > D("1e-3") else D("1e-3") * (1 if x >= 0 else -1)
    exp_q = lambda x: (near(x).exp() - 1 - near(x)) / (near(x) ** 2)
    log_p = lambda x: ((1 + near(x)).ln() - near(x) + near(x) ** 2 / 2) / near(x) ** 3

    def log_r(z):  # log((1+s)/(1-s)) = 2s + s*R(z), z = s*s; R(z)/z is fitted
        z = max(z, D("1e-6"))
        s = z.sqrt()
        return (((1 + s) / (1 - s)).ln() / s - 2) / z

    def tanh_p(z):
        z = max(z, D("1e-6"))
        x = z.sqrt()
        return (tanh(x) - x) / (x * z)

    def erf_p(z):
        z = max(z, D("1e-12"))
        x = z.sqrt()
        return erf(x) / x - 1

    def sin_p(z):
        z = max(z, D("1e-6"))
        x = z.sqrt()
        return (series(x, x, 1) - x) / (x * z)

    def cos_p(z):
        z = max(z, D("1e-6"))
        return (series(z.sqrt(), D(1), 0) - 1 + z / 2) / (z * z)

    quarter = (PI / 4 + D("0.0005")) ** 2
    show("sinF64", "double", *fit(sin_p, lambda z: z + D("1e-3"), D(0), quarter, 5))
    show("cosF64", "double", *fit(cos_p, lambda z: z * z + D("1e-3"), D(0), quarter, 5))
    ln2 = D(2).ln()
    root = D(2).sqrt()
    s_max = (root - 1) / (root + 1)
    for kind, exp_degree, tanh_degree, tanh_limit, erf_degree, tail_degree, tail_limit in (
            ("float", 4, 4, "0.625", 6, 6, "4"), ("double", 9, 11, "0.5625", 12, 19, "6")):
        suffix = "F32" if kind == "float" else "F64"
        show("exp" + suffix, kind, *fit(exp_q, lambda x: x * x, -ln2 / 2 - D("0.0005"), ln2 / 2 + D("0.0005"), exp_degree))
        if kind == "float":
            show("logF32", kind, *fit(log_p, lambda x: abs(near(x)) ** 2, 1 / root - 1, root - 1, 8))
        else:
            show("logF64", kind, *fit(log_r, lambda z: z + D("1e-4"), D(0), s_max ** 2, 7))
        limit = D(tanh_limit) ** 2
        show("tanh" + suffix, kind, *fit(tanh_p, lambda z: z + D("1e-3"), D(0), limit, tanh_degree))
        show("erf" + suffix, kind, *fit(erf_p, one, D(0), D(1), erf_degree))
        # log(erfc(x)) for 1 <= x <= limit in x - 1; an error there counts as much as erfc(x), so the polynomial has to be
        # well conditioned near 1.
        show("erfTail" + suffix, kind, *fit(lambda u: erfc(u + 1).ln(), lambda u: erfc(u + 1), D(0), D(tail_limit) - 1,
                                          tail_degree))


if __name__ == "__main__":
    main()
