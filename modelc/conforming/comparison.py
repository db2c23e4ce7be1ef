"""Two servers, the same requests, every byte compared but those that tell one answer from another or the time."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from modelc.conforming.requests import Request
from modelc.conforming.served import Answer, Served

# What no two answers have in common.
IDENTITIES = re.compile(rb'"(id)": ?"[a-z]+[-_][0-9a-f]{8,}"|"(created)": ?\d+|"(call_id|tool_call_id)": ?"[^"]*"')
# How much of a prompt was known from earlier ones depends on which requests ran beside each other.
HISTORY = re.compile(rb'"cached_tokens": ?\d+')
# Who made the server is no part of its answers; where it differs, the report tells it.
BUILD = re.compile(rb'"(version|git_sha|system_fingerprint)": ?"[^"]*"')
BUILD_PATH = "/api/version"
TOGETHER = 8  # requests at a time in the mixed pass
CONTEXT_BYTES = 40


@dataclass(frozen=True, slots=True)
class Difference:
    """A request that was not answered the same.

    Attributes:
        request: its name.
        how: in which pass: `one by one` or `mixed`.
        expected: the first server's answer around the first byte that differs.
        got: the second's.
    """

    request: str
    how: str
    expected: str
    got: str


@dataclass(slots=True)
class Report:
    """What came of a comparison.

    Attributes:
        requests: how many pairs of answers were compared.
        compared_bytes: in the bodies of the first server's.
        statuses: how many of the first server's had which status.
        differences: in the order of the requests.
        builds: what the two say of their versions, where that is not the same; no difference.
    """

    requests: int = 0
    compared_bytes: int = 0
    statuses: dict[int, int] = field(default_factory=dict)
    differences: list[Difference] = field(default_factory=list)
    builds: tuple[str, str] | None = None


def answers_of(served: Served, requests: Sequence[Request]) -> list[Answer]:
    """What the reference answers, one request after another."""
    return [served.ask(request) for request in requests]


def compare(
    expected: Sequence[Answer],
    served: Served,
    requests: Sequence[Request],
    progress: Callable[[int, int], None] | None = None,
) -> Report:
    """Ask `served` the same, one by one and then many at a time in another order.

    Args:
        expected: of each request the answer that it should get.
        served: the server to check.
        requests: what to ask.
        progress: told (done, total).
    """
    report = Report()
    total = 2 * len(requests)
    for request, answer in zip(requests, expected, strict=True):
        report.statuses[answer.status] = report.statuses.get(answer.status, 0) + 1
        _note(report, request, "one by one", answer, served.ask(request))
        if progress is not None:
            progress(report.requests, total)
    order = sorted(range(len(requests)), key=lambda number: (number * 7919) % 1009)
    with ThreadPoolExecutor(TOGETHER) as pool:
        answers = pool.map(lambda number: served.ask(requests[number]), order)
        for number, answer in zip(order, answers, strict=True):
            _note(report, requests[number], "mixed", expected[number], answer)
            if progress is not None:
                progress(report.requests, total)
    return report


def _note(report: Report, request: Request, how: str, expected: Answer, got: Answer) -> None:
    report.requests += 1
    report.compared_bytes += len(expected.body)
    if request.path == BUILD_PATH and expected.body != got.body:
        report.builds = expected.body.decode("utf-8", "replace"), got.body.decode("utf-8", "replace")
    first, second = _comparable(expected), _comparable(got)
    if how == "mixed":
        first, second = (HISTORY.sub(b"", text) for text in (first, second))
    if first != second:
        at = next(
            (i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second))
        )
        excerpt = slice(max(at - CONTEXT_BYTES, 0), at + CONTEXT_BYTES)
        texts = (text[excerpt].decode("utf-8", "replace") for text in (first, second))
        report.differences.append(Difference(request.name, how, *texts))


def _comparable(answer: Answer) -> bytes:
    head = f"{answer.status}\n" + "".join(f"{header}\n" for header in answer.headers)
    body = IDENTITIES.sub(lambda found: next(name for name in found.groups() if name), answer.body)
    return head.encode() + BUILD.sub(rb"\1", body)
