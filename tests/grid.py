#!/usr/bin/env python3
"""Prediction beside measurement, point by point, with `longhaul compare`. Usage:
  tests/grid.py LONGHAUL                       the whole grid, as a table in Markdown
  tests/grid.py LONGHAUL README.md --update    the same, written between README's lines <!-- tests/grid.py -->
  tests/grid.py LONGHAUL --subset              the small points, held to the bounds: median 5 %, worst 15 % (CI)
Nothing is fitted to any row. Where chance decides (jitter, loss) a row is the mean over seeds, its bound 20 %."""
import json
import statistics
import subprocess
import sys
import time

MEDIAN, WORST, BY_CHANCE = 0.05, 0.15, 0.20
SEEDS = 5
MARK = "<!-- tests/grid.py -->\n"

# A gradient of so many MB: layers, hidden, vocabulary.
GRADIENT = {1: (8, 64, 1024), 8: (4, 256, 3328), 16: (8, 256, 6656), 64: (8, 512, 13312), 256: (8, 1024, 26624)}
HAR = "[{name: har, allreduce: hierarchical}]"
SHARDED = (
    "[{name: sharded, allreduce: hierarchical, sharding: optimizer}, "
    "{name: sharded-parameters, allreduce: hierarchical, sharding: parameters, overlap: {chunk: 1 layer, depth: 2}}]"
)
REPLICATED = "[{name: flat, allreduce: ring}, {name: har, allreduce: hierarchical}]"  # what a pipeline can do
PIPELINED = {"lab-2x4": ("training.pipeline=2", "training.data=4"), "lab-3x2": ("training.pipeline=2", "training.data=3")}


def point(scenario, megabytes, rtt=None, rate=None, pipelined=False, strategies=None):
    layers, hidden, vocabulary = GRADIENT[megabytes]
    sets = [f"model.layers={layers}", f"model.hidden={hidden}", f"model.vocabulary={vocabulary}"]
    words = [scenario, f"{megabytes} MB"]
    if rtt:
        sets.append(f"wan.rtt={rtt}")
    words.append(rtt or "its own")
    if rate:
        sets.append(f"wan.wave_rate={rate}")
    words.append(rate or "its own")
    if pipelined:
        sets += PIPELINED[scenario]
    words.append("2 stages" if pipelined else "-")
    if strategies:
        sets.append(f"strategies={strategies}")
    return scenario, sets, words


SUBSET = [
    point("lab-2x4", 1, "1 ms"),
    point("lab-2x4", 1, "21.3 ms"),
    point("lab-2x4", 1, "100 ms"),
    point("lab-2x4", 1, "21.3 ms", pipelined=True),
    point("lab-3x2", 1),
    point("lab-3x2", 1, pipelined=True, strategies=REPLICATED),
    point("lab-2x4", 1, "21.3 ms", "1 Gb/s", strategies=SHARDED),
]
GRID = (
    SUBSET
    + [point("lab-3x2", 1, "50 ms", pipelined=True, strategies=REPLICATED)]
    + [point("lab-2x4", 1, "21.3 ms", "100 Mb/s", strategies=SHARDED)]
    + [point("lab-2x4", 16, rtt) for rtt in ("1 ms", "5 ms", "21.3 ms", "50 ms", "100 ms")]
    + [point("lab-2x4", 16, "21.3 ms", rate) for rate in ("100 Mb/s", "2 Gb/s")]
    + [point("lab-2x4", 16, "21.3 ms", pipelined=True), point("lab-2x4", 16, "21.3 ms", strategies=SHARDED)]
    + [point("lab-2x4", 64, rtt, "1 Gb/s", strategies=HAR) for rtt in ("5 ms", "100 ms")]
    + [point("lab-2x4", 256, "21.3 ms", "2 Gb/s", strategies=HAR)]
    + [point("lab-3x2", 8, rtt) for rtt in (None, "1 ms", "100 ms")]
    + [point("lab-3x2", 8, None, "100 Mb/s"), point("lab-3x2", 8, pipelined=True, strategies=REPLICATED)]
)
CHANCE = [("wan.jitter=0.7ms", "jitter 0.7 ms"), ("wan.loss=1e-4", "loss 1e-4"), ("wan.loss=1e-3", "loss 1e-3")]


