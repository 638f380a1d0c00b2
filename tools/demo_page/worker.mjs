// Loads Python, NumPy and tensorgrad as any site would, and runs examples/mnist.py.

const site = new URL("/", self.location);
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
  for (const [url, path] of [["demo/mnist.py", "mnist.py"], ["data/mnist.npz", "mnist.npz"]]) {
    pyodide.FS.writeFile(path, new Uint8Array(await (await fetch(at(url))).arrayBuffer()));
  }
  emit("ready", { version: pyodide.version });
  pyodide.globals.set("on_step", (step, steps, loss) => emit("step", { step, steps, loss }));
  const result = await pyodide.runPythonAsync(`
    import sys, warnings
    import numpy as np
    sys.path.insert(0, ".")
    warnings.simplefilter("error")  # above all the one that says that there is no GPU
    import mnist
    result = await mnist.main(dict(np.load("mnist.npz")), on_step=on_step)
    f'{{"accuracy": {result.accuracy}, "predictions": {result.predictions.tolist()}}}'
  `);
  emit("result", JSON.parse(result));
}

main().catch((error) => emit("error", { message: String(error.message ?? error) }));
