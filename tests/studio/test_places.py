"""Paths stay in the folder, uploads in theirs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from privatest import errors
from privatest.studio.runs import MOST_UPLOADS, Folder, Uploads

from .conftest import ASK

OUTSIDE = [
    "../ledger.db",
    "../data/../ledger.db",
    "sub/../../ledger.db",
    "..",
    ".",
    "",
    "nothing.csv",
    "sub",
    "link.csv",
    "linked/secret.csv",
    "loop.csv",
    "tosses.csv\0",
    "..\\ledger.db",
    "C:\\windows\\win.ini",
    "c:tosses.csv",
    "//server/share/x.csv",
    "~/x.csv",
    "file:///etc/passwd",
    "/etc/passwd",
    "a" * 999,
    "a/" * 400,
]


@pytest.fixture(scope="module", autouse=True)
def links(studio: Any) -> None:
    """Ways out of the folder: a link to a file, a link to a folder, a link to itself."""
    folder: Path = studio.folder
    secret = folder.parent / "secret.csv"
    secret.write_text("toss\n1\n")
    (folder / "sub").mkdir()
    (folder / "sub" / "inner.csv").write_text("toss\n1\n")
    (folder / "link.csv").symlink_to(secret)
    (folder / "linked").symlink_to(folder.parent)
    (folder / "loop.csv").symlink_to(folder / "loop.csv")
    (folder / "alias.csv").symlink_to(folder / "tosses.csv")


@pytest.mark.parametrize("path", OUTSIDE)
def test_a_path_outside_the_folder_is_refused(studio: Any, path: str) -> None:
    before = studio.ledger_bytes
    body = {**ASK, "source": {"path": path}, "column": "toss", "dataset": "claims", "request": "outside"}
    for run in ("/api/run/test", "/api/run/change"):
        assert studio.client.post(run, json=body).status_code == 422
    start = {**ASK, "path": path, "dataset": "claims", "request": "outside"}
    assert studio.client.post("/api/monitors", json=start).status_code == 422
    assert studio.ledger_bytes == before


def test_an_absolute_path_is_refused_even_when_it_points_inside(studio: Any) -> None:
    with pytest.raises(errors.InvalidInput, match="inside"):
        Folder(studio.folder).find(str(studio.folder / "tosses.csv"))


def test_files_inside_are_found_and_listed(studio: Any) -> None:
    folder = Folder(studio.folder)
    assert folder.find("sub/inner.csv").name == "inner.csv"
    assert folder.find("alias.csv").name == "tosses.csv"  # a link that stays inside
    listed = studio.client.get("/api/about").json()["files"]
    assert {"tosses.csv", "sub/inner.csv", "alias.csv"} <= set(listed)
    assert not {"link.csv", "linked/secret.csv", "loop.csv"} & set(listed)


def test_without_a_folder_no_path_is_taken(tmp_path: Path) -> None:
    with pytest.raises(errors.InvalidInput, match="No folder was given"):
        Folder(None).find("x.csv")
    with pytest.raises(errors.InvalidInput, match="no folder"):
        Folder(tmp_path / "missing")


def test_uploads_are_named_by_us_kept_in_a_private_folder_and_few() -> None:
    uploads = Uploads()
    words = []
    for _ in range(MOST_UPLOADS + 1):
        word, file = uploads.new("../../evil name.csv")
        with file:
            file.write(b"1\n")
        uploads.keep(word, file.name)
        words.append(word)
    kept = uploads.find(words[-1])
    assert kept.name == f"{words[-1]}.csv"
    assert kept.parent.stat().st_mode & 0o077 == 0
    with pytest.raises(errors.InvalidInput):
        uploads.find(words[0])
    assert len(os.listdir(kept.parent)) == MOST_UPLOADS
    uploads.close()
    assert not kept.parent.exists()


@pytest.mark.parametrize("name", ["x", "x.py", "x.csv.exe", "x\0.csv", ".csv/.."])
def test_an_upload_of_another_kind_is_refused(studio: Any, name: str) -> None:
    answer = studio.client.post("/api/upload", params={"name": name}, content=b"1\n")
    assert answer.status_code == 422


def test_an_empty_upload_is_refused(studio: Any) -> None:
    assert studio.client.post("/api/upload", params={"name": "a.csv"}, content=b"").status_code == 422
