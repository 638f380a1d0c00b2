// The worker that runs tests: loads Pyodide, unpacks the files that pytest sent, and starts
// pytest in it. Python then waits for messages with `receive` and answers with `send`.

const waiting = [];
let wake = null;
let interrupt;

self.onmessage = ({ data }) => {
  if (data.kind === "interrupt") {
    interrupt = data.interrupt;
    return;
  }
  if (data.kind === "start") {
    start(data).catch((error) => self.postMessage({ kind: "fatal", message: String(error.message ?? error) }));
    return;
  }
  waiting.push(data);
  wake?.();
};

async function receive() {
  while (waiting.length === 0) {
    await new Promise((resolve) => { wake = resolve; });
  }
  return JSON.stringify(waiting.shift());
}

function output(stream) {
  const decoder = new TextDecoder();
  return {
    write(bytes) {
      self.postMessage({ kind: "output", stream, text: decoder.decode(bytes, { stream: true }) });
      return bytes.length;
    },
  };
}

async function start({ pyodideURL, packages, filesURL, config }) {
  const { loadPyodide } = await import(`${pyodideURL}pyodide.mjs`);
  const pyodide = await loadPyodide({
    indexURL: pyodideURL,
    lockFileURL: `${pyodideURL}pyodide-lock.json`,
    env: config.env,
  });
  await pyodide.loadPackage(packages, { messageCallback: () => {}, errorCallback: () => {} });
  const missing = packages.filter((name) => !(name in pyodide.loadedPackages));
  if (missing.length > 0) {
    throw new Error(`Pyodide at ${pyodideURL} could not load: ${missing.join(", ")}`);
  }
  const files = await (await fetch(filesURL)).arrayBuffer();
  pyodide.unpackArchive(files, "zip", { extractDir: "/" });
  pyodide.setStdout(output("stdout"));
  pyodide.setStderr(output("stderr"));
  pyodide.registerJsModule("tensorgrad_harness", { receive, send: (text) => self.postMessage(JSON.parse(text)) });
  pyodide.setInterruptBuffer(interrupt);
  const main = pyodide.runPython(`
    import sys
    sys.path.insert(0, "/packages")
    from tensorgrad.testing.inpage import main
    main
  `);
  const code = await main.callPromising(JSON.stringify(config));
  self.postMessage({ kind: "exit", code });
}
