"""The base class of all response models."""

from datetime import UTC, datetime

from pydantic import BaseModel, ConfigDict


class View(BaseModel):
    """A response; field docstrings become descriptions in the OpenAPI document."""

    model_config = ConfigDict(use_attribute_docstrings=True)


def day_of(at: datetime) -> datetime:
    """Round a time down to midnight (UTC), where a more exact time would reveal a duration."""
    return at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
