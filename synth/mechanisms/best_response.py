"""The data player of the release game: find the record that satisfies the largest weight of queries.

Paper: Gaboardi et al. (2014), section 4; Vietri et al. (2020), section 4.
Algorithm: an integer program with one binary variable for each code of each column.
Departures: OR-Tools' CP-SAT instead of a commercial solver. It runs with one thread, a fixed seed and a
limit in its own deterministic units of work, not in seconds, so that a resumed job finds the same
records. The gap between a record and the best one is bounded by a public number, which is reported.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from scrim.spec.schema import Schema
from synth.domain import Domain
from synth.mechanisms.game import Critics
from synth.models.support import Support
from synth.queries import QuerySet
from synth.queries.boxes import Box, box_of

SOLVER_SEED = 0
"""Seed of the solver and of tie-breaking. It is public; privacy does not depend on it."""
SCALE = 1000
"""Weight of one critic in the integer program, which needs integer weights."""

Integers = NDArray[np.int64]


class BestResponses:
    """The records found so far, and their gaps to the best possible ones."""

    def __init__(self, schema: Schema, queries: QuerySet, *, effort: float) -> None:
        """`effort`: limit of work on one record, in the solver's deterministic units."""
        self.rng = np.random.default_rng(SOLVER_SEED)
        self._schema = schema
        self._queries = queries
        self._effort = effort
        self._domain = Domain.of(schema)
        self._records: list[dict[str, int]] = []
        self._gaps: list[float] = []

    def add(self, critics: Critics, perturbation: Mapping[str, Integers] | None = None) -> Support:
        """Find a record of about the largest weight, summed over critics and codes; return it alone."""
        program = _Program(self._domain, self.rng)
        for query, weight in critics.items():
            program.add_box(box_of(self._queries, query, self._schema), SCALE * weight)
        for name, weights in (perturbation or {}).items():
            program.add_codes(name, weights)
        record, gap = program.solve(self._effort)
        self._records.append(record)
        self._gaps.append(gap / SCALE)
        return _support(self._domain, [record])

    def released(self) -> Support:
        """All records, with equal weights."""
        return _support(self._domain, self._records)

    def report(self) -> dict[str, float]:
        """Report the gaps between the records and the best ones, in numbers of critics."""
        return {
            "best_responses": len(self._gaps),
            "proved_best": sum(gap == 0 for gap in self._gaps),
            "largest_gap": max(self._gaps),
        }


class _Program:
    """One integer program. Columns that no term mentions get a random code."""

    def __init__(self, domain: Domain, rng: np.random.Generator) -> None:
        self._domain = domain
        self._rng = rng
        self._record = {name: int(rng.integers(size)) for name, size in domain.size_of.items()}
        self._model = cp_model.CpModel()
        self._codes: dict[str, dict[int, cp_model.IntVar]] = {}
        self._inside: dict[tuple[str, range], cp_model.IntVar] = {}
        self._terms: list[cp_model.IntVar] = []
        self._weights: list[int] = []

    def add_box(self, box: Box, weight: int) -> None:
        """Add a weight, positive or negative, for records inside a box."""
        conditions = {n: codes for n, codes in box.items() if len(codes) < self._domain.size_of[n]}
        if not conditions or not all(conditions.values()):
            return  # every record is inside, or none is
        literals = [self._literal(name, codes) for name, codes in conditions.items()]
        inside = self._model.new_bool_var("")
        # One implication is enough: the objective pushes the variable in the other direction.
        if weight > 0:
            self._model.add_bool_and(literals).only_enforce_if(inside)
        else:
            self._model.add_bool_or([inside, *(~literal for literal in literals)])
        self._add(inside, weight)

    def add_codes(self, name: str, weights: Integers) -> None:
        """Add a weight for each code of a column."""
        for code, variable in self._column(name).items():
            self._add(variable, int(weights[code]))

    def solve(self, effort: float) -> tuple[dict[str, int], float]:
        """Return the best record found, and an upper bound on how much a better one could gain."""
        self._model.maximize(cp_model.LinearExpr.weighted_sum(self._terms, self._weights))
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.random_seed = SOLVER_SEED
        solver.parameters.max_deterministic_time = effort
        status = solver.solve(self._model)
        if status == cp_model.UNKNOWN:  # the limit was reached before any record was found
            return self._record, float(np.abs(self._weights).sum())
        assert status in (cp_model.OPTIMAL, cp_model.FEASIBLE), "some record always exists"
        found = {
            name: next(code for code, chosen in codes.items() if solver.boolean_value(chosen))
            for name, codes in self._codes.items()
        }
        return self._record | found, solver.best_objective_bound - solver.objective_value

    def _add(self, variable: cp_model.IntVar, weight: int) -> None:
        self._terms.append(variable)
        self._weights.append(weight)

    def _column(self, name: str) -> dict[int, cp_model.IntVar]:
        """Return the variables of a column's codes, in a random order that breaks the solver's ties."""
        if name not in self._codes:
            order = self._rng.permutation(self._domain.size_of[name])
            self._codes[name] = {int(code): self._model.new_bool_var("") for code in order}
            self._model.add_exactly_one(self._codes[name].values())
        return self._codes[name]

    def _literal(self, name: str, codes: range) -> cp_model.IntVar:
        """Return a variable that is true if the column's code is one of `codes`."""
        column = self._column(name)
        if len(codes) == 1:
            return column[codes.start]
        if (name, codes) not in self._inside:
            self._inside[name, codes] = self._model.new_bool_var("")
            chosen = sum(column[code] for code in codes)
            self._model.add(chosen == self._inside[name, codes])
        return self._inside[name, codes]


def _support(domain: Domain, records: list[dict[str, int]]) -> Support:
    columns = {name: np.array([record[name] for record in records]) for name in domain.names}
    return Support.of_rows(domain, columns)
