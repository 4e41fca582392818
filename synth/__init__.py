"""Private data release: algorithms with a true differential-privacy guarantee.

The library knows nothing of the web, databases or queues. Import what you need from its modules:
`scrim.spec` (the public contract), `synth.table` (typed tables) and `synth.run` (the release).
"""
