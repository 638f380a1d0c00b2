"""Replace Python sources in archives by bytecode. Runs inside Pyodide, so that the bytecode is its own.

Started by `bytecode.mjs`, with a folder of the build machine mounted: every archive of
`IN` is rewritten into `OUT`. Sources become `.pyc` in their place, which Python loads
without looking for the source; in the wheels of `KEEP_SOURCE` the sources stay and the
bytecode goes beside them into `__pycache__`, so that `inspect.getsource` and tracebacks
show them. The `.pyc` files are of the unchecked-hash kind: no time stamps, so the same
source gives the same bytes, and nothing is compared at import. Files for compilers and type checkers are left out: in
NumPy they are half of the files that the page would unpack.
"""

import base64
import hashlib
import importlib.util
import sys
import zipfile
from importlib._bootstrap_external import _code_to_hash_pyc  # type: ignore[attr-defined]
from pathlib import Path

IN = Path("/exchange/in")
OUT = Path("/exchange/out")
KEEP_SOURCE = ("tensorgrad_webgpu-",)
FOR_COMPILERS = (".a", ".c", ".h", ".pxd", ".pyi", ".pyx")
SITE_PACKAGES = f"/lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
STDLIB = f"/lib/python{sys.version_info.major}{sys.version_info.minor}.zip"
ZIP_TIME = (2026, 1, 1, 0, 0, 0)


def main() -> None:
    """Rewrite every archive of IN into OUT."""
    for archive in sorted(IN.iterdir()):
        where = STDLIB if archive.suffix == ".zip" else SITE_PACKAGES
        rewrite(archive, OUT / archive.name, where, keep=archive.name.startswith(KEEP_SOURCE))


def rewrite(source: Path, target: Path, where: str, *, keep: bool) -> None:
    """Copy an archive that unpacks to `where`, with its Python sources compiled."""
    files: dict[str, bytes] = {}
    with zipfile.ZipFile(source) as archive:
        for name in sorted(archive.namelist()):
            if not name.endswith(("/", *FOR_COMPILERS)):
                files |= compiled(name, archive.read(name), f"{where}/{name}", keep=keep)
    (record,) = [name for name in files if name.endswith(".dist-info/RECORD")] or [None]
    if record is not None:
        files[record] = record_of(files, record)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data in files.items():
            info = zipfile.ZipInfo(name, ZIP_TIME)
            info.external_attr = 0o644 << 16
            archive.writestr(info, data, zipfile.ZIP_DEFLATED, 9)


def compiled(name: str, data: bytes, path: str, *, keep: bool) -> dict[str, bytes]:
    """The files that take the place of one file."""
    if not name.endswith(".py"):
        return {name: data}
    try:
        code = compile(data, path, "exec", dont_inherit=True)
    except SyntaxError:  # test data of the standard library and templates are not all valid modules
        return {name: data}
    bytecode = bytes(_code_to_hash_pyc(code, importlib.util.source_hash(data), checked=False))
    if not keep:
        return {name + "c": bytecode}
    folder, _, stem = name.removesuffix(".py").rpartition("/")
    return {name: data, f"{folder}/__pycache__/{stem}.{sys.implementation.cache_tag}.pyc": bytecode}


def record_of(files: dict[str, bytes], record: str) -> bytes:
    """A wheel's RECORD for its new files."""
    lines = []
    for name, data in files.items():
        if name != record:
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            lines.append(f"{name},sha256={digest},{len(data)}")
    return "\n".join([*lines, f"{record},,", ""]).encode()


main()
