// A module of this folder in Pyodide: `await python('tune', 'main', ...args)` calls its function.
export const query = new URLSearchParams(location.search);
export const post = (key, value) => fetch('/r', { method: 'POST', body: JSON.stringify([key, value]) });

export async function start() {
  const home = new URL(query.get('pyodide') ?? '/pyodide/', location.href).href;  // ?pyodide= another one, with bytecode say
  const { loadPyodide } = await import(`${home}pyodide.mjs`);
  const python = await loadPyodide({ indexURL: home });
  await python.loadPackage('numpy');
  python.unpackArchive(await (await fetch('tensorgrad.zip')).arrayBuffer(), 'zip', { extractDir: '/lib/bench' });
  python.runPython('import sys; sys.path.insert(0, "/lib/bench")');
  return python;
}

/** `step(i, read)` of a session of workloads.py, as a promise. */
export function stepper(session) {
  let resolve, reject;
  session.listen(value => resolve(value), text => reject(text));
  return (i, read) => new Promise((...ends) => {
    [resolve, reject] = ends;
    session.step(i, read);
  });
}

/** Runs `main(...args, post)` of a module, where `post` takes a key and JSON; then DONE. */
export async function main(module, ...args) {
  try {
    const python = await start();
    await python.pyimport(module).main(...args, (key, json) => post(key, JSON.parse(json)));
    await post('DONE', 1);
  } catch (error) {
    await post('FATAL', String(error?.stack ?? error));
  }
}
