from modelc.api.rates import MAX_CLIENTS, RateLimiter


def test_a_bucket_fills_in_a_minute() -> None:
    limiter = RateLimiter(2)
    assert [limiter.wait_s("a", 0.0) for _ in range(3)] == [0.0, 0.0, 30.0]
    assert limiter.wait_s("a", 15.0) == 15.0
    assert limiter.wait_s("b", 15.0) == 0.0
    assert limiter.wait_s("a", 30.0) == 0.0
    assert limiter.wait_s("a", 30.0) == 30.0


def test_what_is_not_used_is_kept_up_to_a_minute_s_worth() -> None:
    limiter = RateLimiter(3)
    assert limiter.wait_s("a", 0.0) == 0.0
    assert [limiter.wait_s("a", 1e6) for _ in range(4)] == [0.0, 0.0, 0.0, 20.0]


def test_memory_is_bounded_and_those_quiet_longest_are_forgotten() -> None:
    limiter = RateLimiter(1)
    for i in range(MAX_CLIENTS):
        limiter.wait_s(f"{i}", 0.0)
    assert limiter.wait_s("0", 0.0) == 60.0
    limiter.wait_s("new", 0.0)
    assert len(limiter._buckets) == MAX_CLIENTS
    assert limiter.wait_s("0", 0.0) == 60.0, "it asked lately"
    assert limiter.wait_s("1", 0.0) == 0.0
