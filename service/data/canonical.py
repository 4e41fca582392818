"""A hash of a request's content that does not depend on the order of its fields."""

import hashlib
import json

from pydantic import BaseModel


def canonical_sha256(body: BaseModel) -> bytes:
    """A hash of a model's content, in a fixed order of its fields."""
    content = body.model_dump(mode="json", by_alias=True)
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).digest()
