"""Settings come from the strongest source, say where from, and name the variable when they are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr

from popagent_kit import settings as kit
from popagent_kit.errors import ConfigurationError
from popagent_kit.settings import Settings, layers, read_env_file, reveal, setting


class DoorSettings(Settings):
    port: int = setting("TEST_DOOR_PORT", 8420, description="Port.", gt=0)
    name: str | None = setting("TEST_DOOR_NAME", None, description="Name.")
    key: SecretStr | None = setting("TEST_DOOR_KEY", None, description="Key.", secret=True)


class NeedySettings(Settings):
    url: str = setting("TEST_NEEDED_URL", description="Must be there.")


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(kit, "clone_root", lambda: tmp_path)
    (tmp_path / ".popagent").mkdir()
    return tmp_path


def test_flag_before_environment_before_clone_before_home_before_default(clone: Path) -> None:
    (clone / ".popagent" / ".env").write_text("TEST_DOOR_PORT=1\nTEST_DOOR_NAME=home\n")
    (clone / ".env").write_text("TEST_DOOR_PORT=2\n")

    from_clone = DoorSettings.load(environ={})
    from_environment = DoorSettings.load(environ={"TEST_DOOR_PORT": "3"})
    from_flag = DoorSettings.load({"TEST_DOOR_PORT": "4"}, {"TEST_DOOR_PORT": "3"})

    assert (from_clone.port, from_environment.port, from_flag.port) == (2, 3, 4)
    assert from_clone.name == "home"


def test_a_service_that_up_started_reads_no_file(clone: Path) -> None:
    (clone / ".env").write_text("TEST_DOOR_KEY=of-another-service\n")

    own = DoorSettings.load(environ={"POPAGENT_BOOT_ID": "1"})

    assert own.key is None
    assert [layer.source for layer in layers(environ={"POPAGENT_BOOT_ID": "1"})] == ["flag", "environment"]


def test_an_empty_value_is_no_value(clone: Path) -> None:
    assert DoorSettings.load(environ={"TEST_DOOR_PORT": ""}).port == 8420


@pytest.mark.parametrize("value", ["0", "-1", "many", "1.5"])
def test_a_wrong_value_names_its_variable(value: str, clone: Path) -> None:
    with pytest.raises(ConfigurationError, match="TEST_DOOR_PORT") as caught:
        DoorSettings.load(environ={"TEST_DOOR_PORT": value})

    assert caught.value.field == "TEST_DOOR_PORT"


def test_a_missing_value_names_its_variable(clone: Path) -> None:
    with pytest.raises(ConfigurationError, match="TEST_NEEDED_URL"):
        NeedySettings.load(environ={})


def test_every_setting_tells_its_source_and_no_secret(clone: Path) -> None:
    (clone / ".env").write_text("TEST_DOOR_NAME=blue\n")

    rows = {row.env: row for row in DoorSettings.describe(environ={"TEST_DOOR_KEY": "secret-value"})}

    assert (rows["TEST_DOOR_PORT"].value, rows["TEST_DOOR_PORT"].source) == ("8420", "default")
    assert (rows["TEST_DOOR_NAME"].value, rows["TEST_DOOR_NAME"].source) == ("blue", "./.env")
    assert (rows["TEST_DOOR_KEY"].value, rows["TEST_DOOR_KEY"].source) == (None, "environment")
    assert "secret-value" not in repr(DoorSettings.load(environ={"TEST_DOOR_KEY": "secret-value"}))
    assert reveal(DoorSettings.load(environ={"TEST_DOOR_KEY": "secret-value"}).key) == "secret-value"


def test_an_env_file_has_comments_quotes_and_exports(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text("# comment\n\nexport A=1\nB = 'two words'\nC=\"x=y\"\n")

    assert read_env_file(file) == {"A": "1", "B": "two words", "C": "x=y"}
    assert read_env_file(tmp_path / "absent") == {}


def test_an_env_file_with_a_broken_line_is_named_with_its_number(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text("A=1\nnonsense\n")

    with pytest.raises(ConfigurationError, match="line 2"):
        read_env_file(file)
