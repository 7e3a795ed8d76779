"""Greedy descent on beta' K~ beta / 2 - 1' beta over beta >= 0, two weights at a time, compiled.

Imported only where it is used. K~ is a kernel matrix with signs, side_i side_j matrix_ij.

The first weight of a step is the one that violates optimality most. The second is the one with
which it gains most: single weights go to and fro where points resemble each other, and pairs do
not. To find it takes as long as to take the step. Where points have little to do with each other,
the one that violates second most is nearly as good, and costs nothing. Then a second such pair goes
with the first: to read four rows at once takes little longer than to read two.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numba import uint64 as uint64_type

from atomcast.known.kernels._row_loops import fetched

uint64: Any = uint64_type
#: Violations are compared in so many lanes, each with a largest one of its own, which vectorises.
LANES = 64
#: So many steps lie between two looks at the gap.
LOOK = 32
#: To look for the second weight is worth it if steps gain so many times as much. Where they do
#: not, so many looks go by before that is tried again.
WORTH, SPARED = 1.3, 15
#: A second pair goes with the first where the first leaves to it more than this share of the worst
#: violation: less is better left to a later step, and others are not tried until the next look.
LEFT = 0.5
#: A Newton step costs as much as so many updates of a number, and more by its size: LAPACK
#: multiplies so many numbers of a factor in the time of one update.
CALL, NEWTON = 1e5, 50
#: Pairs of points that are closer than this share of their lengths are moved one by one.
ALIKE = 1e-6
FAST = {"reassoc", "contract", "nsz", "nnan", "ninf"}


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def greedy_steps(
    matrix: Any,
    points: Any,
    values: Any,
    place: Any,
    recipe: Any,
    side: Any,
    beta: Any,
    margins: Any,
    tolerance: Any,
    most: Any,
) -> Any:  # pragma: no cover - compiled
    """Change pairs of weights that violate optimality, until the relative gap is small.

    The first five arguments are those of `Rows`; beta and its margins, K~ beta, are changed in
    place. Returns the number of weights changed, and False if that has taken as long as a Newton
    step would.
    """
    n, number = uint64(len(beta)), values.dtype.type
    short, lanes = np.empty(n), np.empty(LANES, values.dtype)
    # What weights are chosen by need not be more precise than the matrix.
    own, room, sign = (
        np.empty(n, values.dtype),
        np.empty(n, values.dtype),
        np.empty(n, values.dtype),
    )
    for j in range(n):
        short[j], own[j], sign[j] = 1.0 - margins[j], recipe.diagonal[points[j]], side[j]
        room[j] = beta[j] * own[j]
    short_of_room, steps, enough, next_look, try_four = len(recipe.stamp) > 0, 0, False, 0, 0
    row_a = values[fetched(matrix, points, values, place, recipe, uint64(0))]
    row_b, row_c, row_d, four = row_a, row_a, row_a, False
    # By so much, with its sign, a row is taken from what margins fall short of one.
    pull_a, pull_b, pull_c, pull_d = 0.0, 0.0, 0.0, 0.0
    gained, plain, spared = 0.0, 0.0, 0
    while True:
        if four:
            update_four(
                row_a, row_b, row_c, row_d, pull_a, pull_b, pull_c, pull_d,
                sign, room, short, lanes,
            )  # fmt: skip
        else:
            update(row_a, row_b, pull_a, pull_b, sign, room, short, lanes)
        worst = largest(lanes)
        if steps >= next_look or worst <= 0.0:
            next_look = steps + LOOK
            total, square, most_short, free = 0.0, 0.0, -np.inf, 0.0
            for j in range(n):
                total += beta[j]
                square += beta[j] * (1.0 - short[j])
                most_short = max(most_short, short[j])
                free += beta[j] > 0.0
            enough = total > 0.0 and 2.0 * (1.0 - (1.0 - most_short) * total / square) <= tolerance
            enough = enough or worst <= 0.0
            if enough or steps >= most or steps * n > CALL + 4 * free * n + free**3 / NEWTON:
                break
            spared = spared - 1 if spared > 0 else SPARED if gained < WORTH * plain else 0
            gained, plain = 0.0, 0.0
        a = picked(lanes, short, room)
        b = picked(lanes, short, room)
        # To ask for a row that is there takes longer than to see that it is.
        if place[a] < 0 or short_of_room:
            fetched(matrix, points, values, place, recipe, a)
        row_a = values[uint64(place[a])]
        length = recipe.diagonal[points[a]]
        if spared == 0:
            _, _, fall = best_pair(
                short[a], short[b], length, recipe.diagonal[points[b]],
                side[a] * side[b] * row_a[b], beta[a], beta[b], a == b,
            )  # fmt: skip
            plain += fall
            alone = number(max(-beta[a], short[a] / length) * side[a])
            kept, room[a] = short[a], number(0.0)
            short[a] = alone * sign[a] * row_a[a]  # after its own step it gains nothing more
            compare(row_a, alone, number(1.0 / length), own, sign, room, short, lanes)
            b = paired(row_a, alone, number(1.0 / length), own, sign, room, short, lanes)
            short[a] = kept
        if place[b] < 0 or short_of_room:
            fetched(matrix, points, values, place, recipe, b)
        row_b = values[uint64(place[b])]
        change_a, change_b, fall = best_pair(
            short[a], short[b], length, recipe.diagonal[points[b]],
            side[a] * side[b] * row_a[b], beta[a], beta[b], a == b,
        )  # fmt: skip
        gained += fall
        beta[a] += change_a
        beta[b] += change_b
        room[a], room[b] = beta[a] * own[a], beta[b] * own[b]
        pull_a, pull_b, four = change_a * side[a], change_b * side[b], False
        steps += 2
        if spared == 0 or steps < try_four or n < uint64(LANES) or short_of_room:
            continue
        c, d = picked(lanes, short, room), picked(lanes, short, room)
        short_c = short[c] - side[c] * (pull_a * row_a[c] + pull_b * row_b[c])
        short_d = short[d] - side[d] * (pull_a * row_a[d] + pull_b * row_b[d])
        least = min(max(short_c, min(-short_c, room[c])), max(short_d, min(-short_d, room[d])))
        four = least > LEFT * worst
        if not four:
            try_four = steps + LOOK
        else:
            row_c = values[fetched(matrix, points, values, place, recipe, c)]
            row_d = values[fetched(matrix, points, values, place, recipe, d)]
            change_c, change_d, _ = best_pair(
                short_c, short_d, recipe.diagonal[points[c]], recipe.diagonal[points[d]],
                side[c] * side[d] * row_c[d], beta[c], beta[d], False,
            )  # fmt: skip
            beta[c] += change_c
            beta[d] += change_d
            room[c], room[d] = beta[c] * own[c], beta[d] * own[d]
            pull_c, pull_d = change_c * side[c], change_d * side[d]
            steps += 2
    for j in range(n):
        margins[j] = 1.0 - short[j]
    return steps, enough


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def best_pair(
    short_a: Any,
    short_b: Any,
    length_a: Any,
    length_b: Any,
    across: Any,
    beta_a: Any,
    beta_b: Any,
    one: Any,
) -> Any:  # pragma: no cover - compiled
    """The best change of two weights, neither of which falls below zero, and what it gains."""
    determinant = length_a * length_b - across * across
    x, y = max(-beta_a, short_a / length_a), 0.0
    if one:
        return x, y, x * (short_a - 0.5 * length_a * x)
    if determinant > ALIKE * length_a * length_b:
        x = (short_a * length_b - short_b * across) / determinant
        y = (short_b * length_a - short_a * across) / determinant
        if x < -beta_a or y < -beta_b:  # then one of them ends at zero
            x, y = -beta_a, max(-beta_b, (short_b + across * beta_a) / length_b)
            other = max(-beta_a, (short_a + across * beta_b) / length_a)
            if gain(x, y, short_a, short_b, length_a, length_b, across) < gain(
                other, -beta_b, short_a, short_b, length_a, length_b, across
            ):
                x, y = other, -beta_b
    else:
        y = max(-beta_b, (short_b - across * x) / length_b)
    return x, y, gain(x, y, short_a, short_b, length_a, length_b, across)


@njit(cache=True, nogil=True, fastmath=FAST)
def gain(
    x: Any, y: Any, short_a: Any, short_b: Any, length_a: Any, length_b: Any, across: Any
) -> Any:  # pragma: no cover - compiled
    """By how much the objective falls where two weights change by so much."""
    return x * (short_a - 0.5 * length_a * x - across * y) + y * (short_b - 0.5 * length_b * y)


@njit(cache=True, nogil=True, fastmath=FAST)
def largest(lanes: Any) -> Any:  # pragma: no cover - compiled
    """The largest number of all lanes; NumPy looks for NaNs as well, which takes longer."""
    worst = lanes[0]
    for lane in range(uint64(LANES)):
        worst = max(worst, lanes[lane])
    return worst


@njit(cache=True, nogil=True, fastmath=FAST)
def leading(lanes: Any) -> Any:  # pragma: no cover - compiled
    """The lane that has it, which is then out of the race."""
    worst, lane = largest(lanes), uint64(0)
    while lanes[lane] < worst:
        lane += uint64(1)
    lanes[lane] = -1.0
    return lane


@njit(cache=True, nogil=True, fastmath=FAST)
def picked(lanes: Any, short: Any, room: Any) -> Any:  # pragma: no cover - compiled
    """The worst violation of the worst lane."""
    n, lane = uint64(len(short)), leading(lanes)
    at, worst = min(lane, n - uint64(1)), -1.0
    for j in range(lane, n, uint64(LANES)):
        violation = max(short[j], min(-short[j], room[j]))
        if violation > worst:
            at, worst = uint64(j), violation
    return at


@njit(cache=True, nogil=True, fastmath=FAST)
def update(
    row_a: Any,
    row_b: Any,
    pull_a: Any,
    pull_b: Any,
    sign: Any,
    room: Any,
    short: Any,
    lanes: Any,
) -> None:  # pragma: no cover - compiled
    """Take two changes into account in what margins fall short of one, and find the worst ones."""
    n, size, number = uint64(len(short)), uint64(LANES), lanes.dtype.type
    lanes[:] = number(0.0)
    for block in range((n + size - uint64(1)) // size):
        start = uint64(block) * size
        for lane in range(min(size, n - start)):
            j = start + lane
            s = short[j] - sign[j] * (pull_a * row_a[j] + pull_b * row_b[j])
            short[j] = s
            # Too large a margin counts as far as there is weight to take away.
            violation = number(s)
            lanes[lane] = max(lanes[lane], max(violation, min(-violation, room[j])))


@njit(cache=True, nogil=True, fastmath=FAST)
def update_four(
    row_a: Any,
    row_b: Any,
    row_c: Any,
    row_d: Any,
    pull_a: Any,
    pull_b: Any,
    pull_c: Any,
    pull_d: Any,
    sign: Any,
    room: Any,
    short: Any,
    lanes: Any,
) -> None:  # pragma: no cover - compiled
    """The same with four changes."""
    n, size, number = uint64(len(short)), uint64(LANES), lanes.dtype.type
    lanes[:] = number(0.0)
    for block in range((n + size - uint64(1)) // size):
        start = uint64(block) * size
        for lane in range(min(size, n - start)):
            j = start + lane
            first = pull_a * row_a[j] + pull_b * row_b[j]
            s = short[j] - sign[j] * (first + (pull_c * row_c[j] + pull_d * row_d[j]))
            short[j] = s
            violation = number(s)
            lanes[lane] = max(lanes[lane], max(violation, min(-violation, room[j])))


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def compare(
    row: Any, change: Any, inverse: Any, own: Any, sign: Any, room: Any, short: Any, lanes: Any
) -> None:  # pragma: no cover - compiled
    """In every lane, the most that a weight gains beside one that changes by so much, doubled.

    The inverse is that of the diagonal at that one.
    """
    n, size, number = uint64(len(short)), uint64(LANES), lanes.dtype.type
    lanes[:] = number(0.0)
    for block in range((n + size - uint64(1)) // size):
        start = uint64(block) * size
        for lane in range(min(size, n - start)):
            j = start + lane
            s = number(short[j]) - change * sign[j] * row[j]
            violation = max(s, min(-s, room[j]))
            left = max(own[j] - row[j] * (row[j] * inverse), number(ALIKE) * own[j])
            lanes[lane] = max(lanes[lane], violation * (violation / left))


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def paired(
    row: Any, change: Any, inverse: Any, own: Any, sign: Any, room: Any, short: Any, lanes: Any
) -> Any:  # pragma: no cover - compiled
    """The weight that gains most, in the lane that has it."""
    n, lane, number = uint64(len(short)), leading(lanes), lanes.dtype.type
    at, most = min(lane, n - uint64(1)), -1.0
    for j in range(lane, n, uint64(LANES)):
        s = number(short[j]) - change * sign[j] * row[j]
        violation = max(s, min(-s, room[j]))
        left = max(own[j] - row[j] * (row[j] * inverse), number(ALIKE) * own[j])
        if violation * (violation / left) > most:
            at, most = uint64(j), violation * (violation / left)
    return at
