"""The client repeats what is safe to repeat, nothing else, and raises problems with all fields."""

from collections.abc import AsyncIterator, Iterator

import httpx
import pytest

from scrim import Client, FieldError, Problem, Unreachable, UnusableInput
from scrim.spec.schema import ADVICE
from scrim.transport import ATTEMPTS
from scrim.values import parse_schema
from tests.scrim.column_types import TYPES
from tests.scrim.support import POPULATION, RELEASE, SPEC, Script, answer, page, problem

pytestmark = pytest.mark.usefixtures("both_ways")

KEY = {"id": "k1", "name": "n", "scopes": ["curator"], "key": "scrim_x"}


class TestProblems:
    def test_a_problem_carries_its_fields(self) -> None:
        fields = [{"loc": ["body", "budget", 0], "message": "too much"}]
        script = Script(problem(409, "budget-exhausted", "nothing is left", errors=fields))
        with pytest.raises(Problem, match="nothing is left") as caught:
            script.client().populations.get("p1")
        raised = caught.value
        assert (raised.status, raised.kind, raised.request_id) == (409, "budget-exhausted", "abc")
        assert raised.type == "/problems/budget-exhausted"
        assert raised.errors == (FieldError(("body", "budget", 0), "too much"),)
        assert str(raised) == "nothing is left\n  - too much"

    def test_a_detail_that_says_it_already_is_not_repeated(self) -> None:
        first, second = '"budget.rho" must be greater than 0', 'Age: "upper" is required'
        fields = [{"loc": ["body"], "message": each} for each in (first, second)]
        detail = f"{first} (and 1 more error, listed in errors)"
        script = Script(problem(422, "invalid", detail, errors=fields))
        with pytest.raises(Problem) as caught:
            script.client().populations.get("p1")
        assert str(caught.value) == f"{detail}\n  - {second}"

    def test_an_unusable_schema_is_described_field_by_field(self) -> None:
        age = {"name": "Age", "type": "integer", "lower": 9, "upper": 0}
        with pytest.raises(UnusableInput) as caught:
            parse_schema({"columns": [age, {"name": "Sex"}]})
        assert str(caught.value).splitlines() == [
            "the schema is not valid",
            '  - Age: "lower" must not be larger than "upper"',
            f'  - Sex: "type" must be one of: {", ".join(TYPES)}{ADVICE}',
        ]

    @pytest.mark.parametrize("body", ["<html>Bad Gateway</html>", "[1, 2]", ""])
    def test_an_answer_of_a_proxy_is_a_problem_too(self, body: str) -> None:
        script = Script(httpx.Response(418, text=body))
        with pytest.raises(Problem) as caught:
            script.client().populations.get("p1")
        assert caught.value.status == 418
        assert caught.value.type == "about:blank"
        assert caught.value.errors == ()

    def test_a_refusal_is_not_repeated(self) -> None:
        script = Script(problem(403, "scope-missing"))
        with pytest.raises(Problem):
            script.client().populations.get("p1")
        assert script.pauses == []


