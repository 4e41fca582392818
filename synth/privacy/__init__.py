"""The door to private rows. Only `synth.run` may import this package."""
