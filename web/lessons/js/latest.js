// What a reader does comes faster than Python answers: only the latest counts.

/**
 * @template T
 * @param {(value: T) => Promise<unknown>} run
 * @returns {(value: T) => Promise<void>} runs with the value, or keeps it, in place of an older one, until `run` is free;
 *   resolves when nothing is kept any more
 */
export function latest(run) {
  const kept = [];
  let running = null;
  async function work() {
    while (kept.length > 0) await run(kept.pop());
  }
  return (value) => {
    kept.splice(0, 1, value);
    running ??= work().finally(() => (running = null));
    return running;
  };
}
