"""Where tensors live while a model is fitted."""

import torch


def choose_device(name: str = "auto") -> torch.device:
    """The named device; `auto` takes an accelerator where there is one."""
    if name != "auto":
        return torch.device(name)
    if torch.accelerator.is_available():
        return torch.accelerator.current_accelerator() or torch.device("cpu")
    return torch.device("cpu")
