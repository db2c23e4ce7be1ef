import multiprocessing
import os
import re
import time
from pathlib import Path

import pytest

from modelc.errors import BadInputError, NotFoundError, StoreError, WriteError
from modelc.store import Store, check_name, name_from


def add(store: Store, name: str, content: str) -> Path:
    return store.add(name, lambda path: path.write_text(content))


def add_twenty(folder: str) -> None:
    for number in range(20):
        add(Store(Path(folder)), "tiny", f"{os.getpid()} {number}")


def hidden(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith(".") and path.name != ".lock"]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def test_an_empty_store_lists_nothing_and_makes_no_folder(store: Store) -> None:
    assert store.models() == []
    assert not store.folder.exists()


def test_the_first_version_is_1_and_active_as_a_hard_link(store: Store) -> None:
    version = add(store, "tiny", "one")
    assert version == store.folder / "tiny.v1.modelc"
    main = store.find("tiny")
    assert main == store.folder / "tiny.modelc"
    assert main.samefile(version)


def test_an_existing_name_gets_the_next_version_which_becomes_active(store: Store) -> None:
    add(store, "tiny", "one")
    add(store, "tiny", "two")
    model = store.get("tiny")
    assert (list(model.versions), model.active) == ([1, 2], 2)
    assert store.find("tiny").read_text() == "two"
    assert store.find("tiny:1").read_text() == store.find("tiny:v1").read_text() == "one"
    assert hidden(store.folder) == []


def test_versions_count_as_numbers(store: Store) -> None:
    for number in range(11):
        add(store, "tiny", str(number))
    assert list(store.get("tiny").versions) == list(range(1, 12))


def test_a_version_that_was_deleted_in_between_is_not_given_again(store: Store) -> None:
    for content in "abc":
        add(store, "tiny", content)
    (store.folder / "tiny.v2.modelc").unlink()
    assert add(store, "tiny", "d").name == "tiny.v4.modelc"


def test_where_links_do_not_exist_the_active_one_is_a_copy(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: object) -> None:
        raise OSError("no links here")

    monkeypatch.setattr(os, "link", no_links)
    add(store, "tiny", "one")
    version = add(store, "tiny", "two")
    model = store.get("tiny")
    assert model.active == 2
    assert not store.find("tiny").samefile(version)
    assert store.find("tiny").read_text() == "two"
    assert hidden(store.folder) == []


def test_a_file_put_there_by_hand_becomes_a_version_instead_of_being_overwritten(store: Store) -> None:
    store.folder.mkdir()
    (store.folder / "tiny.modelc").write_text("by hand")
    assert store.get("tiny").active is None
    add(store, "tiny", "new")
    assert [path.read_text() for path in store.get("tiny").versions.values()] == ["by hand", "new"]
    assert store.find("tiny").read_text() == "new"


