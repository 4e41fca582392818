"""Importers of schemas in other formats.

An importer converts what was declared and adds nothing. A field without a counterpart is refused with
a SpecError that names the column and the remedy. Fields that cannot change what the schema
means, such as performance hints, are ignored.
"""

from scrim.importers.csvw import from_csvw_eo
from scrim.importers.ddi import from_ddi
from scrim.importers.declaration import Imported
from scrim.importers.mbi import from_mbi_domain
from scrim.importers.smartnoise import from_smartnoise

__all__ = ["Imported", "from_csvw_eo", "from_ddi", "from_mbi_domain", "from_smartnoise"]
