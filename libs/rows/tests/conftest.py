from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Callable

import pytest

from popagent_db.bootstrap import bootstrap, role_dsn
from popagent_db.migrate import KERNEL, migrate, migrations_folder
from popagent_db.pool import Pool, open_pool
from popagent_rows.pulse import Pulse
from popagent_testing.leased_work import CREATE
from popagent_testing.plugin import Prepare, role_password

PASSWORDS = {"gateway": role_password("gateway")}


@pytest.fixture(scope="session")
def prepare_kernel(tmp_path_factory: pytest.TempPathFactory) -> Prepare:
    """Makes a gateway schema with the kernel's tables alone."""
    folder = tmp_path_factory.mktemp("migrations")
    shutil.copytree(migrations_folder() / KERNEL, folder / KERNEL)

    async def prepare(admin_dsn: str, _: str) -> None:
        await bootstrap(admin_dsn, list(PASSWORDS), PASSWORDS)
        await migrate(role_dsn(admin_dsn, "gateway", PASSWORDS["gateway"]), "gateway", folder)

    return prepare


@pytest.fixture
def dsn(templates: Callable[[str, Prepare], str], prepare_kernel: Prepare) -> str:
    """The gateway role's DSN of a fresh database."""
    return role_dsn(templates("kernel", prepare_kernel), "gateway", PASSWORDS["gateway"])


@pytest.fixture
async def pool(dsn: str) -> AsyncIterator[Pool]:
    opened = await open_pool(dsn, application_name="test", max_size=8)
    yield opened
    await opened.close()


@pytest.fixture
async def pulse(pool: Pool) -> AsyncIterator[Pulse]:
    """A pulse ten times faster than in a service."""
    beating = Pulse(pool, period_s=0.1)
    beating.start()
    yield beating
    await beating.stop()


@pytest.fixture
async def table(pool: Pool) -> Pool:
    """A pool whose schema has the table of work."""
    await pool.execute(CREATE)
    return pool
