"""The device on which models are fitted."""

import torch


def choose_device(name: str = "auto") -> torch.device:
    """Return the named device; `auto` uses an accelerator if there is one."""
    if name != "auto":
        return torch.device(name)
    if torch.accelerator.is_available():
        return torch.accelerator.current_accelerator() or torch.device("cpu")
    return torch.device("cpu")
