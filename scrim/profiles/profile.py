"""What is kept of a column of a public sample, cell by cell."""

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

MOST_TEXTS = 20_000
"""Maximum number of distinct texts to count; others are only drawn into the reservoir."""
RESERVOIR = 20_000
LONGEST_COUNTED = 200
"""Longer texts are no values to declare, so they are not kept."""


@dataclass
class Profile:
    """Statistics of one column; memory is bounded, whatever the length of the sample."""

    name: str
    cells: int = 0
    """Number of cells that are not empty."""
    counts: Counter[str] = field(default_factory=Counter)
    """How often each text occurs, for the first `MOST_TEXTS` distinct ones."""
    longest: int = 0
    is_complete: bool = True
    """Whether every text is counted."""
    _drawn: list[str] = field(default_factory=list)
    _chance: random.Random = field(default_factory=lambda: random.Random(0))

    def see(self, text: str | None) -> None:
        """Add a cell; an empty one is missing."""
        text = (text or "").strip()
        if not text:
            return
        self.cells += 1
        self.longest = max(self.longest, len(text))
        kept = text[:LONGEST_COUNTED]
        if kept in self.counts or len(self.counts) < MOST_TEXTS:
            self.counts[kept] += 1
        else:
            self.is_complete = False
        self._draw(kept)

    def without(self, texts: Iterable[str]) -> Counter[str]:
        """Counts of the texts, or of a uniform draw of the cells if not all are counted."""
        left_out = set(texts)
        counts = self.counts if self.is_complete else Counter(self._drawn)
        return Counter({text: count for text, count in counts.items() if text not in left_out})

    def _draw(self, text: str) -> None:
        """Keep a uniform draw of all cells: each cell takes the place of a kept one by chance."""
        if len(self._drawn) < RESERVOIR:
            self._drawn.append(text)
        elif (place := self._chance.randrange(self.cells)) < RESERVOIR:
            self._drawn[place] = text
