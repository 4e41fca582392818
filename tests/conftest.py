"""What holds for every test."""

import os

# Tests run in several processes at once: more threads than cores only wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
