// Counts the bytes that arrive while Python loads, so that the page can say how much is done, part by part.
// Every fetch of this worker is looked at until `stop()`; nothing is fetched twice.

import { SIZES } from './sizes.js';

const NAMES = { 'pyodide.asm.wasm': 'Python', 'python_stdlib.zip': 'its library', numpy: 'NumPy', tensorgrad: 'tensorgrad' };
const BETWEEN = 50; // ms from one report to the next

/** @typedef {{name: string, loaded: number, total: number}} Part  in bytes; a total of 0 is not known */

/**
 * @param {(progress: {loaded: number, total: number, parts: Part[]}) => void} report
 * @returns {{stop: () => void}}
 */
export function countFetches(report) {
  const original = globalThis.fetch;
  const parts = new Map(Object.entries(NAMES).map(([file, name]) => [file, { name, loaded: 0, total: SIZES[file] ?? 0 }]));
  let reportedAt = 0;

  const tell = () => {
    const all = [...parts.values()];
    const sum = (what) => all.reduce((sum, part) => sum + part[what], 0);
    const [loaded, total] = [sum('loaded'), all.every((part) => part.total) ? sum('total') : 0];
    const now = performance.now();
    if (now - reportedAt < BETWEEN && loaded < total) return;
    reportedAt = now;
    report({ loaded, total, parts: all });
  };

  const count = (response, part) => {
    const counter = new WritableStream({
      write(chunk) {
        part.loaded += chunk.byteLength;
        tell();
      },
    });
    response.clone().body.pipeTo(counter).catch(() => {}); // whoever reads the response itself is told
  };

  globalThis.fetch = async (input, init) => {
    const response = await original(input, init);
    const file = (input.url ?? String(input)).split('/').pop();
    const part = parts.get([...parts.keys()].find((start) => file.startsWith(start)));
    if (part && response.ok && response.body) count(response, part);
    return response; // itself: only of that does the browser keep the machine code that it makes
  };
  return { stop: () => (globalThis.fetch = original) };
}
