"""The operator's commands: each says what it did, and refuses loudly what needs a decision."""

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
        # Before anything is written: a database that was restored must not be written to.
        context.check_anchor()
        with context.transaction() as work:
            before = populations.show(work.session, population_id, is_live=True).budget
            after = populations.change_cap(
                work.session, population_id, cap, may_rise=may_rise
            ).budget
            work.after_commit(context.advance_anchor)
    print(f"The cap was {before.rho_cap:g} rho, and is {after.rho_cap:g} rho now.")
    print(
        f"Spent: {after.rho_spent:g}, reserved: {after.rho_reserved:g}, left: {after.rho_left:g}."
    )


def rotate_master_key() -> None:
    """Wrap all data keys by SCRIM_NEW_MASTER_KEY instead of SCRIM_MASTER_KEY."""
    settings = MasterKeyRotation()
    with open_context(settings, build_logger()) as context, context.transaction() as work:
        rewrapped = rewrap_data_keys(
            work.session, old=settings.master_key_bytes, new=settings.new_master_key_bytes
        )
    print(f"{rewrapped} data keys are wrapped by the new master key.")
    print("Set SCRIM_MASTER_KEY to it before you start anything: the old one opens nothing now.")


def rotate_signing_key() -> None:
    """Sign the anchor by SCRIM_NEW_SIGNING_KEY instead of SCRIM_SIGNING_KEY."""
    settings = SigningKeyRotation()
    with open_context(settings, build_logger()) as context:
        sign_anchor_anew(context, settings.new_signing_key_bytes)
    print("The anchor is signed by the new signing key.")
    print("Set SCRIM_SIGNING_KEY to it before you start anything, and publish its public key.")


def reanchor(*, close_populations: bool, database_is_newest: bool) -> None:
    """Anchor a database that is behind its anchor, or that has none; refuses to decide by itself."""
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
            "There is no anchor, so nothing tells whether this database was restored. If you know "
            "that it is the newest one, say so with --database-is-newest. Otherwise look for the "
            "anchor first: an older database hands out budget that has been spent."
        )
    replace_anchor(context, context.signing_key)
    print("The database is anchored as it is. That it is the newest one is your word alone.")


def _accept(context: Context, losses: list[Loss], *, close_populations: bool) -> None:
    print("THIS DATABASE IS NOT THE NEWEST ONE. Entries of its ledger are lost:")
    for loss in losses:
        print(f"  population {loss.population_id}: {_described(loss)}")
    if not close_populations:
        sys.exit(
            "What they cost is not known any more. Try to get the newest database back. If it is "
            "gone for good, go on with --close-populations: it ends the unfinished releases of "
            "these populations, and leaves nothing that could be spent on them."
        )
    for loss in losses:
        # One by one, as a transaction writes to one account; what is closed can be closed again.
        with context.transaction() as work:
            if loss.entries:
                close_population(work.session, loss.population_id)
    replace_anchor(context, context.signing_key)
    print("These populations are CLOSED, and the database is anchored. Tell those concerned.")
    print("Never raise their caps again: nobody knows what was spent on them.")


def _described(loss: Loss) -> str:
    if not loss.entries:
        return f"unknown here, {loss.anchored_entries} entries were anchored; do not open it again"
    return f"{loss.anchored_entries} entries were anchored, {loss.entries} are here"
