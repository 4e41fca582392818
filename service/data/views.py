"""What every answer shares."""

from datetime import UTC, datetime

from pydantic import BaseModel, ConfigDict


class View(BaseModel):
    """An answer: the text beside a field is what the OpenAPI document says about it."""

    model_config = ConfigDict(use_attribute_docstrings=True)


def day_of(at: datetime) -> datetime:
    """Round a time down to midnight (UTC), where a more exact time would reveal a duration."""
    return at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
