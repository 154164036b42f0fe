"""Fits the polynomials of src/numerics/elementary.hpp and elementary64.hpp and prints them.

Each polynomial is the minimax approximation (Remez 1934, exchange of the alternating points) of the part of a function
that the code does not compute exactly, weighted so that the error of the whole function is the one made small. The
coefficients are then rounded to the type that uses them; the error printed beside each table is that of the rounded
ones, relative to the function's value, in units of 2^-24 (float32) or 2^-53 (float64).

Run: pip install mpmath; python3 tools/fit_polynomials.py
"""

import struct

from mpmath import asin, cos, exp, floor, ln, log, lu_solve, matrix, mp, mpf, pi, sin, sqrt

mp.dps = 60
GRID = 1500


def round_to_float32(value):
    return mpf(struct.unpack("<f", struct.pack("<f", float(value)))[0])


def round_to_float64(value):
    return mpf(float(value))


def evaluate(coefficients, t):
    result = mpf(0)
    for coefficient in reversed(coefficients):
        result = result * t + coefficient
    return result


def chebyshev_grid(low, high, count):
    """Points dense at both ends; never exactly at 0, where several targets have a removable singularity."""
    points = [(low + high) / 2 - (high - low) / 2 * cos(pi * i / (count - 1)) for i in range(count)]
    return [t if abs(t) > mpf(10) ** -9 else mpf(10) ** -9 for t in points]


def solve_at(points, target, weight, degree):
    """Coefficients, and the levelled error, of the polynomial whose weighted error alternates on `points`."""
    size = degree + 2
    system = matrix(size, size)
    right = matrix(size, 1)
    for row, t in enumerate(points):
        for column in range(degree + 1):
            system[row, column] = t**column
        system[row, degree + 1] = (-1) ** row / weight(t)
        right[row] = target(t)
    solution = lu_solve(system, right)
    return [solution[i] for i in range(degree + 1)], abs(solution[degree + 1])


def alternating_extrema(points, errors, wanted):
    """The largest error of each run of equal sign; surplus runs are dropped at the end where they matter less."""
    runs = []
    for t, error in zip(points, errors):
        if runs and (error > 0) == (runs[-1][1] > 0):
            if abs(error) > abs(runs[-1][1]):
                runs[-1] = (t, error)
        else:
            runs.append((t, error))
    while len(runs) > wanted:
        runs.pop(0 if abs(runs[0][1]) < abs(runs[-1][1]) else -1)
    return [t for t, _ in runs]


def minimax(target, weight, low, high, degree):
    grid = chebyshev_grid(mpf(low), mpf(high), GRID)
    values = [target(t) for t in grid]
    weights = [weight(t) for t in grid]
    # The weights vanish at 0, so the first guess keeps away from it.
    points = [grid[round((i + mpf("0.5")) * (GRID - 1) / (degree + 2))] for i in range(degree + 2)]
    for _ in range(60):
        coefficients, level = solve_at(points, target, weight, degree)
        errors = [w * (v - evaluate(coefficients, t)) for t, v, w in zip(grid, values, weights)]
        largest = max(abs(e) for e in errors)
        if largest < level * mpf("1.001"):
            return coefficients
        exchanged = alternating_extrema(grid, errors, degree + 2)
        if len(exchanged) < degree + 2:
            raise RuntimeError(f"only {len(exchanged)} of {degree + 2} alternating points were found")
        points = exchanged
    raise RuntimeError("the exchange did not settle in 60 rounds")


def report(name, target, weight, low, high, degree, round_to, unit):
    coefficients = [round_to(c) for c in minimax(target, weight, low, high, degree)]
    grid = chebyshev_grid(mpf(low), mpf(high), 4 * GRID + 1)
    largest = max(abs(weight(t) * (target(t) - evaluate(coefficients, t))) for t in grid)
    print(f"{name}: degree {degree} on [{float(low):.6g}, {float(high):.6g}], error {float(largest * unit):.3f} units")
    for power, coefficient in enumerate(coefficients):
        suffix = "f" if round_to is round_to_float32 else ""
        print(f"  [{power}] {float(coefficient).hex()}{suffix}")


