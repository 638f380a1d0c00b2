"""What the site takes from npm: files as they are, and modules bundled into one file.

`web/vendor.json` names it all: `packages` that the site carries and `tools` that it does not,
each with its version, packages that others need too, so that nothing floats; `files` copied out
of them; `bundles`, each a module that exports the names listed; and `patches`, text replaced in
a source before it is bundled. `firefox` is what the tests drive Firefox with, and what that
needs: many packages, which only the tests wait for (`fetch_puppeteer.py`).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from paths import BUILD, ROOT, fail, fresh, run

LIST = ROOT / "web" / "vendor.json"
NPM = BUILD / "npm"
MODULES = NPM / "node_modules"


def vendor(target: Path) -> None:
    """Put the files, the bundles and their licences into an empty folder."""
    listed = json.loads(LIST.read_text())
    install(NPM, {**listed["packages"], **listed["tools"]}, listed["patches"])
    for name, source in listed["files"].items():
        (target / name).write_bytes((MODULES / source).read_bytes())
    for name, exports in listed["bundles"].items():
        bundle(target / name, exports)


def install(target: Path, pins: dict[str, str], patches: dict[str, list[str]]) -> None:
    """The packages at these versions in a folder, patched; nothing is done where they are there already."""
    manifest = json.dumps({"private": True, "dependencies": pins, "patches": patches})
    stamp = target / "package.json"
    if stamp.is_file() and stamp.read_text() == manifest and (target / MODULES.name).is_dir():
        return
    folder = fresh(target.with_name(f"{target.name}.new"))
    (folder / "package.json").write_text(manifest)
    run(["npm", "install", "--ignore-scripts", "--no-package-lock", "--no-audit", "--no-fund", "--silent"], cwd=folder)
    for package, version in installed(folder / MODULES.name).items():
        # Programs for one platform belong to a tool; everything else has to be listed.
        if not package.startswith("@esbuild/") and pins.get(package) != version:
            fail(f"npm installed {package} {version}; {LIST.relative_to(ROOT)} has {pins.get(package)}")
    for file, (old, new) in patches.items():
        source = (folder / MODULES.name / file).read_text()
        if source.count(old) != 1:
            fail(f"{old!r} is {source.count(old)} times in {file}, not once")
        (folder / MODULES.name / file).write_text(source.replace(old, new))
    fresh(target).rmdir()
    folder.rename(target)


def installed(modules: Path) -> dict[str, str]:
    """The version of every package in a `node_modules` folder."""
    found: list[dict[str, Any]] = []
    for pattern in ("*/package.json", "@*/*/package.json"):
        found += [json.loads(file.read_text()) for file in sorted(modules.glob(pattern))]
    return {package["name"]: package["version"] for package in found}


def bundle(target: Path, exports: dict[str, list[str]]) -> None:
    """One module that exports `exports`, by package, without what they do not use; its licences beside it."""
    entry, used = NPM / f"{target.stem}.entry.js", NPM / f"{target.stem}.json"
    lines = [f"export {{ {', '.join(names)} }} from '{package}';\n" for package, names in exports.items()]
    entry.write_text("".join(lines))
    options = ["--bundle", "--minify", "--format=esm", "--target=es2022", "--log-level=warning"]
    command = [MODULES / ".bin" / "esbuild", entry.name, *options, f"--outfile={target}", f"--metafile={used}"]
    run(command, cwd=NPM)
    inputs = [Path(name).parts for name in json.loads(used.read_text())["inputs"]]
    folders = {NPM.joinpath(*parts[: 3 if parts[1][0] == "@" else 2]) for parts in inputs if parts[0] == MODULES.name}
    licences = [f"{folder.relative_to(MODULES)}\n\n{(folder / 'LICENSE').read_text()}" for folder in sorted(folders)]
    target.with_suffix(".LICENSE.txt").write_text("\n\n".join(licences))
