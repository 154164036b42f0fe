"""Makes src/dmri/sphere/spheres.txt: the directions and neighbour graphs of Cingulum's own spheres.

Mirror family (mirror321, mirror406, mirror501): the class I geodesic subdivision of the icosahedron (Coxeter 1971) with
frequency 8, 9, 10, that is 10 n^2 + 2 points, in the orientation where x = 0, y = 0, z = 0 are mirror planes, then
relaxed: the points of one octant move so that the electrostatic energy of all becomes smallest while every mirror image
moves along, which evens out the spacing. The points of one octant are made and the others are their exact mirror
images. An orbit is a point with its images; on the hemisphere it has four members, two on a mirror plane, one on an
axis. Orbit o = 32 k + lane: orbits of one lane are neighbours (triangles for mirror321, strips of triangles for the
others; found by integer programming), so that tests between them stay in the lane's registers; lanes follow each other
along a short path. Slots and vertex order: contract, section 2.

Repulsion family (repulsion724, repulsion362): antipodal pairs of smallest electrostatic energy (Thomson 1904; Jones et
al., Magn. Reson. Med. 42, 1999) found by quasi-Newton descent from several random starts; vertices in the order of a
Hamiltonian path of the neighbour graph.

Run: python3 tools/make_spheres.py (numpy and scipy; about a minute). The result is kept in the repository: another
version of the libraries may move a point in its last digits.
"""

import itertools
import pathlib
import sys

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp, minimize
from scipy.spatial import ConvexHull, cKDTree

LANES = 32
OUTPUT = pathlib.Path(__file__).resolve().parent.parent / "src" / "dmri" / "sphere" / "spheres.txt"


# --- icosahedral points -----------------------------------------------------------------------------------------------


def icosahedron():
    golden = (1 + 5**0.5) / 2
    corners = []
    for a, b in itertools.product((1, -1), (golden, -golden)):
        corners += [(0, a, b), (a, b, 0), (b, 0, a)]
    corners = np.array(corners, float)
    return corners, ConvexHull(corners).simplices


def octant_points(frequency):
    """The points with x, y, z >= 0 of the subdivided icosahedron, not yet relaxed; exact zeros on the planes."""
    corners, faces = icosahedron()
    found = []
    for a, b, c in corners[faces]:
        for i in range(frequency + 1):
            for j in range(frequency + 1 - i):
                point = (i * a + j * b + (frequency - i - j) * c) / frequency
                point /= np.linalg.norm(point)
                if np.all(point > -1e-9):
                    point[np.abs(point) < 1e-9] = 0
                    found.append(point)
    unique = []
    for point in sorted(found, key=lambda p: tuple(-np.round(p[::-1], 9))):
        if not unique or np.min(np.linalg.norm(np.array(unique) - point, axis=1)) > 1e-6:
            unique.append(point)
    return np.array(unique)


def signs():
    return np.array(list(itertools.product((1, -1), repeat=3)), float)


def relax_octant(points):
    """Minimises the energy of all mirror images together. A coordinate that is zero stays zero."""
    free = points != 0
    images = signs()
    # The multiplicity with which a point's images coincide.
    weight = 1.0 / 2.0 ** np.sum(~free, axis=1)

    def energy(flat):
        raw = np.zeros_like(points)
        raw[free] = flat
        norm = np.linalg.norm(raw, axis=1, keepdims=True)
        unit = raw / norm
        total = 0.0
        gradient = np.zeros_like(unit)
        for sign in images:
            difference = unit[:, None, :] - (unit * sign)[None, :, :]
            distance = np.sqrt(np.sum(difference**2, axis=2))
            inverse = np.where(distance > 1e-9, 1 / np.maximum(distance, 1e-9), 0.0)
            pair = weight[:, None] * weight[None, :]
            total += 0.5 * np.sum(pair * inverse)
            gradient -= np.einsum("ij,ijk->ik", pair * inverse**3, difference)
        tangential = (gradient - unit * np.sum(gradient * unit, axis=1, keepdims=True)) / norm
        return total, tangential[free]

    result = minimize(energy, points[free], jac=True, method="L-BFGS-B",
                      options={"maxiter": 3000, "maxfun": 6000, "ftol": 1e-15, "gtol": 1e-10, "maxcor": 30})
    relaxed = np.zeros_like(points)
    relaxed[free] = result.x
    return unit_rows(np.abs(relaxed))


def unit_rows(points):
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def orbit_members(point):
    """Members 0..3: the representative on the kept half of (x,y,z), (x,y,-z), (x,-y,z), (-x,y,z), or None where a
    member is, up to sign, an earlier one."""
    members = []
    for sign in ((1, 1, 1), (1, 1, -1), (1, -1, 1), (-1, 1, 1)):
        member = kept_representative(point * np.array(sign, float))
        members.append(None if any(m is not None and np.array_equal(m, member) for m in members) else member)
    return members