def split(name, value, bits, pieces, round_last):
    """`value` as a sum whose pieces but the last have at most `bits` significant bits (Cody and Waite 1980)."""
    rest = value
    print(f"{name}, {bits} bits a piece")
    for index in range(pieces):
        if index == pieces - 1:
            piece = round_last(rest)
        else:
            exponent = floor(log(rest) / log(2))
            scale = mpf(2) ** (bits - 1 - exponent)
            piece = floor(rest * scale) / scale
        print(f"  [{index}] {float(piece).hex()}")
        rest -= piece


# A reduced argument may pass the nominal end of its interval by the rounding of k = floor(x / period + 1/2).
SLACK = mpf("1.0002")
QUARTER = (pi / 4 * SLACK) ** 2
HALF_LN2 = ln(2) / 2 * SLACK

SINE = (
    lambda z: (sin(sqrt(z)) / sqrt(z) - 1) / z,
    lambda z: z * sqrt(z) / sin(sqrt(z)),
    0, QUARTER,
)  # fmt: skip
COSINE = (
    lambda z: (cos(sqrt(z)) - 1 + z / 2) / z**2,
    lambda z: z**2 / cos(sqrt(z)),
    0, QUARTER,
)  # fmt: skip
ARCSINE = (
    lambda z: (asin(sqrt(z)) / sqrt(z) - 1) / z,
    lambda z: z * sqrt(z) / asin(sqrt(z)),
    0, mpf("0.25"),
)  # fmt: skip
EXPONENTIAL = (
    lambda r: (exp(r) - 1 - r) / r**2,
    lambda r: r**2 / exp(r),
    -HALF_LN2, HALF_LN2,
)  # fmt: skip
# float32: log(1 + f) = f - f^2/2 + f^3 P(f).
LOGARITHM = (
    lambda f: (log(1 + f) - f + f**2 / 2) / f**3,
    lambda f: abs(f**3 / log(1 + f)),
    sqrt(mpf(1) / 2) - 1, sqrt(mpf(2)) - 1,
)  # fmt: skip
# float64: log(1 + f) = 2s + s z P(z) with s = f / (2 + f), z = s^2.
LOGARITHM_BY_QUOTIENT = (
    lambda z: (log((1 + sqrt(z)) / (1 - sqrt(z))) / sqrt(z) - 2) / z,
    lambda z: z * sqrt(z) / log((1 + sqrt(z)) / (1 - sqrt(z))),
    0, ((sqrt(mpf(2)) - 1) / (sqrt(mpf(2)) + 1)) ** 2,
)  # fmt: skip


def main():
    single = (round_to_float32, mpf(2) ** 24)
    double = (round_to_float64, mpf(2) ** 53)
    print("float32")
    report("sine", *SINE, 3, *single)
    report("cosine", *COSINE, 2, *single)
    report("arcsine", *ARCSINE, 5, *single)
    report("logarithm", *LOGARITHM, 8, *single)
    report("exponential", *EXPONENTIAL, 4, *single)
    split("pi / 2", pi / 2, 16, 3, round_to_float32)
    split("ln 2", ln(2), 15, 2, round_to_float32)
    print("float64")
    report("sine", *SINE, 6, *double)
    report("cosine", *COSINE, 6, *double)
    report("arcsine", *ARCSINE, 12, *double)
    report("logarithm", *LOGARITHM_BY_QUOTIENT, 6, *double)
    report("exponential", *EXPONENTIAL, 10, *double)
    split("pi / 2", pi / 2, 40, 3, round_to_float64)
    split("ln 2", ln(2), 40, 2, round_to_float64)
    for name, value in (("2 / pi", 2 / pi), ("1 / ln 2", 1 / ln(2)), ("2 pi", 2 * pi), ("pi", pi)):
        print(f"{name}: float32 {float(round_to_float32(value)).hex()}, float64 {float(value).hex()}")
    for name, value in (("pi", pi), ("pi / 2", pi / 2)):
        for kind, rounding in (("float32", round_to_float32), ("float64", round_to_float64)):
            high = rounding(value)
            print(f"{name} = {float(high).hex()} + {float(rounding(value - high)).hex()} in {kind}")
    print(f"1 / sqrt(4 pi): float32 {float(round_to_float32(1 / sqrt(4 * pi))).hex()}, "
          f"float64 {float(1 / sqrt(4 * pi)).hex()}")  # fmt: skip


if __name__ == "__main__":
    main()
