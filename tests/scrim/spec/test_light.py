"""The public contract is light: the service and the client import it without any heavy library."""

import pkgutil
import subprocess
import sys

import scrim.spec

MODULES = sorted(
    module.name for module in pkgutil.walk_packages(scrim.spec.__path__, "scrim.spec.")
)
HEAVY = ("torch", "numpy", "pyarrow", "opendp", "pandas", "scipy", "yaml", "httpx", "typer", "rich")


def test_all_modules_are_found() -> None:
    assert {"scrim.spec.release", "scrim.spec.catalogue", "scrim.spec.workload.block"} <= set(
        MODULES
    )


def test_importing_the_contract_imports_nothing_heavy() -> None:
    program = f"import sys, {', '.join(MODULES)}\nprint(*({{*{HEAVY!r}}} & {{*sys.modules}}))"
    finished = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert finished.stdout.split() == []