def kept_representative(point):
    x, y, z = point
    keep = z > 0 or (z == 0 and (y > 0 or (y == 0 and x > 0)))
    return (point if keep else -point) + 0.0  # + 0.0 turns -0.0 into +0.0


# --- graphs -----------------------------------------------------------------------------------------------------------


def half_edges(directions):
    """Edges of the convex hull of the directions and their opposites, as pairs of directions."""
    count = len(directions)
    faces = ConvexHull(np.vstack([directions, -directions])).simplices % count
    pairs = np.vstack([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [0, 2]]])
    pairs = np.unique(np.sort(pairs, axis=1), axis=0)
    assert len(pairs) == 3 * count - 3
    return [tuple(pair) for pair in pairs.tolist()]


def neighbour_sets(count, edges):
    neighbours = [set() for _ in range(count)]
    for a, b in edges:
        neighbours[a].add(b)
        neighbours[b].add(a)
    return neighbours


def octant_edges(points):
    """Pairs of orbits whose members inside the octant are joined by an edge."""
    directions, owner = [], []
    for orbit, point in enumerate(points):
        for member in orbit_members(point):
            if member is not None:
                directions.append(member)
                owner.append((orbit, np.array_equal(member, point)))
    result = set()
    for a, b in half_edges(np.array(directions)):
        if owner[a][1] and owner[b][1] and np.dot(directions[a], directions[b]) > 0:
            result.add(tuple(sorted((owner[a][0], owner[b][0]))))
    return sorted(result)


def inner_edges(neighbours, group):
    return sum(len(neighbours[v] & group) for v in group) // 2


def compact_groups(neighbours, size):
    """All connected sets of `size` orbits with at most one inner edge less than such sets can have (2 size - 3)."""
    groups = {frozenset([v]) for v in range(len(neighbours))}
    for step in range(1, size):
        wanted = max(2 * (step + 1) - 4, 1)
        grown = set()
        for group in groups:
            for candidate in set().union(*(neighbours[v] for v in group)) - group:
                new = group | {candidate}
                if inner_edges(neighbours, new) >= wanted:
                    grown.add(new)
        groups = grown
    return sorted(tuple(sorted(group)) for group in groups)


