"""Replacing the keys of an installation, with all its parts stopped."""

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
    """The settings, whose master key is the old one, and the key that follows it."""

    new_master_key: Key
    """Will wrap the data keys of all datasets: 32 random bytes in base64."""

    @property
    def new_master_key_bytes(self) -> bytes:
        """The new master key itself."""
        return decode_key(self.new_master_key)


class SigningKeyRotation(Settings):
    """The settings, whose signing key is the old one, and the key that follows it."""

    new_signing_key: Key
    """Will sign certificates and the anchor: 32 random bytes in base64."""

    @property
    def new_signing_key_bytes(self) -> bytes:
        """The new Ed25519 seed itself."""
        return decode_key(self.new_signing_key)


def rewrap_data_keys(session: Session, *, old: bytes, new: bytes) -> int:
    """Wrap every data key by the new master key, all or none; returns how many datasets had one.

    A data key that the new one opens already is left as it is: so a part that was forgotten when
    all were stopped, and wrapped by the old key once more, is mended by a second call.
    """
    known = session.get(MasterKeyCheck, NO_DATASET, with_for_update=True)
    if known is not None:
        _rewrap(known, old=old, new=new)
    found = datasets.lock_all_with_keys(session)
    rewrapped = sum(_rewrap(dataset, old=old, new=new) for dataset in found)
    session.flush()
    return rewrapped


def _rewrap(holder: DatasetRow | MasterKeyCheck, *, old: bytes, new: bytes) -> bool:
    """Wrap one data key by the new master key; False if it was already."""
    assert holder.wrapped_key is not None
    try:
        data_key = unwrap_key(holder.wrapped_key, holder.id, master_key=old)
    except Unreadable:
        unwrap_key(holder.wrapped_key, holder.id, master_key=new)
        return False
    holder.wrapped_key = wrap_key(data_key, holder.id, master_key=new)
    return True


def sign_anchor_anew(context: Context, new: bytes) -> None:
    """Sign the anchor by a new key, after the database was found to be the one it is about."""
    context.check_anchor()
    replace_anchor(context, Ed25519PrivateKey.from_private_bytes(new))
