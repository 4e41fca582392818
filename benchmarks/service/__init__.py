"""`make bench-service`: the service under load, one module per measurement."""