def test_a_writer_that_fails_changes_nothing(store: Store) -> None:
    add(store, "tiny", "one")

    def fail(path: Path) -> None:
        path.write_text("half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        store.add("tiny", fail)
    assert list(store.get("tiny").versions) == [1]
    assert hidden(store.folder) == []


def test_half_written_files_are_not_listed_and_old_ones_are_removed(store: Store) -> None:
    add(store, "tiny", "one")
    old, fresh = store.folder / ".tiny.0.part", store.folder / ".modelc-1.tmp"
    for path in (old, fresh):
        path.write_text("half")
    os.utime(old, (0, time.time() - 25 * 3600))
    assert [model.name for model in store.models()] == ["tiny"]
    add(store, "tiny", "two")
    assert (old.exists(), fresh.exists()) == (False, True)


def test_processes_that_add_at_once_get_versions_of_their_own(store: Store) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=add_twenty, args=(str(store.folder),)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(30)
        assert worker.exitcode == 0
    contents = [path.read_text() for path in store.get("tiny").versions.values()]
    assert len(set(contents)) == len(contents) == 40


def test_an_unknown_name_is_answered_with_the_nearest(store: Store) -> None:
    add(store, "smollm2", "x")
    with pytest.raises(NotFoundError, match=r"did you mean 'smollm2'\?"):
        store.find("smolm2")


def test_an_unknown_version_is_answered_with_those_that_exist(store: Store) -> None:
    add(store, "tiny", "x")
    with pytest.raises(NotFoundError, match="'tiny' has no version 7; it has version 1"):
        store.find("tiny:7")


def test_removing_refuses_to_guess_what_becomes_of_versions(store: Store) -> None:
    add(store, "tiny", "one")
    with pytest.raises(StoreError, match="'tiny' has version 1; --all deletes them too, --force"):
        store.remove("tiny")
    assert store.get("tiny").active == 1


def test_removing_with_keep_versions_leaves_them_and_no_active_one(store: Store) -> None:
    add(store, "tiny", "one")
    assert store.remove("tiny", keep_versions=True) == [store.folder / "tiny.modelc"]
    with pytest.raises(NotFoundError, match="no version of 'tiny' is active; name one, it has version 1"):
        store.find("tiny")
    assert store.find("tiny:1").read_text() == "one"


def test_removing_every_version_deletes_all_files_of_that_name_only(store: Store) -> None:
    add(store, "tiny", "one")
    add(store, "tiny", "two")
    add(store, "tiny2", "other")
    removed = store.remove("tiny", every_version=True)
    assert [path.name for path in removed] == ["tiny.modelc", "tiny.v1.modelc", "tiny.v2.modelc"]
    assert [model.name for model in store.models()] == ["tiny2"]


def test_removing_an_unversioned_file_needs_no_flag(store: Store) -> None:
    store.folder.mkdir()
    (store.folder / "tiny.modelc").write_text("by hand")
    assert [path.name for path in store.remove("tiny")] == ["tiny.modelc"]
    assert store.models() == []


def test_removing_an_unknown_name_is_an_error(store: Store) -> None:
    with pytest.raises(NotFoundError):
        store.remove("tiny")


def test_switching_makes_another_version_active(store: Store) -> None:
    add(store, "tiny", "one")
    add(store, "tiny", "two")
    assert store.switch("tiny", 1) == 2
    assert store.find("tiny").read_text() == "one"
    assert store.switch("tiny", 1) == 1
    assert (list(store.get("tiny").versions), store.get("tiny").active) == ([1, 2], 1)
    with pytest.raises(NotFoundError, match="has no version 3; it has versions 1, 2"):
        store.switch("tiny", 3)


def test_switching_keeps_a_file_that_was_put_there_by_hand(store: Store) -> None:
    add(store, "tiny", "one")
    (store.folder / "tiny.modelc").unlink()
    (store.folder / "tiny.modelc").write_text("by hand")
    assert store.switch("tiny", 1) is None
    assert [path.read_text() for path in store.get("tiny").versions.values()] == ["one", "by hand"]


def test_who_reads_a_model_keeps_it_whatever_becomes_of_its_name(store: Store) -> None:
    add(store, "tiny", "one")
    add(store, "tiny", "two")
    with store.find("tiny").open() as reader:
        store.switch("tiny", 1)
        store.remove("tiny", every_version=True)
        assert reader.read() == "two"


def test_one_version_is_removed_unless_it_is_the_active_one(store: Store) -> None:
    add(store, "tiny", "one")
    add(store, "tiny", "two")
    with pytest.raises(StoreError, match="version 2 of 'tiny' is the active one; `modelc switch tiny 1` first"):
        store.remove_version("tiny", 2)
    assert [path.name for path in store.remove_version("tiny", 1)] == ["tiny.v1.modelc"]
    with pytest.raises(StoreError, match="--all deletes the model"):
        store.remove_version("tiny", 2)


def test_names_that_differ_in_case_alone_are_refused(store: Store) -> None:
    add(store, "tiny", "one")
    with pytest.raises(StoreError, match=r"there is a model 'tiny'.*got 'Tiny'"):
        add(store, "Tiny", "two")
    assert [model.name for model in store.models()] == ["tiny"]


def test_a_name_that_must_be_new_is_refused_when_it_is_not(store: Store) -> None:
    add(store, "tiny", "one")
    with pytest.raises(StoreError, match="there is a model 'tiny' already"):
        store.add("tiny", lambda path: path.write_text("two"), new=True)
    assert hidden(store.folder) == []


@pytest.mark.parametrize("name", ["a", "SmolLM2-135M_x.y", "q4_1", "v1", "7b", "a" * 128])
def test_proper_names_are_taken(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize(
    "name",
    [
        *("", ".", "..", ".hidden", "-x", "a/b", "../a", "a\\b", "a:1", "a b", "a\n", "é", "a\0b", "a" * 129, "a."),
        *("a.modelc", "a.v1", "CON", "nul.txt", "com1", "Lpt9.x", "ａ", "а", "tiny\u200b", "tiny\u202e", "a‥b", "a⁄b"),
    ],
)
def test_names_that_could_be_paths_or_other_files_are_refused(store: Store, name: str) -> None:
    with pytest.raises(BadInputError):
        add(store, name, "x")
    assert not store.folder.exists()


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("SmolLM2-135M-Instruct.Q4_1", "smollm2-135m-instruct.q4_1"),
        ("My Model (v2)", "my-model-v2"),
        ("..", "model"),
        ("日本", "model"),
        ("con", "model"),
        ("x" * 500, "x" * 128),
    ],
)
def test_a_name_is_made_of_any_text(text: str, name: str) -> None:
    assert name_from(text) == check_name(name)


def test_a_folder_that_cannot_be_made_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WriteError, match=re.escape("choose another folder with --store")):
        add(Store(tmp_path / "file" / "store"), "tiny", "x")
