// Runs bytecode.py in Pyodide under Node: node bytecode.mjs <Pyodide folder> <exchange folder>
// The exchange folder holds `in/` with the archives to compile, and gets `out/`.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { resolve } from "node:path";

const [pyodideFolder, exchange] = process.argv.slice(2).map((path) => resolve(path));
const { loadPyodide } = await import(pathToFileURL(`${pyodideFolder}/pyodide.mjs`).href);
const pyodide = await loadPyodide({ indexURL: `${pyodideFolder}/`, args: ["-W", "ignore"] });
pyodide.mountNodeFS("/exchange", exchange);
pyodide.runPython(readFileSync(new URL("bytecode.py", import.meta.url), "utf8"));
