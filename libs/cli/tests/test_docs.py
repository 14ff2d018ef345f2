"""Documentation at the command line: pages are written whole, and what goes is asked for first."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

from starlette.responses import Response

from .conftest import Asked, Peer, Run, view

FULL = {"error": "There is something in it.", "code": "folder_not_empty", "pages": 2, "folders": 0, "revision": "5e"}


def test_the_tree_is_listed_whole_over_its_parts(peer: Peer, run: Run) -> None:
    def part(asked: Asked) -> dict[str, Any]:
        first = "cursor" not in asked.query
        entry = {"kind": "folder", "path": "a"} if first else {"kind": "page", "path": "a/b.md", "characters": 1_234}
        return {"items": [{"characters": None, "updatedAt": None, **entry}], "nextCursor": "a" if first else None}

    peer.answers["docs-list"] = part

    listed = run("docs-list", "a").output

    assert [line.split()[0] for line in listed.splitlines()[1:]] == ["a/", "a/b.md"]
    assert "1,234" in listed
    assert peer.asked[-1].query == {"folder": "a", "cursor": "a"}


def test_a_text_is_sent_and_shown_as_it_is(peer: Peer, run: Run, home: Path) -> None:
    Path("a.md").write_bytes("\ufeff# Ä\r\n".encode())
    peer.answers["docs-show"] = view("PageView", body="# Ä\n", revision="5e")

    run("docs-create", "guide/a.md", "a.md")
    created = peer.asked[-1].body
    run("docs-write", "guide/a.md", "-", stdin="new\n")
    written = peer.asked[-1].body
    shown = run("docs-show", "guide/a.md").output
    Path("b.md").write_bytes(b"\xff")
    refused = [run("docs-create", "b.md", name) for name in ("b.md", "missing.md")]

    assert created == {"path": "guide/a.md", "body": "\ufeff# Ä\r\n"}
    assert written == {"path": "guide/a.md", "body": "new\n", "revision": "5e"}
    assert shown == "# Ä\n"
    assert [each.exit_code for each in refused] == [1, 1]
    assert "UTF-8" in refused[0].output
    assert "missing.md cannot be read" in refused[1].output


def test_a_folder_goes_with_what_was_counted_in_it(peer: Peer, run: Run) -> None:
    def once(asked: Asked) -> Any:
        gone = {"path": "a", "pages": 2, "folders": 0}
        return gone if asked.query.get("revision") == "5e" else (FULL, 409)

    peer.answers["docs-delete --folder"] = once

    said = run("docs-delete", "a", "--folder", "--yes")

    assert said.output == "a is deleted with 2 pages\n"
    assert peer.asked[-1].query == {"path": "a", "revision": "5e"}


def test_a_text_comes_back_by_path_or_by_the_id_of_a_deleted_page(peer: Peer, run: Run) -> None:
    peer.answers["docs-show"] = view("PageView", id="p1", revision="5e")

    run("docs-restore", "3", "a.md")
    by_path = peer.asked[-1]
    run("docs-restore", "4", "--id", "p2")
    by_id = peer.asked[-1]
    neither = run("docs-restore", "4")

    assert (by_path.path.split("/")[-2], by_path.body) == ("p1", {"version": 3, "revision": "5e"})
    assert (by_id.path.split("/")[-2], by_id.body) == ("p2", {"version": 4})
    assert neither.exit_code == 1


def test_the_workspace_is_the_default_one_unless_another_is_named(peer: Peer, run: Run) -> None:
    first, second = ({**view("WorkspaceView", id=each), "name": each} for each in ("w1", "w2"))
    peer.answers["workspace list"] = {"items": [first, second], "nextCursor": None}

    run("docs-list")
    plain = peer.asked[-1].path
    run("docs-list", "--workspace", "W2")

    assert (plain, peer.asked[-1].path) == ("/api/workspaces/w1/docs", "/api/workspaces/w2/docs")


def test_what_is_found_is_shown_with_where_it_stands(peer: Peer, run: Run) -> None:
    snippet = [
        {"text": "Wash\nthe ", "marked": False},
        {"text": "heron", "marked": True},
        {"text": " now", "marked": False},
    ]
    hit = {**view("DocHits")["items"][0], "path": "a.md", "heading": ["Birds", "Care"], "snippet": snippet}
    peer.answers["docs-search"] = {"items": [hit], "nextCursor": None, "corrected": ["herno → heron"]}

    said = run("docs-search", "the", "herno", "--limit", "3").output

    assert "a.md › Birds › Care" in said
    assert "  Wash the heron now\n" in said
    assert "herno → heron" in said
    assert peer.asked[-1].query == {"q": "the herno", "limit": "3"}


def test_a_folder_is_sent_as_a_zip_of_its_pages_alone(peer: Peer, run: Run, home: Path) -> None:
    for name in ("notes/a.md", "notes/sub/b.MD", "notes/c.txt", "notes/.git/d.md"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(name)
    Path("notes/link.md").symlink_to("/etc/passwd")
    result = {"created": 2, "updated": 0, "unchanged": 1, "notes": [{"path": "x.md", "reason": "It is archived."}]}
    peer.answers["docs-import"] = view("JobView", state="completed", result=result)

    said = run("docs-import", "notes", "--into", "guide")
    asked = peer.asked[-1]
    with zipfile.ZipFile(io.BytesIO(asked.body)) as archive:
        names = archive.namelist()
    run("docs-import", "notes/a.md", "--source", "mine")
    file = peer.asked[-1]

    assert names == ["a.md", "sub/b.MD"]
    assert asked.headers["content-type"] == "application/zip"
    assert asked.query == {"name": "notes.zip", "source": "notes", "into": "guide"}
    assert "2 new, 1 unchanged" in said.output
    assert "x.md: It is archived." in said.output
    assert (file.body, file.headers["content-type"], file.query["source"]) == (b"notes/a.md", "text/markdown", "mine")
    assert run("docs-import", "missing").exit_code == 1


def test_an_export_is_written_into_a_new_place_only(peer: Peer, run: Run, home: Path) -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("a/", "")
        archive.writestr("a/b.md", "# B")
    peer.answers["docs-export"] = lambda _: Response(content.getvalue(), media_type="application/zip")

    folder = run("docs-export", "out/docs", "--folder", "a")
    zipped = run("docs-export", "docs.zip")
    again = [run("docs-export", place) for place in ("out/docs", "docs.zip")]

    assert Path("out/docs/a/b.md").read_text() == "# B"
    assert Path("docs.zip").read_bytes() == content.getvalue()
    assert "1 pages are written to out/docs" in folder.output
    assert zipped.exit_code == 0
    assert [each.exit_code for each in again] == [1, 1]


def test_a_folder_that_is_deleted_as_a_page_is_told_the_flag(peer: Peer, run: Run) -> None:
    refused = run("docs-delete", "hand book")

    assert refused.exit_code == 1
    assert "docs-delete 'hand book' --folder" in refused.stderr
    assert not [asked for asked in peer.asked if asked.method == "DELETE"]


def test_whose_past_is_asked_for_and_is_not_there_may_be_a_deleted_one(peer: Peer, run: Run) -> None:
    peer.answers["docs-show"] = ({"error": "There is no such page.", "code": "not_found"}, 404)

    asked_for = [
        run("docs-restore", "1", "a.md"),
        run("docs-history", "a.md"),
        run("docs-show", "a.md", "--version", "1"),
    ]

    assert [each.exit_code for each in asked_for] == [1, 1, 1]
    assert all("--id ID" in each.stderr and "docs-list --deleted" in each.stderr for each in asked_for)


def test_tables_lists_and_code_that_are_found_keep_their_lines(peer: Peer, run: Run) -> None:
    def found(*parts: tuple[str, bool]) -> str:
        snippet = [{"text": text, "marked": marked} for text, marked in parts]
        hit = {**view("DocHits")["items"][0], "path": "a.md", "heading": [], "snippet": snippet}
        peer.answers["docs-search"] = {"items": [hit], "nextCursor": None, "corrected": []}
        return run("docs-search", "heron").output.partition("\n")[2]

    table = found(
        ("Two\nbirds:\n\n| bird | legs |\n|---|--:|\n| ", False), ("heron", True), (" | 2 |\nThat is\nall.", False)
    )
    code = found(("```sh\ncount ", False), ("heron", True), ("\ncount owl\n```\nDone.", False))

    assert table == "  Two birds:\n  | bird | legs |\n  | heron | 2 |\n  That is all.\n\n"
    items = found(("Two:\n- an owl\n  or two\n- a ", False), ("heron", True))

    assert items == "  Two:\n  - an owl or two\n  - a heron\n\n"
    assert code == "  count heron\n  count owl\n  Done.\n\n"
