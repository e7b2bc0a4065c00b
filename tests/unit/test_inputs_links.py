"""Links to folders and to nothing: no loop is followed, and none is passed over in silence."""

import os
from pathlib import Path

import pytest
from input_forms import write

from raybpe.errors import InputError
from raybpe.inputs import Plan, plan_inputs


@pytest.fixture
def looped(tmp_path: Path, monkeypatch) -> Path:
    """Files with a link to the folder above, and one to itself."""
    write(tmp_path, "lp/a.txt", b"a")
    write(tmp_path, "lp/sub/b.txt", b"b")
    (tmp_path / "lp/sub/up").symlink_to("..")
    (tmp_path / "lp/self").symlink_to(".")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def planned(*inputs: str) -> Plan:
    return plan_inputs(inputs, chunk_bytes=10**6)


def found(*inputs: str) -> list[str]:
    return [os.path.relpath(source.uri) for source in planned(*inputs).sources]


@pytest.mark.parametrize("name", ["lp", "lp/**/*.txt", "lp/**", "lp/**/*", "**", "**/**/*.txt"])
def test_loops_of_links_give_each_file_once(looped: Path, name: str) -> None:
    assert found(name) == ["lp/a.txt", "lp/sub/b.txt"]


def test_a_star_enters_links_and_gives_each_file_once(looped: Path) -> None:
    assert found("lp/*/*.txt") == ["lp/self/a.txt", "lp/sub/b.txt"]
    assert found("lp/sub/*/a.txt") == ["lp/sub/up/a.txt"]
    assert sorted(map(os.path.basename, found("lp/*/*"))) == ["a.txt", "b.txt"]
    assert found("lp/sub/up/**/b.txt") == ["lp/sub/up/sub/b.txt"]


def test_globs_find_what_they_found(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.txt", "x/b.txt", "x/y/c.txt", "x/y/z/d.txt", "x/.h/e.txt", "x/[1]/f.txt"):
        write(tmp_path, name, b"text")
    assert found("**/y/**/*.txt") == ["x/y/c.txt", "x/y/z/d.txt"]
    assert found("**/[[]1]/*") == ["x/[1]/f.txt"]
    assert found("x/**/") == found("x/**") == found("x")
    assert found("**/?.txt") == ["a.txt", *found("x")]
    assert found("x/.h/**") == ["x/.h/e.txt"]
    assert found("**/d.txt") == ["x/y/z/d.txt"]


@pytest.mark.parametrize("name", ["d", "d/**", "d/**/*"])
def test_a_note_names_links_that_are_not_followed(tmp_path: Path, monkeypatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "real/text.txt", b"text")
    write(tmp_path, "d/a.txt", b"a")
    (tmp_path / "d/linked").symlink_to("../real")
    (tmp_path / "d/x.txt").symlink_to("nope")
    (tmp_path / "d/.#lock").symlink_to("nope")
    (note,) = (note for note in planned(name).notes if "link(s)" in note)
    assert note == (
        f"2 link(s) to folders or to nothing are not followed: {tmp_path}/d/linked, "
        f"{tmp_path}/d/x.txt; name as inputs those that lead to other text"
    )
    (tmp_path / "d/x.txt").unlink()
    assert found(name, "d/linked") == ["d/a.txt", "d/linked/text.txt"]
    assert not any("link(s)" in note for note in planned(name, "d/linked").notes)
    for number in range(5):
        (tmp_path / f"d/l{number}").symlink_to("nope")
    (note,) = (note for note in planned(name).notes if "link(s)" in note)
    assert note.startswith("6 link(s)")
    assert "l2, …; name" in note


def test_a_folder_of_links_only_says_so(tmp_path: Path) -> None:
    write(tmp_path, "real/text.txt", b"text")
    (tmp_path / "d").mkdir()
    (tmp_path / "d/linked").symlink_to("../real")
    with pytest.raises(InputError, match=r"no text in \S*/d: 1 link.s. .* \S*/d/linked; name as"):
        planned(str(tmp_path / "d"))


def test_a_dangling_link_is_called_one(tmp_path: Path) -> None:
    (tmp_path / "x.txt").symlink_to("nope")
    (tmp_path / "loop").symlink_to("loop")
    for name, target in (("x.txt", "nope"), ("loop", "loop")):
        with pytest.raises(
            InputError, match=f"{name} is a dangling link: nothing is at '{target}'"
        ):
            planned(str(tmp_path / name))
