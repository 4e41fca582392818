"""The web console: pages that the service renders for people who do not use a command line.

The pages call the functions behind the API's own endpoints, with the same scopes and limits, so
the API's rules apply here as well. Scripts only make forms more convenient: every page works
without them.
"""
