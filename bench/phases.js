// Where the time of a first step, and of later ones, goes. ?works=cnn,gpt&warmup=100&steps=200
// ?again opens the page a second time in the same profile, where it finds the plan cache.
import { work, ADAM, GPT, SGDM, STAGES } from './common.js';
import { post, query, start, stepper } from './python.js';

const warmup = Number(query.get('warmup') ?? 100), steps = Number(query.get('steps') ?? 200);
const visit = query.has('second') ? 'second visit: ' : '';
const tell = (key, value) => post(visit + key, value);
let events = [];

/** Notes when a method is called and has returned, and when its promise is kept. */
function watch(prototype, name) {
  const original = prototype[name];
  prototype[name] = function (...args) {
    events.push([`${name} called`, performance.now()]);
    const result = original.apply(this, args);
    events.push([`${name} returned`, performance.now()]);
    if (result instanceof Promise) result.then(() => events.push([`${name} kept`, performance.now()]), () => {});
    return result;
  };
}

const first = name => events.find(([key]) => key === name)?.[1];
const last = name => events.findLast(([key]) => key === name)?.[1];
const median = times => +[...times].sort((a, b) => a - b)[times.length >> 1].toFixed(3);
const since = from => +(performance.now() - from).toFixed(1);

/** Medians of the parts of steps whose loss is read: Python, uploads, encoding, submitting, waiting, Python. */
async function parts(step) {
  const found = {};
  for (let i = 0; i < steps; i++) {
    events = [];
    const begin = performance.now();
    await step(i, true);
    const end = performance.now();
    const at = [begin, first('writeBuffer called'), last('writeBuffer returned'), first('submit called'),
      last('submit returned'), first('mapAsync kept'), end];
    const names = ['Python before', 'uploads', 'encoding', 'submitting', 'waiting', 'Python after'];
    names.forEach((name, n) => (found[name] ??= []).push(at[n + 1] - at[n]));
    (found.all ??= []).push(end - begin);
  }
  return Object.fromEntries(Object.entries(found).map(([name, times]) => [name, median(times)]));
}

async function run(python, name) {
  const data = work(name), lines = [];  // which sets GPT
  const options = { gpt: { ...GPT }, stages: STAGES, device: 'webgpu', adam: ADAM, sgd: SGDM };
  python.setStderr({ batched: line => lines.push(line) });  // `tg.debug(1)` tells the stages of a compilation
  events = [];
  const begin = performance.now();
  const session = await python.pyimport('workloads').session(data, options);
  const ready = since(begin);
  const shaders = [first('createComputePipelineAsync called') - begin, last('createComputePipelineAsync kept') - begin];
  const step = stepper(session);
  const stepping = performance.now();
  await step(0, true);
  await tell(`${name}: first step, ms`, { ready, 'first step': since(stepping), shaders, note: JSON.parse(session.note), lines });
  for (let i = 0; i < warmup; i++) await step(i, true);
  if (!steps) return;
  await tell(`${name}: loss read, ms`, await parts(step));
  const each = [];
  for (let i = 0; i < steps; i += 10) {
    const from = performance.now();
    for (let k = 0; k < 10; k++) await step(k, k === 9);
    each.push((performance.now() - from) / 10);
  }
  await tell(`${name}: loss read every 10 steps, ms`, median(each));
}

try {
  for (const [prototype, name] of [[GPUQueue, 'writeBuffer'], [GPUQueue, 'submit'], [GPUBuffer, 'mapAsync'],
    [GPUDevice, 'createComputePipelineAsync']]) watch(prototype.prototype, name);
  await navigator.gpu.requestAdapter();  // as the site's page does while Python loads: the GPU process is up
  let from = performance.now();
  const python = await start();
  await tell('Pyodide, ms', since(from));
  for (const module of ['numpy', 'tensorgrad']) {
    from = performance.now();
    python.pyimport(module);
    await tell(`import ${module}, ms`, since(from));
  }
  python.pyimport('tensorgrad').debug(1);
  for (const name of (query.get('works') ?? 'cnn').split(',')) await run(python, name);
  if (query.has('again') && !visit) {
    await new Promise(resolve => setTimeout(resolve, 1500));  // the cache is written by the way
    location.search += '&second';
  } else await post('DONE', 1);
} catch (error) {
  await post('FATAL', String(error?.stack ?? error));
}
