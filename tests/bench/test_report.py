from bench.compare import Comparison
from bench.figures import Figure
from bench.report import markdown, speed_table, spread
from bench.results import Results, Start
from bench.startup import Memory


def figure(*samples: float) -> Figure:
    return Figure(samples)


def comparison() -> Comparison:
    speeds = {
        "prefill 512": {"modelc": figure(900, 1000, 1100), "llama.cpp": figure(100, 125, 100)},
        "decode at 100": {"modelc": figure(200, 200, 200), "llama.cpp": figure(50, 100, 60)},
        "decode at 1000": {"modelc": figure(180, 180, 180), "llama.cpp": figure(40, 40, 40)},
    }
    return Comparison("Q4_1", 1, 100_000_000, speeds, figure(25e9, 25e9, 25e9))


def results() -> Results:
    memory = Memory(resident=350_000_000, proportional=340_000_000, anonymous=240_000_000, file=90_000_000)
    start = Start(figure(0.1), figure(0.5), figure(9.0), figure(0.03), memory)
    machine = {"cpu": "a CPU", "cores": "2"}
    shares = {"modelc": 0.0, "llama.cpp": 0.5}
    divergences = {"modelc int8": 3e-3, "llama.cpp": 3.6e-3}
    return Results(
        "2026-01-31", 3, machine, {"modelc": "0"}, {"modelc": "int8"}, [comparison()], start, divergences, shares
    )


def test_a_ratio_is_the_median_of_the_rounds_ratios_not_the_ratio_of_medians() -> None:
    table = speed_table([comparison()])
    rows = {row[2]: dict(zip(table.head, row, strict=True)) for row in table.rows}
    assert rows["prefill 512"]["ratio"] == "9.00 (8.00 to 11.0)"
    assert rows["prefill 512"]["goal"] == "≥ 8 reached"
    assert rows["decode at 100"]["ratio"] == "3.33 (2.00 to 4.00)"
    assert rows["decode at 100"]["goal"] == "≥ 4 MISSED"
    assert rows["decode at 1000"]["goal"] == ""


def test_engines_that_were_not_measured_have_no_column() -> None:
    assert "OpenVINO GenAI" not in speed_table([comparison()]).head


def test_numbers_have_three_digits_and_a_range_where_there_is_one() -> None:
    assert spread(figure(0.12345)) == "0.123"
    assert spread(figure(1234.5)) == "1234"
    assert spread(figure(99.96, 1.0, 200.4)) == "100 (1.00 to 200)"


def test_the_page_has_every_part_and_says_what_was_missed() -> None:
    page = markdown(results())
    assert "| Q4_1 | 1 | decode at 100 | 200 (200 to 200) |" in page
    assert "| resident memory of `modelc run` above the file's size, MB | 260 | ≤ 250 MISSED |" in page
    assert "| Q4_1 | 1 | 25.0 (25.0 to 25.0) | 0.800 (0.800 to 0.800) | ≥ 0.85 MISSED |" in page
    assert "| modelc int8 | 0.003 | ≤ 0.004 reached |" in page
    assert "llama.cpp 0.500: TOO MUCH" in page


def test_results_survive_json() -> None:
    assert Results.from_json(results().to_json()) == results()
