"""Fuzz every parser that reads the web: `python -m benchmarks.fuzz --inputs 1000000`.

Each input is a well-formed document (`benchmarks.fuzz_targets`) with a few random mutations: bytes flipped, pieces cut,
repeated, swapped with other documents, or replaced by words that parsers trip over. Input n of a target depends on the
seed, the target and n alone, so `--target html --first 4711 --inputs 1` repeats it.

An input fails if the parser raises anything that it is not documented to raise, if its process dies, or if it takes
longer than `--deadline` seconds. The inputs run in a process of their own, which is replaced when it dies or hangs.
The exit code is 1 if an input failed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import multiprocessing.sharedctypes
import random
import sys
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

from benchmarks.fuzz_targets import TARGETS, Target

SEED = 20260101
_CHUNK = 500
"""Inputs between two reports of a worker."""
_MAX_INPUT = 200_000
_SLOW = 1.0
"""Seconds of CPU time from which an input is reported as slow."""


@dataclass
class Tally:
    """What the inputs of one target came to."""

    inputs: int = 0
    seconds: float = 0.0
    slowest: float = 0.0
    slow: list[int] = field(default_factory=list)
    failures: dict[int, str] = field(default_factory=dict)
    """Input to its failure."""


def mutate(chance: random.Random, documents: list[bytes], words: list[bytes]) -> bytes:
    """A document with one to eight random mutations."""
    data = bytearray(chance.choice(documents))
    for _ in range(chance.randint(1, 8)):
        start = chance.randint(0, len(data))
        end = min(len(data), start + chance.choice((1, 2, 8, 64, 512)))
        match chance.randrange(9):
            case 0:
                data[start:end] = bytes(chance.randrange(256) for _ in range(min(end - start, 16)))
            case 1:
                del data[start:end]
            case 2:
                data[start:start] = chance.choice(words)
            case 3:
                data[start:end] = chance.choice(words)
            case 4:
                data[start:start] = data[start:end] * chance.choice((1, 2, 50, 1000))
            case 5:
                other = chance.choice(documents)
                data[start:] = other[chance.randint(0, len(other)) :]
            case 6:
                data[start:start] = chance.choice(words) * chance.choice((2, 20, 500))
            case 7:
                del data[start:]
            case _:
                for at in chance.sample(range(len(data)), min(len(data), 4)):
                    data[at] ^= 1 << chance.randrange(8)
        del data[_MAX_INPUT:]
    return bytes(data)


def input_of(target: Target, seed: int, number: int) -> bytes:
    """Input `number` of a target."""
    return mutate(random.Random(f"{seed}:{target.name}:{number}"), target.documents, target.words)


def failure_of(target: Target, data: bytes) -> str:
    """What is wrong with the parser's answer, '' for nothing."""
    try:
        target.read(data)
    except target.allowed:
        return ""
    except BaseException as error:  # noqa: BLE001
        place = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {str(error)[:200]} ({Path(place.filename).name}:{place.lineno})"
    return ""


def fuzz_here(target: Target, seed: int, first: int, last: int) -> Tally:
    """Run inputs in this process."""
    tally = Tally()
    for number in range(first, last):
        data = input_of(target, seed, number)
        begun = time.process_time()
        failure = failure_of(target, data)
        taken = time.process_time() - begun
        tally.inputs += 1
        tally.seconds += taken
        tally.slowest = max(tally.slowest, taken)
        if taken > _SLOW:
            tally.slow.append(number)
        if failure:
            tally.failures[number] = failure
    return tally


# -- in processes -----------------------------------------------------------------------------------------


def _work(pipe: Connection, current: multiprocessing.sharedctypes.Synchronized[int], name: str, seed: int) -> None:
    """Run the inputs that the parent sends; `current` is the one under way."""
    target = TARGETS[name]
    while True:
        first, last = pipe.recv()
        tally = Tally()
        for number in range(first, last):
            current.value = number
            one = fuzz_here(target, seed, number, number + 1)
            tally.seconds += one.seconds
            tally.slowest = max(tally.slowest, one.slowest)
            tally.slow += one.slow
            tally.failures |= one.failures
        tally.inputs = last - first
        current.value = -1
        pipe.send(tally)