def split_into_lanes(points, edges):
    """A list per lane: the orbits of the lane, first of all lanes with one more than the others."""
    count = len(points)
    neighbours = neighbour_sets(count, edges)
    rounds = -(-count // LANES)
    long_lanes = count - (rounds - 1) * LANES
    sizes = {rounds: long_lanes, rounds - 1: LANES - long_lanes}
    groups = [group for size in sizes for group in compact_groups(neighbours, size)]
    cover = np.zeros((count, len(groups)))
    for column, group in enumerate(groups):
        cover[list(group), column] = 1
    of_size = np.array([[len(group) == size for group in groups] for size in sizes], float)
    lost_edges = [2 * len(group) - 3 - inner_edges(neighbours, set(group)) for group in groups]
    solution = milp(lost_edges,
                    constraints=[LinearConstraint(cover, 1, 1), LinearConstraint(of_size, list(sizes.values()),
                                                                                  list(sizes.values()))],
                    integrality=np.ones(len(groups)), bounds=Bounds(0, 1),
                    options={"time_limit": 120})
    if solution.x is None:
        raise SystemExit(f"{count} orbits do not split into groups of {sizes}: {solution.message}")
    chosen = [groups[i] for i in np.flatnonzero(solution.x > 0.5)]
    print(f"{count} orbits: {sum(inner_edges(neighbours, set(group)) for group in chosen)} edges inside lanes, "
          f"{round(solution.fun)} fewer than triangulated groups have", file=sys.stderr)
    lanes = []
    for size in sizes:
        own = [list(group) for group in chosen if len(group) == size]
        centres = np.array([points[group].mean(axis=0) for group in own])
        lanes += [own[i] for i in short_path(centres)]
    return lanes


def short_path(points):
    """Order of points along a short open path: nearest neighbours first, then 2-opt."""
    count = len(points)
    if count < 3:
        return list(range(count))
    distance = np.linalg.norm(points[:, None] - points[None], axis=2)
    path = [int(np.argmax(points[:, 2]))]
    while len(path) < count:
        left = [i for i in range(count) if i not in path]
        path.append(min(left, key=lambda i: distance[path[-1], i]))
    improved = True
    while improved:
        improved = False
        for i in range(count - 1):
            for j in range(i + 1, count):
                before = (distance[path[i - 1], path[i]] if i > 0 else 0) + (
                    distance[path[j], path[j + 1]] if j + 1 < count else 0)
                after = (distance[path[i - 1], path[j]] if i > 0 else 0) + (
                    distance[path[i], path[j + 1]] if j + 1 < count else 0)
                if after < before - 1e-12:
                    path[i:j + 1] = path[i:j + 1][::-1]
                    improved = True
    return path


def make_mirror(frequency):
    points = relax_octant(octant_points(frequency))
    lanes = split_into_lanes(points, octant_edges(points))
    orbits = [None] * len(points)
    for lane, group in enumerate(lanes):
        # Within a lane the order is free; the first round takes the orbit nearest to the z axis.
        for k, orbit in enumerate(sorted(group, key=lambda o: -points[o][2])):
            orbits[LANES * k + lane] = orbit
    members = [orbit_members(points[orbit]) for orbit in orbits]
    directions = []
    for first in range(0, len(orbits), LANES):
        for member in range(4):
            directions += [m[member] for m in members[first:first + LANES] if m[member] is not None]
    directions = np.array(directions)
    return directions, half_edges(directions), points[orbits]


# --- repulsion --------------------------------------------------------------------------------------------------------


def pair_energy(flat):
    raw = flat.reshape(-1, 3)
    norm = np.linalg.norm(raw, axis=1, keepdims=True)
    unit = raw / norm
    products = unit @ unit.T
    np.fill_diagonal(products, 0)
    minus = 1 / np.sqrt(2 - 2 * products)
    plus = 1 / np.sqrt(2 + 2 * products)
    np.fill_diagonal(minus, 0)
    np.fill_diagonal(plus, 0)
    gradient = (minus**3 - plus**3) @ unit
    gradient -= unit * np.sum(gradient * unit, axis=1, keepdims=True)
    return 0.5 * np.sum(minus + plus), (gradient / norm).ravel()


def make_repulsion(count, seed, starts):
    rng = np.random.default_rng(seed)
    best = None
    for _ in range(starts):
        start = unit_rows(rng.normal(size=(count, 3)))
        result = minimize(pair_energy, start.ravel(), jac=True, method="L-BFGS-B",
                          options={"maxiter": 4000, "maxfun": 8000, "ftol": 1e-14, "gtol": 1e-8, "maxcor": 20})
        if best is None or result.fun < best.fun:
            best = result
    points = unit_rows(best.x.reshape(-1, 3))
    points = np.array([kept_representative(p) for p in points])
    order = hamiltonian_path(neighbour_sets(count, half_edges(points)), points, rng)
    points = points[order]
    return points, half_edges(points)


def hamiltonian_path(neighbours, points, rng):
    """Grows a path towards the vertex with the fewest free neighbours; where it is stuck, its end is turned round
    (Posa 1976)."""
    count = len(neighbours)
    while True:
        path = [int(np.argmax(points[:, 2]))]
        on_path = set(path)
        for _ in range(200 * count):
            if len(path) == count:
                return path
            free = [v for v in neighbours[path[-1]] if v not in on_path]
            if free:
                step = min(free, key=lambda v: (len(neighbours[v] - on_path), rng.random()))
                path.append(step)
                on_path.add(step)
                continue
            pivot = path.index(rng.choice(sorted(neighbours[path[-1]])))
            path[pivot + 1:] = path[pivot + 1:][::-1]


# --- output -----------------------------------------------------------------------------------------------------------


def nearest_angles(directions):
    everything = np.vstack([directions, -directions])
    distance, _ = cKDTree(everything).query(everything, k=2)
    return np.degrees(2 * np.arcsin(distance[:, 1] / 2))


HEADER = """\
# The named spheres: made by tools/make_spheres.py, compiled into the library by tools/embed_spheres.py; not to be edited.
# directions: x y z of the hemisphere, of a mirror sphere in slot order. edges: a direction and its neighbours of higher
# index. orbits, of mirror spheres alone: member 0 (x, y, z >= 0) of each orbit. A count follows each of the three words.
"""


def table(name, directions, edges, orbits):
    """One sphere as text. repr writes the shortest decimals that read back as the same double."""
    lines = ["", f"sphere {name}", f"directions {len(directions)}"]
    lines += [" ".join(repr(float(c)) for c in d) for d in directions]
    higher = {}
    for a, b in edges:
        higher.setdefault(a, []).append(b)
    lines.append(f"edges {len(edges)}")
    lines += [" ".join(str(i) for i in (a, *others)) for a, others in higher.items()]
    if orbits is not None:
        lines.append(f"orbits {len(orbits)}")
        lines += [" ".join(repr(float(c)) for c in d) for d in orbits]
    return "\n".join(lines) + "\n"


def main():
    spheres = [(f"mirror{5 * n * n + 1}", *make_mirror(n)) for n in (8, 9, 10)]
    spheres += [(f"repulsion{2 * count}", *make_repulsion(count, 724, starts), None) for count, starts in
                ((362, 6), (181, 12))]
    parts = []
    for name, directions, edges, orbits in spheres:
        angles = nearest_angles(directions)
        energy = pair_energy(directions.ravel())[0]
        print(f"{name}: {len(directions)} directions, {len(edges)} edges, nearest neighbour {angles.mean():.4f} deg on "
              f"average, {angles.min():.4f} at least, {angles.max():.4f} at most, energy {energy:.6f}"
              + (f", {len(orbits)} orbits" if orbits is not None else ""), file=sys.stderr)
        parts.append(table(name, directions, edges, orbits))
    OUTPUT.write_text(HEADER + "".join(parts))


if __name__ == "__main__":
    main()
