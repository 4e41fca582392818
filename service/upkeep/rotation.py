"""Replace the keys of an installation while all its processes are stopped."""

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy.orm import Session

from service.data import datasets
from service.data.config import Key, Settings, decode_key
from service.data.context import Context
from service.data.crypto import Unreadable, unwrap_key, wrap_key
from service.data.master_key import NO_DATASET
from service.data.models import DatasetRow, MasterKeyCheck
from service.upkeep.restoration import replace_anchor


class MasterKeyRotation(Settings):
    """The settings, with the old master key, and the new master key."""

    new_master_key: Key
    """Will wrap the data keys of all datasets: 32 random bytes in base64."""

    @property
    def new_master_key_bytes(self) -> bytes:
        """The new master key itself."""
        return decode_key(self.new_master_key)


class SigningKeyRotation(Settings):
    """The settings, with the old signing key, and the new signing key."""

    new_signing_key: Key
    """Will sign certificates and the anchor: 32 random bytes in base64."""

    @property
    def new_signing_key_bytes(self) -> bytes:
        """The new Ed25519 seed itself."""
        return decode_key(self.new_signing_key)


def rewrap_data_keys(session: Session, *, old: bytes, new: bytes) -> int:
    """Wrap every data key with the new master key, all or none; returns the number of datasets' keys.

    A data key that is already wrapped with the new key is skipped. So if a process was left running
    and wrapped another key with the old one, call this again.
    """
    known = session.get(MasterKeyCheck, NO_DATASET, with_for_update=True)
    if known is not None:
        _rewrap(known, old=old, new=new)
    found = datasets.lock_all_with_keys(session)
    rewrapped = sum(_rewrap(dataset, old=old, new=new) for dataset in found)
    session.flush()
    return rewrapped


def _rewrap(holder: DatasetRow | MasterKeyCheck, *, old: bytes, new: bytes) -> bool:
    """Wrap one data key with the new master key; False if it was already."""
    assert holder.wrapped_key is not None
    try:
        data_key = unwrap_key(holder.wrapped_key, holder.id, master_key=old)
    except Unreadable:
        unwrap_key(holder.wrapped_key, holder.id, master_key=new)
        return False
    holder.wrapped_key = wrap_key(data_key, holder.id, master_key=new)
    return True


def sign_anchor_anew(context: Context, new: bytes) -> None:
    """Sign the anchor with a new key, after checking the database against it."""
    context.check_anchor()
    replace_anchor(context, Ed25519PrivateKey.from_private_bytes(new))
