// One Python session: the worker, what it is doing, and how to stop it.

import { markAll } from './timing.js';

const BUSY_AFTER = 80; // ms without an answer after which Python is taken to be in a busy loop
const PATIENCE = 150; // ms that an input which waits has to stop by itself, once it has heard
const STUCK_AFTER = 2000;
const INTERRUPT = 2; // SIGINT
const RESTARTED = { status: 'restarted', items: [], start: 0, found: null }; // the answer to what an ended Python was asked

/**
 * Events: `state` (detail: 'loading' | 'ready' | 'running' | 'failed' | 'crashed'), and the worker's messages
 * under their own names (`progress`, `device`, `ready`, `failed`, `started`, `write`, `plot`,
 * `display`, `show`, `download`, `choose`), and `stuck`
 * (detail: {canRestartOnly: boolean}) where an interrupt was not heard.
 */
export class Session extends EventTarget {
  /** @param {{files?: boolean}} options files: whether Python gets the files that this browser keeps */
  constructor({ files = false } = {}) {
    super();
    this._files = files;
    this.state = 'loading';
    this.isolated = self.crossOriginIsolated === true;
    this._worker = null;
    this._flag = null;
    this._nextId = 1;
    this._waiting = new Map();
    this._running = null;
    this._started = false; // whether the worker has come to it
    this._toStop = false; // as soon as it has
    this._timers = [];
  }

  start() {
    const shared = this.isolated ? new SharedArrayBuffer(1) : null;
    this._flag = shared && new Uint8Array(shared);
    this._worker = moduleWorker(new URL('../worker/worker.js', import.meta.url));
    this._worker.onmessage = ({ data }) => this._receive(data);
    this._worker.onerror = (event) => {
      event.preventDefault();
      const message = event.message || 'the worker could not be loaded';
      if (this.state === 'loading') this._receive({ type: 'failed', message });
      else this._receive({ type: 'write', stream: 'error', text: `${message}\n` }); // of a callback; Python goes on
    };
    this._worker.postMessage({ type: 'start', flag: shared, files: this._files });
    this._setState('loading');
  }

  /** Starts Python where nobody has yet, and again where it did not start or has crashed. */
  wake() {
    if (!this._worker) this.start();
    else if (this.state === 'failed' || this.state === 'crashed') this.restart();
  }

  /** Throws the running Python away; what waits is answered with 'restarted'. */
  end() {
    this._worker?.terminate();
    this._worker = null;
    this.state = 'loading';
    this._clearTimers();
    this._running = null;
    for (const resolve of this._waiting.values()) resolve(RESTARTED);
    this._waiting.clear();
  }

  /** Throws the running Python away and starts a new one. */
  restart() {
    this.end();
    this.start();
  }

  /**
   * @param {string} source
   * @param {boolean} force runs a block that could still go on
   * @param {boolean} program whether it is the program beside the console: its curves are new ones, its file is called so
   * @param {string} chart the one of several in the page in which it plots
   * @returns {Promise<{status: string, text?: string, milliseconds?: number}>}
   */
  async run(source, force = false, program = false, chart = '') {
    if (!this._worker) return RESTARTED;
    const id = this._nextId++;
    this._running = id;
    this._started = this._toStop = false;
    this._setState('running');
    return this._ask({ type: 'run', id, source, force, program, chart });
  }

  /** @returns {Promise<{items: string[], start: number}>} */
  async complete(line, program = '') {
    if (!this.loaded) return { items: [], start: line.length };
    return this._ask({ type: 'complete', id: this._nextId++, line, program });
  }

  /** @returns {Promise<{signature: string, doc: string} | null>} */
  async describe(expression, program = '') {
    if (!this.loaded) return null;
    return (await this._ask({ type: 'describe', id: this._nextId++, expression, program })).found;
  }

  /** Puts a file into Python's working folder. @returns {Promise<{error?: string}>} */
  put(name, bytes) {
    return this._ask({ type: 'file', id: this._nextId++, name, bytes });
  }

  /** What the inspector asks for; see `tensorgrad_page.inspecting`. @returns {Promise<object>} */
  async inspect(request) {
    if (!this.loaded) return { error: 'Python is not there yet.' };
    const { text } = await this._ask({ type: 'inspect', id: this._nextId++, request: JSON.stringify(request) });
    return text === undefined ? { error: 'Python was restarted.' } : JSON.parse(text);
  }

  /** The answer to `choose`: a file's bytes or null, or why there is none. */
  chosen(bytes, error = null) {
    this._worker.postMessage({ type: 'chosen', bytes, error });
  }

  /**
   * Stops the running input. One that waits hears the message and stops at its await; a busy loop
   * does not, and is stopped through the shared flag where the page is cross-origin isolated. That flag
   * stops whatever Python is doing, so it is kept down until the worker has come to the input.
   */
  interrupt() {
    const id = this._running;
    if (id === null) return;
    this._clearTimers();
    this._heard = false;
    this._toStop = !this._started;
    if (this._started) {
      this._worker.postMessage({ type: 'interrupt', id });
      this._later(BUSY_AFTER, id, () => this._flag && !this._heard && this._raise());
    }
    this._later(STUCK_AFTER, id, () => this._emit('stuck', { canRestartOnly: !this._flag && !this._heard }));
  }

  /** KeyboardInterrupt, wherever Python is: without the shared flag once it waits. */
  _raise() {
    if (this._flag) this._flag[0] = INTERRUPT;
    else this._worker.postMessage({ type: 'raise', id: this._running });
  }

  /** Whether Python is there. */
  get loaded() {
    return this.state === 'ready' || this.state === 'running';
  }

  _later(delay, id, action) {
    this._timers.push(setTimeout(() => this._running === id && action(), delay));
  }

  _clearTimers() {
    this._timers.forEach(clearTimeout);
    this._timers = [];
  }

  _ask(message) {
    return new Promise((resolve) => {
      this._waiting.set(message.id, resolve);
      this._worker.postMessage(message);
    });
  }

  _receive(message) {
    switch (message.type) {
      case 'done':
        this._clearTimers();
        if (this._flag) this._flag[0] = 0; // raised just after the end
        this._running = null;
        this._answer(message);
        this._setState(message.status === 'crashed' ? 'crashed' : 'ready');
        break;
      case 'completions':
      case 'described':
      case 'filed':
      case 'inspected':
        this._answer(message);
        break;
      case 'stopping':
        this._heard = true;
        this._later(PATIENCE, message.id, () => this._raise());
        break;
      case 'started':
        this._started = true;
        this._emit(message.type, message);
        if (this._toStop) this.interrupt();
        break;
      case 'ready':
        markAll(message.marks);
        this._emit('ready', message);
        this._setState('ready');
        break;
      case 'failed':
        this._emit('failed', message);
        this._setState('failed');
        break;
      default:
        this._emit(message.type, message);
    }
  }

  _answer(message) {
    this._waiting.get(message.id)?.(message);
    this._waiting.delete(message.id);
  }

  _setState(state) {
    this.state = state;
    this._emit('state', state);
  }

  _emit(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}

/** A worker may not come from another origin; one of the page's own may import what does. */
function moduleWorker(url) {
  if (url.origin === location.origin) return new Worker(url, { type: 'module' });
  const source = new Blob([`import ${JSON.stringify(url.href)};`], { type: 'text/javascript' });
  const own = URL.createObjectURL(source);
  const worker = new Worker(own, { type: 'module' });
  worker.addEventListener('message', () => URL.revokeObjectURL(own), { once: true }); // by then it is loaded
  return worker;
}