def compare(longhaul, scenario, sets):
    words = [longhaul, "compare", scenario, "--json", "-", "--timeout", "15min"]
    for text in sets:
        words += ["--set", text]
    done = subprocess.run(words, stdout=subprocess.PIPE)
    if done.returncode:
        sys.exit(done.returncode)  # 77: no lab here; what is missing has been said
    return json.loads(done.stdout)["points"][0]["strategies"]


def say(text):
    print(text, flush=True)


def row(words, strategy, predicted, measured):
    cells = [*words, strategy, f"{predicted * 1e3:.2f}", f"{measured * 1e3:.2f}", f"{predicted / measured - 1:+.1%}"]
    return "| " + " | ".join(cells) + " |"


HEAD = (
    "| scenario | gradient | RTT | link | pipeline | strategy | predicted, ms | measured, ms | error |\n"
    "|---|---|---|---|---|---|---|---|---|"
)


def run_points(longhaul, points):
    lines, errors = [], []
    for scenario, sets, words in points:
        begin = time.monotonic()
        for strategy in compare(longhaul, scenario, sets):
            predicted, measured = (strategy[key]["step_s"] for key in ("predicted", "measured"))
            lines.append(row(words, strategy["name"], predicted, measured))
            errors.append((abs(predicted / measured - 1), lines[-1]))
            say(lines[-1])
        print(f"{' '.join(words)}: {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
    return lines, errors


def run_chance(longhaul):
    lines, missed = [], []
    for setting, words in CHANCE:
        pairs = []
        for seed in range(1, SEEDS + 1):
            scenario, sets, _ = point("lab-2x4", 16, "21.3 ms", strategies=HAR)
            pairs += compare(longhaul, scenario, [*sets, setting, f"seed={seed}"])
        predicted, measured = (statistics.mean(p[key]["step_s"] for p in pairs) for key in ("predicted", "measured"))
        spread = statistics.stdev(p["measured"]["step_s"] for p in pairs)
        lines.append(
            f"| {words} | {predicted * 1e3:.1f} | {measured * 1e3:.1f} | {spread * 1e3:.1f} | {predicted / measured - 1:+.1%} |"
        )
        if abs(predicted / measured - 1) > BY_CHANCE:
            missed.append(words)
        say(lines[-1])
    head = f"| lab-2x4, 16 MB, har | predicted, ms | measured, ms | sd of seeds, ms | error |\n|---|---|---|---|---|"
    return [head, *lines], missed


def summary(errors):
    median, worst = statistics.median(e for e, _ in errors), max(errors)
    text = f"{len(errors)} comparisons: median error {median:.1%}, worst {worst[0]:.1%}."
    missed = [line for error, line in errors if error > WORST]
    if missed:
        text += f" {len(missed)} miss the bound of {WORST:.0%}."
    return text, median <= MEDIAN and not missed


def main():
    longhaul, subset = sys.argv[1], "--subset" in sys.argv
    say(HEAD)
    lines, errors = run_points(longhaul, SUBSET if subset else GRID)
    text, fine = summary(errors)
    say("\n" + text)
    if subset:
        sys.exit(not fine)
    chance, missed = run_chance(longhaul)
    last = f"Means over {SEEDS} seeds, bound {BY_CHANCE:.0%}: " + (f"missed by {', '.join(missed)}." if missed else "all within.")
    say("\n" + last)
    if "--update" in sys.argv:
        block = "\n".join([HEAD, *lines, "", text, "", *chance, "", last, ""])
        parts = open(sys.argv[2]).read().split(MARK)
        parts[1] = block
        open(sys.argv[2], "w").write(MARK.join(parts))


main()
