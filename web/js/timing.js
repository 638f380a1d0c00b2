// When each stage of a start was over, as marks of the browser's own (User Timing): the browser's tools show them, and
// `tools/measure_load.py` reads them.

const PREFIX = 'tensorgrad: ';

/** Notes that a stage is over now, in the page or in a worker. */
export function mark(stage) {
  performance.mark(PREFIX + stage);
}

/** The marks of this thread, to be sent to another: names, and times on the clock that all threads share. */
export function marks() {
  return performance
    .getEntriesByType('mark')
    .filter(({ name }) => name.startsWith(PREFIX))
    .map(({ name, startTime }) => ({ name, at: performance.timeOrigin + startTime }));
}

/** Notes the marks of another thread. */
export function markAll(others) {
  for (const { name, at } of others) performance.mark(name, { startTime: Math.max(0, at - performance.timeOrigin) });
}
