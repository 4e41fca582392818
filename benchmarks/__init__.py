"""Benchmarks on public data. They print tables; both sides of a ratio are measured in the same run."""

from synth.threads import wait_passively

# Before anything imports torch, as workers do: spinning threads would make times depend on what else runs.
wait_passively()
