"""The operator's commands: each prints what it did, and refuses what needs a decision."""

import sys
from uuid import UUID

from scrim.spec.budget import Budget
from service.data.config import Settings
from service.data.context import Context, open_context
from service.data.ledger.errors import AnchorMissing
from service.data.logging import build_logger
from service.populations import service as populations
from service.upkeep.restoration import Loss, close_population, find_losses, replace_anchor
from service.upkeep.rotation import (
    MasterKeyRotation,
    SigningKeyRotation,
    rewrap_data_keys,
    sign_anchor_anew,
)


def set_cap(population_id: UUID, cap: Budget, *, may_rise: bool) -> None:
    """Change the cap of a population."""
    with open_context(Settings(), build_logger()) as context:
        # Before any write: a restored database must not be written to.
        context.check_anchor()
        with context.transaction() as work:
            before = populations.show(work.session, population_id, is_live=True).budget
            after = populations.change_cap(
                work.session, population_id, cap, may_rise=may_rise
            ).budget
            work.after_commit(context.advance_anchor)
    print(f"The cap was {before.rho_cap:g} rho and is now {after.rho_cap:g} rho.")
    print(
        f"Spent: {after.rho_spent:g}, reserved: {after.rho_reserved:g}, left: {after.rho_left:g}."
    )


def rotate_master_key() -> None:
    """Wrap all data keys with SCRIM_NEW_MASTER_KEY instead of SCRIM_MASTER_KEY."""
    settings = MasterKeyRotation()
    with open_context(settings, build_logger()) as context, context.transaction() as work:
        rewrapped = rewrap_data_keys(
            work.session, old=settings.master_key_bytes, new=settings.new_master_key_bytes
        )
    print(f"{rewrapped} data keys are wrapped with the new master key.")
    print("Set SCRIM_MASTER_KEY to it before you start anything: the old key no longer works.")


def rotate_signing_key() -> None:
    """Sign the anchor with SCRIM_NEW_SIGNING_KEY instead of SCRIM_SIGNING_KEY."""
    settings = SigningKeyRotation()
    with open_context(settings, build_logger()) as context:
        sign_anchor_anew(context, settings.new_signing_key_bytes)
    print("The anchor is signed with the new signing key.")
    print("Set SCRIM_SIGNING_KEY to it before you start anything, and publish its public key.")


def reanchor(*, close_populations: bool, database_is_newest: bool) -> None:
    """Anchor a database that is behind its anchor or has none, if the operator confirms it."""
    with open_context(Settings(), build_logger()) as context:
        try:
            losses = find_losses(context)
        except AnchorMissing:
            _anchor_again(context, database_is_newest=database_is_newest)
            return
        if not losses:
            print("The database has everything that was anchored: nothing to do.")
            return
        _accept(context, losses, close_populations=close_populations)


def _anchor_again(context: Context, *, database_is_newest: bool) -> None:
    if not database_is_newest:
        sys.exit(
            "There is no anchor, so Scrim cannot tell whether this database was restored. If you "
            "know that it is the newest one, confirm with --database-is-newest. Otherwise look for "
            "the anchor first: an older database would spend the same budget again."
        )
    replace_anchor(context, context.signing_key)
    print("The database is anchored as it is. Scrim could not check that it is the newest one.")


def _accept(context: Context, losses: list[Loss], *, close_populations: bool) -> None:
    print("THIS DATABASE IS NOT THE NEWEST ONE. Entries of its ledger are lost:")
    for loss in losses:
        print(f"  population {loss.population_id}: {_described(loss)}")
    if not close_populations:
        sys.exit(
            "Their cost is unknown. Try to recover the newest database. If it is lost for good, "
            "continue with --close-populations: it ends the unfinished releases of these "
            "populations and stops all spending on them."
        )
    for loss in losses:
        # One by one, as a transaction writes to one account; closing twice is harmless.
        with context.transaction() as work:
            if loss.entries:
                close_population(work.session, loss.population_id)
    replace_anchor(context, context.signing_key)
    print("These populations are CLOSED, and the database is anchored. Inform the people affected.")
    print("Never raise their caps again: the amount spent on them is unknown.")


def _described(loss: Loss) -> str:
    if not loss.entries:
        return f"unknown here, {loss.anchored_entries} entries were anchored; do not open it again"
    return f"{loss.anchored_entries} entries were anchored, {loss.entries} are here"
