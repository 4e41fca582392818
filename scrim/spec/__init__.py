"""The public contract: schemas, workloads, mechanisms, budgets and releases, as pydantic models.

Free of numpy and torch, so that the service and the client can import it.
"""
