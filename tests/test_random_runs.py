"""The table of `make test-random` counts every run and names the cases that failed."""

from collections import Counter

from tests.random_runs import table


def test_failures_are_counted_for_each_function_and_case() -> None:
    cases = [
        ("a::test_one", "test_one"),
        ("a::test_two", "test_two[x]"),
        ("a::test_two", "test_two[y]"),
    ]
    runs = Counter(dict.fromkeys(cases, 100))
    header, *lines = table(runs, Counter({cases[2]: 3}))
    assert header.split() == ["test", "cases", "runs", "failures"]
    assert [line.split() for line in lines] == [
        ["a::test_one", "1", "100", "0"],
        ["a::test_two", "2", "200", "3"],
        ["test_two[y]", "100", "3"],
    ]
