"""What every answer shares."""

from pydantic import BaseModel, ConfigDict


class View(BaseModel):
    """An answer: the text beside a field is what the OpenAPI document says about it."""

    model_config = ConfigDict(use_attribute_docstrings=True)
