"""What no core dump is to have (MADV_DONTDUMP) is not spilled in the clear, or a line says that it is."""
import mmap
import os
import pathlib

import pytest
from kit import Kit, SMALL, expect, start

pytestmark = pytest.mark.engines("mapped", "unmodified", "threads")
SECRET = (0x5EC2E75EC2E75EC2).to_bytes(8, "little") * 64
FITS_KIB, TOO_MUCH_KIB = 256, 3 << 10
MANAGED = {"SPILLWAY_THRESHOLD": "64K"}


def _spilled(kit: Kit, *arguments, env: dict[str, str]) -> tuple[bool, str]:
    """Whether the spill file, which has no name, holds the secret while the program waits; what it wrote to standard error."""
    with start(kit, kit.compile("secrets.cc", "-O2"), *arguments, env=SMALL.environment() | MANAGED | env) as process:
        expect(process.stdout.readline() == "spilled\n", "it did not come so far")
        found = _holds_the_secret(process.pid, kit.store)
        _, errors = process.communicate("\n", timeout=60)
    expect(process.returncode == 0, f"exit code {process.returncode}: {errors}")
    return found, errors


def _holds_the_secret(process: int, store: pathlib.Path) -> bool:
    looked = 0
    for entry in pathlib.Path(f"/proc/{process}/fd").iterdir():
        if os.readlink(entry).startswith(str(store)):
            with open(entry, "rb") as file:
                if _data_has(file, SECRET):
                    return True
            looked += 1
    expect(looked > 0, "no spill file was found")
    return False


def _data_has(file, wanted: bytes) -> bool:
    """A spill file is as long as it may become: only what it has data for is looked at."""
    at = 0
    while True:
        try:
            begin = os.lseek(file.fileno(), at, os.SEEK_DATA)
        except OSError:
            return False
        at = os.lseek(file.fileno(), begin, os.SEEK_HOLE)
        with mmap.mmap(file.fileno(), at - begin, prot=mmap.PROT_READ, offset=begin) as data:
            if data.find(wanted) != -1:
                return True


def test_what_is_held_is_dropped_whatever_its_rights(kit: Kit) -> None:
    kit.same_as_native("dropped_secret.c", configs=(SMALL,), env=MANAGED)


def test_a_secret_stays_in_memory(kit: Kit) -> None:
    found, errors = _spilled(kit, FITS_KIB, env={})
    expect(not found and errors == "", f"in the spill file: {found}; {errors}")


def test_a_secret_stays_in_memory_in_a_child(kit: Kit) -> None:
    found, errors = _spilled(kit, FITS_KIB, "child", env={})
    expect(not found and errors == "", f"in the spill file: {found}; {errors}")


def test_more_secrets_than_can_stay_are_warned_of(kit: Kit) -> None:
    found, errors = _spilled(kit, TOO_MUCH_KIB, env={})
    expect(found, "nothing of it was spilled: this test would not find a secret")
    expect(errors.count("\n") == 1 and "spilled in the clear" in errors and "--encrypt" in errors, errors)


def test_encrypted_it_may_be_spilled(kit: Kit) -> None:
    found, errors = _spilled(kit, TOO_MUCH_KIB, env={"SPILLWAY_ENCRYPT": "on"})
    if "needs libipsec-mb" in errors or "no encryption" in errors:
        pytest.skip(errors.strip())
    expect(not found and errors == "", f"in the spill file: {found}; {errors}")
