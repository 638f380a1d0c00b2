// What a step costs outside the GPU: `step_cost.py` in Pyodide on a workload of common.js. ?work=gpt&rounds=5
import { work, ADAM, GPT, SGDM, STAGES } from '/common.js';
const query = new URLSearchParams(location.search);
const post = (key, value) => fetch('/r', { method: 'POST', body: JSON.stringify([key, value]) });

try {
  const { loadPyodide } = await import('/pyodide/pyodide.mjs');
  const python = await loadPyodide({ indexURL: '/pyodide/' });
  await python.loadPackage('numpy');
  python.unpackArchive(await (await fetch('/tensorgrad.zip')).arrayBuffer(), 'zip', { extractDir: '/lib/bench' });
  python.globals.set('WORK', work(query.get('work') ?? 'gpt'));
  python.globals.set('OPTIONS', { gpt: { ...GPT }, stages: STAGES, device: 'webgpu', adam: ADAM, sgd: SGDM });
  python.globals.set('post', (key, json) => post(key, JSON.parse(json)));
  python.globals.set('ROUNDS', Number(query.get('rounds') ?? 5));
  await python.runPythonAsync(`
import sys
sys.path.insert(0, "/lib/bench")
import step_cost
await step_cost.main(WORK, OPTIONS, ROUNDS, post)`);
  await post('DONE', 1);
} catch (error) {
  await post('FATAL', String(error?.stack ?? error));
}
