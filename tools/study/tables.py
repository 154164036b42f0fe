"""Markdown tables of the results, and the winners as rows of default_by_getter in src/runs/track/track_fields.cpp."""
import statistics

from . import design, stages
from .criterion import pareto_front

# Options that have one value per getter in src/runs/track/track_fields.cpp; what else a winner has is said in a comment.
COLUMN_ORDER = ("boot", "prob", "ptt", "det", "closest", "tensor")


def newest(rows):
    """Rows of the program that ran last: results of two programs are not compared."""
    return [row for row in rows if row["program"] == rows[-1]["program"]] if rows else []


def final_conditions(rows, getter):
    """Names of the conditions in which the last stage ran: all of the design when the study is whole."""
    return {row["condition"] for row in rows if row["getter"] == getter and row["stage"] == "final"}


def compared(rows, getter):
    return stages.comparison(rows, getter, final_conditions(rows, getter))


def options_of(rows, getter):
    return {row["candidate"]: row["options"] for row in rows if row["getter"] == getter}


def is_allowed(rows, getter, limits=None):
    options = options_of(rows, getter)
    return lambda name: not design.is_reference(options[name]) and design.is_within(options[name], limits or {})


def seconds(found, name):
    """Median over the conditions that ran on one thread of the CPU."""
    times = [values["seconds_per_1000"] for condition, values in found.values[name].items()
             if condition in found.conditions and values.get("seconds_per_1000") is not None]
    return statistics.median(times) if times else None


def number(value, digits=3):
    return "-" if value is None else f"{value:.{digits}f}"


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return lines + ["| " + " | ".join(cells) + " |" for cells in rows]


def marks(found, name, fronts):
    return ", ".join(label for label, front in fronts.items() if name in front)


def fronts_of(found, names):
    """Names that are on a Pareto front: valid share against invalid share, the criterion against time."""
    shares = [(name, found.measure(name, "valid"), found.measure(name, "invalid")) for name in names]
    times = [(name, found.criterion(name), seconds(found, name)) for name in names if seconds(found, name) is not None]
    return {"valid/invalid": pareto_front(shares), "criterion/time": pareto_front(times)}


def getter_table(rows, getter):
    found = compared(rows, getter)
    if not found.names:
        return []
    winner = found.chosen(is_allowed(rows, getter))
    fronts = fronts_of(found, found.names)
    cells = []
    for name in found.ranked():
        low, high = found.interval(name)
        behind = found.interval(name, winner) if winner is not None and name != winner else None
        cells.append([
            ("**chosen** " if name == winner else "") + f"`{name}`", f"{found.criterion(name):.3f} ({low:.3f} to {high:.3f})",
            "" if behind is None else f"{found.criterion(name) - found.criterion(winner):+.3f} ({behind[0]:+.3f} to "
            f"{behind[1]:+.3f})", number(found.measure(name, "f1")), number(found.measure(name, "valid")),
            number(found.measure(name, "invalid")), number(seconds(found, name), 2), marks(found, name, fronts)])
    header = ["options", "criterion (95 %)", "to the chosen one", "F1", "valid", "invalid", "s per 1000", "front"]
    title = f"### {getter}, {len(found.names)} candidates in {len(found.conditions)} conditions"
    left_out = [f"\nLeft out, since runs failed or took too long: {', '.join(found.incomplete)}."] * bool(found.incomplete)
    return [title, "", *table(header, cells), *left_out, ""]


def getters_table(rows):
    """Winners, and the program as it is typed, all compared with each other."""
    chosen = {}
    for getter in design.GETTERS:
        found = compared(rows, getter)
        winner = found.chosen(is_allowed(rows, getter)) if found.names else None
        if winner is not None:
            chosen[getter] = winner
    wanted = set.intersection(*(final_conditions(rows, getter) for getter in chosen)) if chosen else set()
    shown = [row for row in rows if row["getter"] in chosen and row["condition"] in wanted
             and row["candidate"] in (chosen[row["getter"]], "defaults")]
    found = stages.compare(shown, lambda row: row["getter"] + (
        " defaults" if row["candidate"] == "defaults" else " chosen"))
    cells = []
    for name in found.ranked():
        low, high = found.interval(name)
        cells.append([name, f"{found.criterion(name):.3f} ({low:.3f} to {high:.3f})"] +
                     [number(found.measure(name, field)) for field in ("f1", "valid", "invalid", "bundles_found")] +
                     [number(seconds(found, name), 2)])
    header = ["getter", "criterion (95 %)", "F1", "valid", "invalid", "bundles", "s per 1000"]
    return [f"### Getters beside each other, {len(found.conditions)} conditions", "", *table(header, cells), ""] if cells else []


