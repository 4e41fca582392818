"""Private data release: algorithms with a proven differential-privacy guarantee.

The library does not depend on the web, databases or queues. Import what you need from its modules:
`scrim.spec` (the public contract), `synth.table` (typed tables) and `synth.run` (the release).
"""
