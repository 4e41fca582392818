"""`scrim population`"""

from typing import Annotated

import typer

from scrim.commands.session import NOT_VERIFIED, AsJson, FriendlyGroup, connected, find
from scrim.display import note, show_json, show_record, show_table
from scrim.errors import UnusableInput
from scrim.records import Population, Verification

app = typer.Typer(cls=FriendlyGroup, no_args_is_help=True, help="Protected people and budgets.")

PopulationName = Annotated[str, typer.Argument(metavar="POPULATION", help="Its id or name.")]


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="Name of the population.")],
    epsilon: Annotated[
        float | None, typer.Option(help="Cap on the total budget, as epsilon at delta.")
    ] = None,
    rho: Annotated[
        float | None, typer.Option(help="Cap on the total budget, as rho (zCDP).")
    ] = None,
    delta: Annotated[float, typer.Option(help="Policy constant, never computed from data.")] = 1e-9,
    unit: Annotated[str, typer.Option(help="row, person or household.")] = "row",
    relation: Annotated[str, typer.Option(help="add_remove or replace_one.")] = "add_remove",
    max_rows_per_person: Annotated[
        int | None, typer.Option(help="Required for unit person.")
    ] = None,
    max_household_size: Annotated[
        int | None, typer.Option(help="Required for unit household.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Register a population and open its account (needs an admin key)."""
    if (epsilon is None) == (rho is None):
        raise UnusableInput("give exactly one of --epsilon and --rho")
    cap = {"epsilon": epsilon} if epsilon is not None else {"rho": rho or 0.0}
    with connected() as client:
        population = client.populations.create(
            name,
            cap=cap,
            delta=delta,
            unit=unit,
            relation=relation,
            max_rows_per_person=max_rows_per_person,
            max_household_size=max_household_size,
        )
    if as_json:
        show_json(population)
        return
    note(f"Population {name!r} with a cap of {population.budget.rho_cap:.6g} rho:")
    typer.echo(population.id)


@app.command("list")
def list_populations(as_json: AsJson = False) -> None:
    """All populations with their budgets: current for curators, as of the last midnight for others."""
    with connected() as client:
        populations = list(client.populations.list())
    if as_json:
        show_json(populations)
        return
    show_table(
        ["id", "name", "unit", "rho cap", "spent", "reserved", "left", "epsilon spent", "delta"],
        map(_row, populations),
    )
    if populations and (as_of := populations[0].budget.as_of):
        note(
            f"Balances as of {as_of:%Y-%m-%d %H:%M} UTC; keys with the scope curator see them live"
        )


@app.command()
def show(population: PopulationName, as_json: AsJson = False) -> None:
    """One population with its budget: current for curators, as of the last midnight for others."""
    with connected() as client:
        found = find(population, client.populations.list(), what="population")
        show_record(client.populations.get(found.id), as_json=as_json)


@app.command()
def ledger(
    population: PopulationName,
    verify: Annotated[
        bool, typer.Option("--verify", help="Ask the service to recompute the chain of hashes.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Every change of the balance, oldest first (needs a curator key)."""
    with connected() as client:
        found = find(population, client.populations.list(), what="population")
        if verify:
            _show_verification(client.populations.verify_ledger(found.id), as_json=as_json)
            return
        entries = list(client.populations.ledger(found.id))
    if as_json:
        show_json(entries)
        return
    show_table(
        ["seq", "kind", "rho", "release", "operation", "hash"],
        (
            (each.seq, each.kind, each.rho, each.release_id, each.operation, each.hash[:16])
            for each in entries
        ),
    )


def _show_verification(found: Verification, *, as_json: bool) -> None:
    if as_json:
        show_json(found)
    else:
        note(f"{found.entries} entries, head {found.head}")
        typer.echo("ok" if found.ok else "BROKEN")
    if not found.ok:
        raise typer.Exit(NOT_VERIFIED)


def _row(population: Population) -> tuple[object, ...]:
    budget = population.budget
    amounts = (budget.rho_cap, budget.rho_spent, budget.rho_reserved, budget.rho_left)
    spent = (budget.epsilon_spent, budget.delta)
    return (population.id, population.name, population.unit, *amounts, *spent)
