"""Try all mutants, or those whose description has one of some words: python -m tests.mutants [WORD ...]"""

import argparse
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed

from tests.mutants import (
    accounting,
    ledger,
    mechanisms,
    noise,
    rules,
    sensitivity,
    two_level,
    views,
    worker,
)
from tests.mutants.harness import Mutant, Unusable, Verdict, try_mutant, try_unchanged

MUTANTS: tuple[Mutant, ...] = (
    *noise.MUTANTS,
    *accounting.MUTANTS,
    *sensitivity.MUTANTS,
    *mechanisms.MUTANTS,
    *two_level.MUTANTS,
    *rules.MUTANTS,
    *ledger.MUTANTS,
    *worker.MUTANTS,
    *views.MUTANTS,
)


def main() -> None:
    """Report every mutant as its tests end; exit with 1 if one survived or could not be tried."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("words", nargs="*", help="try only mutants whose description has one")
    parser.add_argument("--at-once", type=int, default=2, help="how many run at once (2)")
    options = parser.parse_args()
    words = options.words
    chosen = [m for m in MUTANTS if not words or any(word in m.bug for word in words)]
    if not chosen:
        sys.exit("no mutant has one of these words in its description")
    started = time.monotonic()
    wrong = try_all(chosen, at_once=options.at_once)
    for line in wrong:
        print(line)
    minutes, seconds = divmod(round(time.monotonic() - started), 60)
    print(f"{len(chosen)} mutants, {len(wrong)} problems, {minutes} min {seconds} s")
    sys.exit(bool(wrong))


def try_all(chosen: list[Mutant], *, at_once: int) -> list[str]:
    """Try the mutants, and their tests without any; returns what is wrong."""
    wrong = []
    with ThreadPoolExecutor(at_once) as pool:
        unchanged = pool.submit(try_unchanged, chosen)
        for future in as_completed([unchanged, *(pool.submit(try_mutant, m) for m in chosen)]):
            try:
                verdict = future.result()
            except Unusable as error:
                wrong.append(f"UNUSABLE  {error}")
                continue
            line, is_wrong = described(verdict, must_fail=future is not unchanged)
            print(line, flush=True)
            wrong += [line] if is_wrong else []
    return wrong


def described(verdict: Verdict, *, must_fail: bool) -> tuple[str, bool]:
    """What to print about a verdict, and whether it is a failure."""
    about = f"{verdict.seconds:5.0f} s  {verdict.bug}"
    if verdict.failed is None:
        return (f"SURVIVED {about}", True) if must_fail else (f"passed   {about}", False)
    return f"{'caught' if must_fail else 'FAILED':<8} {about}: {verdict.failed}", not must_fail


if __name__ == "__main__":
    main()
