// Counts the bytes that arrive while Python loads, so that the page can say how much is done.
// Every fetch of this worker is counted until `stop()`; nothing is fetched twice.

const NAMES = [
  [/python_stdlib/, "Python's library"],
  [/numpy/, 'NumPy'],
  [/tensorgrad/, 'tensorgrad'],
];

function nameOf(url) {
  const file = url.split('/').pop();
  return (NAMES.find(([pattern]) => pattern.test(file)) ?? [null, 'Python'])[1];
}

/**
 * @param {(progress: {what: string, loaded: number, total: number}) => void} report
 * @param {(fetch: typeof globalThis.fetch) => Promise<number>} askTotal finds out how much will come, or 0
 * @returns {{stop: () => void}}
 */
export function countFetches(report, askTotal) {
  const original = globalThis.fetch;
  let loaded = 0;
  let known = 0;
  let expected = 0;
  let reportedAt = 0;

  const tell = (what) => {
    const total = Math.max(known, expected);
    const now = performance.now();
    if (now - reportedAt < 50 && loaded < total) return;
    reportedAt = now;
    report({ what, loaded, total });
  };

  const count = (response, url) => {
    const what = nameOf(url);
    // A compressed answer's length is not that of what is read: then only the sum so far is known.
    const length = response.headers.has('content-encoding') ? 0 : Number(response.headers.get('content-length'));
    known += length;
    const counter = new WritableStream({
      write(chunk) {
        loaded += chunk.byteLength;
        if (!length) known += chunk.byteLength;
        tell(what);
      },
    });
    response.clone().body.pipeTo(counter).catch(() => {}); // whoever reads the response itself is told
  };

  globalThis.fetch = async (input, init) => {
    const response = await original(input, init);
    const url = typeof input === 'string' ? input : (input.url ?? String(input));
    if (response.ok && response.body) count(response, url);
    return response; // itself: only with that does the browser keep the code that it compiles
  };
  askTotal(original).then(
    (bytes) => (expected = bytes),
    () => {}, // the bar then grows by what is known
  );
  return { stop: () => (globalThis.fetch = original) };
}

/** The sum of some files' lengths, or 0 where the server does not say. */
export async function sumOfLengths(fetch, urls) {
  const answers = await Promise.all(urls.map((url) => fetch(url, { method: 'HEAD' })));
  const lengths = answers.map(({ ok, headers }) =>
    ok && !headers.has('content-encoding') ? Number(headers.get('content-length')) : 0,
  );
  return lengths.includes(0) ? 0 : lengths.reduce((sum, length) => sum + length, 0);
}