class Worker:
    """A process that runs the inputs of a target; a new one when it dies or hangs."""

    def __init__(self, name: str, seed: int, deadline: float) -> None:
        self._name, self._seed, self._deadline = name, seed, deadline
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._current = context.Value("q", -1)
        self._pipe, theirs = context.Pipe()
        arguments = (theirs, self._current, self._name, self._seed)
        self._process = context.Process(target=_work, args=arguments, daemon=True)
        self._process.start()
        theirs.close()

    def run(self, first: int, last: int) -> Iterator[Tally]:
        """Run these inputs, in chunks; an input that ends the process is a failure, and the next ones follow."""
        while first < last:
            end = min(first + _CHUNK, last)
            self._pipe.send((first, end))
            failure, number = self._watch()
            if not failure:
                yield self._pipe.recv()
                first = end
                continue
            self._process.kill()
            self._process.join()
            self._start()
            yield from self.run(first, number)
            yield Tally(1, failures={number: failure})
            first = max(number, first) + 1

    def _watch(self) -> tuple[str, int]:
        """Wait for the end of a chunk; what went wrong, with the input under way."""
        number, since = -1, time.monotonic()
        while not self._pipe.poll(0.2):
            if not self._process.is_alive():
                return f"the process died with exit code {self._process.exitcode}", self._current.value
            if self._current.value != number:
                number, since = self._current.value, time.monotonic()
            elif number >= 0 and time.monotonic() - since > self._deadline:
                return f"no answer within {self._deadline:g} s", number
        return "", -1

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.join()


def fuzz(name: str, seed: int, first: int, inputs: int, deadline: float) -> Tally:
    """Run inputs of one target in a process of its own."""
    worker, total, shown = Worker(name, seed, deadline), Tally(), time.monotonic()
    for tally in worker.run(first, first + inputs):
        total.inputs += tally.inputs
        total.seconds += tally.seconds
        total.slowest = max(total.slowest, tally.slowest)
        total.slow += tally.slow
        total.failures |= tally.failures
        if time.monotonic() - shown > 10:
            shown = time.monotonic()
            print(f"{name}: {total.inputs:,} of {inputs:,}, {len(total.failures)} failed", file=sys.stderr, flush=True)
    worker.close()
    return total


def main() -> int:
    """Fuzz the targets, print one line for each."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000, help="inputs of all targets together (100,000)")
    parser.add_argument("--target", choices=sorted(TARGETS), action="append", help="fuzz only this one; repeatable")
    parser.add_argument("--first", type=int, default=0, help="number of the first input of each target (0)")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--deadline", type=float, default=20.0, help="seconds that an input may take (20)")
    parser.add_argument("--keep", type=Path, help="folder for the inputs that failed or were slow")
    chosen = parser.parse_args()
    names = chosen.target or sorted(TARGETS)
    each = -(-chosen.inputs // len(names))
    failed = 0
    for name in names:
        tally = fuzz(name, chosen.seed, chosen.first, each, chosen.deadline)
        rate = tally.inputs / max(tally.seconds, 1e-9)
        counts = f"{tally.inputs:>10,} inputs  {len(tally.failures):>4} failed  {len(tally.slow):>4} over {_SLOW:g} s"
        print(f"{name:10} {counts}  slowest {tally.slowest:.3f} s  {rate:,.0f} per CPU-second", flush=True)
        for number, failure in sorted(tally.failures.items())[:20]:
            print(f"    input {number}: {failure}")
        if chosen.keep:
            chosen.keep.mkdir(parents=True, exist_ok=True)
            for number in {*tally.failures, *tally.slow}:
                (chosen.keep / f"{name}-{number}").write_bytes(input_of(TARGETS[name], chosen.seed, number))
        failed += len(tally.failures)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
