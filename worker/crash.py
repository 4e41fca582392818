"""Labelled points at which tests kill a worker, to check that its job survives.

`SCRIM_CRASH_AT` is a list of labels, separated by commas. The first process that reaches a label
kills itself, as a power cut would; a mark in `SCRIM_DATA_DIR` keeps later processes alive.
"""

import os
import signal
from pathlib import Path
from typing import Literal

Label = Literal[
    "before-claim",
    "before-commit",
    "after-commit",
    "during-ingest",
    "during-linking",
    "before-settle",
    "before-artifacts",
    "after-draw",
    "after-artifacts-before-finish",
]


def crash_at(label: Label) -> None:
    """Crash here if requested, once."""
    if label not in os.environ.get("SCRIM_CRASH_AT", "").split(","):
        return
    mark = Path(os.environ["SCRIM_DATA_DIR"]) / f"crashed-{label}"
    try:
        mark.touch(exist_ok=False)
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)
