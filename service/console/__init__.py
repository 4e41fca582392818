"""The web console: pages made by the service itself, for people who work without a command line.

The pages call the functions behind the API's own endpoints, with the same scopes and limits, so
the API's rules apply here as well. Scripts only make forms livelier: without them every page still
works.
"""
