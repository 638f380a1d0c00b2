// Loads Python with NumPy and tensorgrad, and the page's own Python half.

import { mark } from '../js/timing.js';
import { countFetches } from './progress.js';

const SITE = new URL('../', import.meta.url);
const PACKAGES = ['numpy', 'tensorgrad-webgpu'];
const PAGE_MODULES = [
  '__init__.py', 'blocks.py', 'checking.py', 'completing.py', 'connecting.py', 'console.py', 'describing.py', 'displaying.py',
  'files.py', 'forgotten.py', 'frames.py', 'hints.py', 'inspecting.py', 'keeping.py', 'pictures.py', 'plotting.py',
  'replaced.py', 'showing.py', 'stages.py',
];

const at = (path) => new URL(path, SITE).href;

/**
 * @param {(progress: {loaded: number, total: number, parts: import('./progress.js').Part[]}) => void} report
 * @param {(text: string) => void} writeOut
 * @param {(text: string) => void} writeError
 * @returns {Promise<object>} the pyodide module
 */
export async function loadPython(report, writeOut, writeError) {
  const counter = countFetches(report);
  try {
    const ours = Promise.all(PAGE_MODULES.map(fetchText));
    ours.catch(() => {}); // awaited below; a failure of Pyodide itself is reported first
    const { loadPyodide } = await import(at('pyodide/pyodide.mjs'));
    mark('loader');
    const pyodide = await loadPyodide({
      indexURL: at('pyodide/'),
      lockFileURL: at('pyodide/pyodide-lock.json'),
      packages: PACKAGES,
      stdout: () => {}, // what the loader itself says
      stderr: (line) => console.warn(line),
    });
    mark('Python with its packages');
    const missing = PACKAGES.filter((name) => !(name in pyodide.loadedPackages));
    if (missing.length) throw new Error(`These packages did not load: ${missing.join(', ')}`);
    await registerReplay(pyodide);
    install(pyodide, await ours);
    pyodide.setStdout(writer(writeOut));
    pyodide.setStderr(writer(writeError));
    return pyodide;
  } finally {
    counter.stop();
  }
}

async function fetchText(name) {
  const url = at(`python/tensorgrad_page/${name}`);
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url}: ${response.status} ${response.statusText}`);
  return [name, await response.text()];
}

/** The library's JavaScript helper as a module of the site, so that nothing has to be evaluated. */
async function registerReplay(pyodide) {
  try {
    pyodide.registerJsModule('tensorgrad_replay', await import(at('tensorgrad/replay.js')));
  } catch (error) {
    console.warn(`The library evaluates its own copy of replay.js: ${error.message}`);
  }
}

function install(pyodide, files) {
  const purelib = pyodide.runPython("__import__('sysconfig').get_path('purelib')");
  const folder = `${purelib}/tensorgrad_page`;
  pyodide.FS.mkdirTree(folder);
  for (const [name, text] of files) pyodide.FS.writeFile(`${folder}/${name}`, text);
  pyodide.runPython("__import__('importlib').invalidate_caches()");
}

/** A stream for setStdout: bytes in, text out, characters split between writes put together. */
function writer(write) {
  const decoder = new TextDecoder();
  return {
    write(bytes) {
      write(decoder.decode(bytes, { stream: true }));
      return bytes.length;
    },
  };
}
