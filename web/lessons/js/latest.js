// What a pointer asks for comes faster than Python answers: only the latest counts.

/**
 * @param {(source: string) => Promise<unknown>} run
 * @returns {(source: string) => Promise<void>} runs the source, or keeps it, in place of an older one, until `run` is free
 */
export function latest(run) {
  let next = null;
  let running = false;
  return async (source) => {
    next = source;
    if (running) return;
    running = true;
    try {
      while (next !== null) {
        const taken = next;
        next = null;
        await run(taken);
      }
    } finally {
      running = false;
    }
  };
}
