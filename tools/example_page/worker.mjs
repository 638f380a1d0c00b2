// Loads Python, NumPy and tensorgrad as any site would, and runs the example that the address names.

const site = new URL("/", self.location);
const asked = new URLSearchParams(self.location.search);
const at = (path) => new URL(path, site).href;
const emit = (kind, rest) => self.postMessage({ kind, ...rest });

async function main() {
  const { loadPyodide } = await import(at("pyodide/pyodide.mjs"));
  const pyodide = await loadPyodide({
    indexURL: at("pyodide/"),
    lockFileURL: at("pyodide/pyodide-lock.json"),
    packages: ["numpy", "tensorgrad-webgpu"],
  });
  if (!("tensorgrad-webgpu" in pyodide.loadedPackages)) throw new Error("the tensorgrad wheel did not load");
  const files = await (await fetch(at("examples.zip"))).arrayBuffer();
  pyodide.unpackArchive(files, "zip", { extractDir: "." });
  const adapter = await self.navigator.gpu?.requestAdapter();
  const { vendor, architecture, description } = adapter?.info ?? {};
  const names = [vendor, architecture, description].filter(Boolean);
  emit("ready", { pyodide: pyodide.version, adapter: names.join(" ") });

  const run = pyodide.runPython("import sys; sys.path.insert(0, '.'); from run_example import run; run");
  const onStep = (step, steps, loss) => emit("step", { step, steps, loss });
  const result = await run(asked.get("name"), asked.get("arguments"), onStep);
  emit("result", JSON.parse(result));
}

main().catch((error) => emit("error", { message: String(error.message ?? error) }));
