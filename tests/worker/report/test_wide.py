"""The report of a wide table with a long list of codes stays small enough to read."""

from scrim.spec.release import ReleaseSpec
from scrim.spec.schema import Schema
from tests.worker.report.support import Page, about, made_release
from worker.report.page import render

CODES = [f"K{number:05}" for number in range(10_000)]
WIDE = Schema.model_validate(
    {
        "columns": [
            *(
                {"name": f"column {place}", "type": "categorical", "values": list("abcdefgh")}
                for place in range(99)
            ),
            {"name": "code", "type": "categorical", "values": CODES},
        ]
    }
)
PAIRS = [[f"column {a}", f"column {b}"] for a in range(46) for b in range(a)][:1000]


def test_a_thousand_marginals_of_a_hundred_columns_fit_on_the_page() -> None:
    spec = ReleaseSpec.model_validate(
        {
            "workload": [{"type": "marginals", "attributes": PAIRS}],
            "mechanism": {"name": "gem"},
            "budget": {"rho": 0.1},
            "outputs": {"rows": 500},
        }
    )
    content = render(made_release(WIDE, spec, 500), about(spec))
    assert len(content) < 300_000
    text = Page(content).text
    assert sum(code in text for code in CODES) < 100
