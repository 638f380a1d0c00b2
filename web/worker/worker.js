// The worker in which Python runs. Messages:
//
//   page to worker   {type: 'start', flag, files}       flag: a SharedArrayBuffer of 1 byte, or null;
//                                                       files: whether Python gets those that the browser keeps
//                    {type: 'run', id, source, force, program, chart}
//                    {type: 'complete', id, line, program}
//                    {type: 'describe', id, expression, program}
//                    {type: 'interrupt', id}             the id of the run to stop where it waits
//                    {type: 'raise', id}                 and wherever it is, where `flag` is null
//                    {type: 'file', id, name, bytes}     for the working folder
//                    {type: 'inspect', id, request}      JSON, of `tensorgrad_page.inspecting`
//                    {type: 'chosen', bytes, error}      a file, or null; or why the page shows none
//   worker to page   {type: 'progress', loaded, total, parts}   {type: 'device', device}
//                    {type: 'ready', versions, suspends, marks, files}   {type: 'failed', message}
//                    {type: 'write', stream, text}       {type: 'plot', text}
//                    {type: 'started'}                   the input is complete and runs
//                    {type: 'display', text}          {type: 'show', text}
//                    {type: 'stopping', id}              the interrupt was heard
//                    {type: 'done', id, status, text, line, hint, lost, milliseconds}
//                    {type: 'completions', id, items, start}
//                    {type: 'described', id, found}      found: {signature, doc} or null
//                    {type: 'filed', id, error}
//                    {type: 'inspected', id, text}
//                    {type: 'download', name, bytes}     {type: 'choose', accept}

import { mark, marks } from '../js/timing.js';
import { findDevice } from './device.js';
import { loadPython } from './load.js';

const INTERRUPT = 2; // SIGINT

const send = (message) => self.postMessage(message);

let console_ = null;
let files = null;
let inspecting = null; // imported when the inspector is opened
let flag = null;
let running = null;
let chosen = null; // takes the page's answer to 'choose'
let python = null;
let crash = null; // ends the input that runs where Python has given up in a callback of the event loop, and so without a word

async function start(shared, wanted) {
  mark('worker');
  const kept = wanted ? import('../js/kept_files.js').then(({ keptFiles }) => keptFiles()) : [];
  const device = findDevice();
  device.then((device) => send({ type: 'device', device }));
  const pyodide = await loadPython(
    (progress) => send({ type: 'progress', ...progress }),
    (text) => send({ type: 'write', stream: 'out', text }),
    (text) => send({ type: 'write', stream: 'error', text }),
  );
  python = pyodide;
  flag = new Uint8Array(shared ?? new ArrayBuffer(1));
  pyodide.setInterruptBuffer(flag);
  const tensorgrad = pyodide.pyimport('tensorgrad');
  mark('import of tensorgrad');
  const page = pyodide.pyimport('tensorgrad_page');
  console_ = page.start(
    (type, text) => send({ type, text }),
    (name, bytes) => send({ type: 'download', name, bytes }),
    (accept) => new Promise((resolve, reject) => {
      chosen = ({ bytes, error }) => (error ? reject(new Error(error)) : resolve(bytes));
      send({ type: 'choose', accept });
    }),
    (await device).kind === 'numpy',
  );
  files = pyodide.FS;
  const found = await restore(await kept);
  inspecting = () => pyodide.pyimport('tensorgrad_page.inspecting');
  const version = pyodide.runPython("__import__('platform').python_version()");
  const versions = { python: version, tensorgrad: tensorgrad.__version__, pyodide: pyodide.version };
  mark('ready');
  send({ type: 'ready', versions, suspends: 'Suspending' in WebAssembly, marks: marks(), files: found });
  tensorgrad.destroy();
  page.destroy();
}

/** Before anything runs, so that the first input finds them. @returns {Promise<string[]>} their names */
async function restore(kept) {
  const names = [];
  for (const file of kept) {
    try {
      files.writeFile(file.name, new Uint8Array(await file.arrayBuffer()));
      names.push(file.name);
    } catch (error) {
      console.warn(`${file.name} is kept, and cannot be read: ${error.message}`);
    }
  }
  return names;
}

async function run({ id, source, force, program, chart }) {
  running = id;
  flag[0] = 0;
  const started = performance.now();
  let outcome;
  try {
    const crashed = new Promise((resolve, reject) => (crash = reject));
    outcome = JSON.parse(await Promise.race([console_.run_input(source, force, program, chart), crashed]));
  } catch (error) {
    // What the input raises comes back as its outcome; this is Python itself giving up.
    outcome = { status: 'crashed', text: `${error.message}\n` };
  }
  running = null;
  flag[0] = 0;
  send({ type: 'done', id, ...outcome, milliseconds: performance.now() - started });
}

/** Only heard while Python waits; a busy loop is stopped by the page through the shared flag. */
function interrupt(id) {
  if (running !== id) return;
  send({ type: 'stopping', id });
  console_.interrupt();
}

/** Where the page has no flag to raise. */
function raise(id) {
  if (running === id) flag[0] = INTERRUPT;
}

function complete({ id, line, program }) {
  const found = console_ ? JSON.parse(console_.complete_line(line, program)) : { items: [], start: 0 };
  send({ type: 'completions', id, ...found });
}

function describe({ id, expression, program }) {
  send({ type: 'described', id, found: console_ && JSON.parse(console_.describe_name(expression, program)) });
}

function file({ id, name, bytes }) {
  try {
    files.writeFile(name, bytes);
    send({ type: 'filed', id });
  } catch (error) {
    send({ type: 'filed', id, error: error.message ?? String(error) });
  }
}

async function inspect({ id, request }) {
  const module = inspecting();
  try {
    send({ type: 'inspected', id, text: await module.answer(request) });
  } catch (error) {
    send({ type: 'inspected', id, text: JSON.stringify({ error: error.message }) });
  }
  module.destroy();
}

/** Whether Python can still be used: after a fatal error, such as a stack that the browser found too deep, every call raises. */
function alive() {
  try {
    python.runPython('');
    return true;
  } catch {
    return false;
  }
}

/** What nobody caught: the page tells what a callback raised, unless it is the end of Python. */
function uncaught(event) {
  if (running === null || alive()) return;
  event.preventDefault();
  crash(event.reason ?? event.error);
}

self.addEventListener('unhandledrejection', uncaught);
self.addEventListener('error', uncaught);

self.onmessage = ({ data }) => {
  if (data.type === 'start') {
    start(data.flag, data.files).catch((error) => send({ type: 'failed', message: String(error.message ?? error) }));
  } else if (data.type === 'run') run(data);
  else if (data.type === 'complete') complete(data);
  else if (data.type === 'describe') describe(data);
  else if (data.type === 'inspect') inspect(data);
  else if (data.type === 'chosen') chosen?.(data);
  else if (data.type === 'file') file(data);
  else if (data.type === 'interrupt') interrupt(data.id);
  else if (data.type === 'raise') raise(data.id);
};
