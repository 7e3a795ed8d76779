"""How long a round takes on each engine, beside a bare loop of the same messages.

    python benchmarks/engines.py                 all engines, N = 1, 2, 4, 8, d = 1,000 and 10,000,
                                                 and where the time of MPI and Ray goes
    python benchmarks/engines.py --only mpi      one of them (local, mpi, ray, federated)
    python benchmarks/engines.py --own           only where the time goes
    python benchmarks/engines.py --speedup       what a second rank gains: dense Lasso (2,000 x
                                                 100,000), kernel columns, beside plain reading
    python benchmarks/engines.py --least         the best batch instead of the median one
    python benchmarks/engines.py --json          with figures as JSON for summary.py

Columns, in microseconds a round:

bare       the same messages in a loop written directly for the engine: Allgather of a row and
           Bcast of d numbers for MPI; a call to every actor that brings the last atom, and a call
           for the next one, for Ray
exchange   what atomcast does to carry finished messages
session    all that a cluster does in a round: propose, agree, vote, broadcast one new atom of d
           float64, wire format and ledger included; scoring and stepping are taken out (Ray's
           nodes still score their eight atoms)
run        a whole round of the solver: line search on 64 atoms a node, 40 rounds at a time
work       how much of that is arithmetic: scores, objective, gap, step, new columns (of Ray, only
           what is done in this process)
library    run - work: what the library and the messages cost a user
new        how many of the rounds brought a new atom

Of --only federated, with three nodes as processes on this machine, TLS and signatures on:

transport  a message of 1 kB to every node, and an answer of 1 kB from each
question   a round that brings no new atom: weights out, checks, scores, audit log on the disk, back
fit        a whole round of the solver that brings one new atom of d float64, signed and handed on

Batches of different kinds take turns. More ranks than cores give way when they wait.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

from engines_federated import show_federated
from engines_rounds import LENGTHS, local_times, mpi_rank, ray_times
from engines_speedup import CEILINGS, show_speedup, speedup_rank
from rows import Figure, tell

SIZES = (1, 2, 4, 8)
ENGINES = ("local", "mpi", "ray", "federated")
MPI_ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}
CROWDED = {"OMPI_MCA_mpi_yield_when_idle": "1"}
COLUMNS = ("bare", "exchange", "session", "run", "work", "library")


def mpirun(ranks, *arguments):
    """Run this program on so many ranks; what they print as JSON."""
    crowded = ranks > len(os.sched_getaffinity(0))
    environment = {**os.environ, **MPI_ENVIRONMENT, **(CROWDED if crowded else {})}
    command = [str(Path(sysconfig.get_path("scripts"), "mpirun")), "-n", str(ranks)]
    command += ["--bind-to", "none" if crowded else "core", sys.executable, __file__, *arguments]
    done = subprocess.run(command, env=environment, timeout=300, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def rounds(engines, which, told=False):
    """The table: each engine at each size, as soon as it is there."""
    names = "".join(f"{name:>9}" for name in COLUMNS)
    print(f"{'engine':<7}{'N':>3}{'d':>7}{names}{'new':>6}{'session/bare':>14}{'library/bare':>14}")
    for nodes in SIZES:
        if "local" in engines:
            for d in LENGTHS:
                show("local", nodes, d, local_times(d, nodes), which)
        if "mpi" in engines:
            for found in mpirun(nodes, "--mpi-rank"):
                if told and nodes == 2 and found["d"] == LENGTHS[0]:
                    tell_library(found, which)
                show("mpi", found.pop("nodes"), found.pop("d"), found, which)
        if "ray" in engines:
            for d, found in ray_times(nodes):
                show("ray", nodes, d, found, which)


def tell_library(found, which):
    """What a whole classic round costs beside its arithmetic."""
    what = f"round of the solver under MPI, N = 2, d = {found['d']:,}, without arithmetic"
    beside = f"bare messages {found['bare'][which]:.0f} us"
    tell(Figure(what, found["library"][which], "us", beside, at_most=100.0))


def show(engine, nodes, d, found, which):
    times = {name: found[name][which] for name in COLUMNS if name in found}
    cells = "".join(f"{times[name]:>9.0f}" if name in times else f"{'-':>9}" for name in COLUMNS)
    ratios = "".join(
        f"{times[name] / times['bare']:>14.2f}" if "bare" in times else f"{'-':>14}"
        for name in ("session", "library")
    )
    print(f"{engine:<7}{nodes:>3}{d:>7}{cells}{found['new']:>6.0%}{ratios}", flush=True)


def own_work(engines, told=False):
    """Where the time goes that is not the engine's."""
    from engines_own import mpi_parts, ray_parts

    for engine, parts_of in (("mpi", mpi_parts), ("ray", ray_parts)):
        if engine not in engines:
            continue
        print(f"\n{engine}: atomcast's own work, N = 2, microseconds, least of 3,000 rounds")
        found = [parts_of(d) for d in LENGTHS]
        print(f"{'':<32}" + "".join(f"{f'd = {d:,}':>12}" for d in LENGTHS))
        for name in found[0]:
            print(f"{name:<32}" + "".join(f"{parts[name]:>12.1f}" for parts in found))
        if told and engine == "mpi":
            what = f"MPI session, N = 2, d = {LENGTHS[0]:,}, own work"
            tell(Figure(what, found[0]["a sender's round"], "us", at_most=25.0))


def speedup(told=False):
    """What a second rank brings, with one BLAS thread each."""
    one, two = (mpirun(ranks, "--speedup-rank")[0] for ranks in (1, 2))
    gains = show_speedup(one, two)
    for name, ceiling in CEILINGS.items() if told else ():
        beside = f"{ceiling} gains {gains[ceiling]:.2f}"
        aim = 1.85 if "kernel" in name else 1.8
        tell(Figure(f"two ranks, {name}", gains[name], "x one", beside, at_least=aim))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=ENGINES)
    parser.add_argument("--speedup", action="store_true")
    parser.add_argument("--own", action="store_true")
    parser.add_argument("--least", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--mpi-rank", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--speedup-rank", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    engines = ENGINES if chosen.only is None else (chosen.only,)
    if chosen.mpi_rank:
        mpi_rank()
    elif chosen.speedup_rank:
        speedup_rank()
    elif chosen.speedup:
        speedup(chosen.json)
    else:
        if not chosen.own and engines != ("federated",):
            rounds(engines, int(chosen.least), chosen.json)
        if not chosen.own and "federated" in engines:
            show_federated()
        own_work(engines, chosen.json)


if __name__ == "__main__":
    main()