def peers_table(rows):
    """Each peer with ours of the same getter; the best F1 is that of all that are compared."""
    lines = []
    for getter in COLUMN_ORDER:
        found = stages.compare([row for row in rows if row["stage"] == "peers" and row["getter"] == getter])
        if not found.names:
            continue
        cells = []
        for name in found.ranked():
            low, high = found.interval(name)
            cells.append([name, f"{found.criterion(name):.3f} ({low:.3f} to {high:.3f})"] +
                         [number(found.measure(name, field)) for field in ("f1", "valid", "invalid")])
        left_out = [f"\nLeft out for want of conditions: {', '.join(found.incomplete)}."] * bool(found.incomplete)
        lines += [f"### {getter} beside peers, {len(found.conditions)} conditions", "",
                  *table(["", "criterion (95 %)", "F1", "valid", "invalid"], cells), *left_out, ""]
    return lines


def real_table(rows):
    real = [row for row in rows if row["stage"] == "real"]
    if not real:
        return []
    thresholds = list(real[0]["borders"])
    cells = [[row["getter"], f"`{row['candidate']}`", str(row["kept"]), number(row["mean_length_mm"], 1),
              number(row["long_share"])] +
             [number(row["borders"][threshold][share]) for threshold in thresholds
              for share in ("both_ends_share", "one_end_share")] for row in real]
    said = [f"White matter by {threshold} has {values['white_voxels']} voxels; one of them is of the border with the chance "
            f"{values['chance']:.3f}." for threshold, values in real[0]["borders"].items()]
    header = ["getter", "options", "kept", "mean mm", "20 mm and more"]
    for threshold in thresholds:
        header += [f"both ends at the border ({threshold})", f"one end or both ({threshold})"]
    return [f"### {real[0]['condition']}", "", *said, "", *table(header, cells), ""]


def summary(rows):
    """The candidates of the last stage, best first, for a file that is kept."""
    scored = [row for row in rows if row["stage"] in design.STAGES]
    found = {"program": rows[-1]["program"], "getters": {}, "real": []}
    for getter in design.GETTERS:
        of = compared(scored, getter)
        options = options_of(scored, getter)
        found["getters"][getter] = {"conditions": len(of.conditions), "candidates": [
            {"options": options[name], "criterion": round(of.criterion(name), 4),
             "interval": [round(end, 4) for end in of.interval(name)],
             **{field: round(of.measure(name, field), 4) for field in ("f1", "valid", "invalid")},
             "seconds_per_1000": seconds(of, name)} for name in of.ranked()]}
    for row in rows:
        if row["stage"] == "real":
            found["real"].append({name: row[name] for name in ("condition", "getter", "options", "kept", "mean_length_mm",
                                                               "long_share", "borders")})
    return found


def all_tables(rows):
    scored = [row for row in rows if row["stage"] in design.STAGES]
    lines = getters_table(scored)
    for getter in design.GETTERS:
        lines += getter_table(scored, getter)
    return "\n".join(lines + peers_table(rows) + real_table(rows))


def choose(rows, limits=None):
    """Winners as rows of default_by_getter in src/runs/track/track_fields.cpp; a getter that was not studied has '?'."""
    scored = [row for row in rows if row["stage"] in design.STAGES]
    winners, notes = {}, []
    for getter in COLUMN_ORDER:
        found = compared(scored, getter)
        winner = found.chosen(is_allowed(scored, getter, limits)) if found.names else None
        if winner is None:
            notes.append(f"// {getter}: no complete candidate")
            continue
        winners[getter] = options_of(scored, getter)[winner]
        low, high = found.interval(winner)
        notes.append(f"// {getter}: {winner} (criterion {found.criterion(winner):.3f}, {low:.3f} to {high:.3f}, "
                     f"{len(found.conditions)} conditions)")
    lines = []
    for option in dict.fromkeys(option for getter in COLUMN_ORDER for option in design.AXES[getter]):
        values = []
        for getter in COLUMN_ORDER:
            if option not in design.AXES[getter]:
                values.append("-")
            elif getter not in winners:
                values.append("?")
            else:
                value = winners[getter].get(option, "not given")
                values.append("given" if value == "" else value)
        cells = "".join(f'"{value}",'.ljust(14) for value in values)
        lines.append(f"    {{\"{option}\",".ljust(34) + "{" + cells.rstrip().rstrip(",") + "}},")
    whole = len(design.conditions())
    fewest = min((len(final_conditions(scored, getter)) for getter in winners), default=0)
    if fewest < whole:
        notes.append(f"// not the whole study: {fewest} of {whole} conditions have run for each getter")
    return "\n".join([f"    //{'':28}" + "".join(getter.ljust(14) for getter in COLUMN_ORDER)] + lines + notes)
