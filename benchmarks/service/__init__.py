"""`make bench-service`: the service under load, one module for each figure."""