class TestRetries:
    @pytest.mark.parametrize(
        "fault",
        [
            httpx.ConnectError("refused"),
            httpx.ReadTimeout("slow"),
            httpx.RemoteProtocolError("cut"),
            httpx.Response(503),
            httpx.Response(502),
            httpx.Response(429),
        ],
    )
    def test_reading_is_repeated(self, fault: httpx.Response | Exception) -> None:
        script = Script(fault, answer(POPULATION))
        assert script.client().populations.get("p1").id == "p1"
        assert len(script.pauses) == 1

    def test_it_gives_up_in_the_end(self) -> None:
        script = Script(*[httpx.ConnectError("refused")] * ATTEMPTS)
        with pytest.raises(Unreachable, match=r"http://scrim\.test does not answer"):
            script.client().populations.get("p1")
        assert len(script.pauses) == ATTEMPTS - 1
        assert script.pauses[-1] > script.pauses[0]

    def test_the_last_answer_is_the_problem(self) -> None:
        script = Script(*[problem(503, "not-ready", "the broker sleeps")] * ATTEMPTS)
        with pytest.raises(Problem, match="the broker sleeps"):
            script.client().populations.get("p1")

    def test_it_waits_as_long_as_it_is_told(self) -> None:
        limited = problem(429, "rate-limited")
        limited.headers["Retry-After"] = "7"
        script = Script(limited, answer(POPULATION))
        script.client().populations.get("p1")
        assert script.pauses == [7.0]

    @pytest.mark.parametrize("fault", [httpx.ReadTimeout("slow"), httpx.Response(503)])
    def test_a_key_is_never_made_twice(self, fault: httpx.Response | Exception) -> None:
        script = Script(fault)
        with pytest.raises((Unreachable, Problem)):
            script.client().keys.create("n", ["curator"])
        assert len(script.requests) == 1

    @pytest.mark.parametrize("fault", [httpx.ConnectError("refused"), httpx.Response(429)])
    def test_what_was_never_carried_out_is_sent_again(
        self, fault: httpx.Response | Exception
    ) -> None:
        script = Script(fault, answer(KEY, 201))
        assert script.client().keys.create("n", ["curator"]).key == "scrim_x"

    def test_an_answer_that_breaks_off_is_reported(self) -> None:
        class Broken(httpx.SyncByteStream, httpx.AsyncByteStream):
            def __iter__(self) -> Iterator[bytes]:
                yield b"{"
                raise httpx.ReadError("cut")

            async def __aiter__(self) -> AsyncIterator[bytes]:
                for piece in self:
                    yield piece

        script = Script(lambda request: httpx.Response(200, stream=Broken()))
        with pytest.raises(Unreachable):
            script.client().populations.get("p1")


class TestIdempotency:
    def test_a_repetition_has_the_same_key(self) -> None:
        script = Script(httpx.ReadTimeout("slow"), httpx.Response(502), answer(RELEASE, 202))
        script.client().releases.submit(SPEC)
        keys = {request.headers["Idempotency-Key"] for request in script.requests}
        assert len(script.requests) == 3
        assert len(keys) == 1

    def test_every_call_has_another_key(self) -> None:
        script = Script(answer(RELEASE, 202), answer(RELEASE, 202))
        client = script.client()
        client.releases.submit(SPEC)
        client.releases.submit(SPEC)
        first, second = (request.headers["Idempotency-Key"] for request in script.requests)
        assert first != second

    def test_a_given_key_is_used(self) -> None:
        script = Script(answer(POPULATION, 201))
        script.client().populations.create(
            "people", cap={"rho": 1.0}, delta=1e-9, idempotency_key="mine"
        )
        assert script.requests[0].headers["Idempotency-Key"] == "mine"


class TestRequests:
    def test_the_key_is_sent(self) -> None:
        script = Script(page())
        assert list(script.client("secret").populations.list()) == []
        assert script.requests[0].headers["Authorization"] == "Bearer secret"

    def test_all_pages_are_read(self) -> None:
        second = POPULATION | {"id": "p2"}
        script = Script(page(POPULATION, following="abc"), page(second))
        found = [population.id for population in script.client().populations.list()]
        assert found == ["p1", "p2"]
        assert script.requests[1].url.params["cursor"] == "abc"

    def test_new_fields_of_the_service_are_kept(self) -> None:
        script = Script(answer(POPULATION | {"colour": "red"}))
        assert script.client().populations.get("p1").model_dump()["colour"] == "red"

    @pytest.mark.parametrize("url", ["scrim.test", "ftp://scrim.test", "http://", ""])
    def test_an_address_must_be_one(self, url: str) -> None:
        with pytest.raises(UnusableInput, match="not an address"):
            Client(url)

    def test_a_redirect_does_not_carry_the_key_elsewhere(self) -> None:
        moved = httpx.Response(302, headers={"Location": "http://elsewhere.test/"})
        script = Script(moved)
        with pytest.raises(Problem):
            script.client().populations.get("p1")
        assert len(script.requests) == 1
