"""The public contract: schemas, workloads, mechanisms, budgets and releases, as pydantic models.

It imports neither numpy nor torch, so that the service and the client can use it.
"""
