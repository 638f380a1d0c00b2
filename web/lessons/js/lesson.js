// The frame of a lesson: one Python, the cells that run in it one after the other, exercises with their checks.

import { limitsOf } from '../../js/limits.js';
import { isolate, keepOffline } from '../../js/offline.js';
import { Session } from '../../js/session.js';
import { Status } from '../../js/status.js';
import { loadObject, remove, save } from '../../js/storage.js';
import { Turns } from '../../js/turns.js';
import { Cell } from './cell.js';
import { make, part } from './make.js';
import { values } from './values.js';

const MOST_TRIES = 3; // to run the cells of the picture on a GPU that is not lost meanwhile
const AGAIN = 'Loading the page again tries anew.';
const NOT_CHECKED = {
  error: 'The cell raised an error: see above.',
  interrupted: 'The cell was stopped before its end, so nothing was checked.',
  restarted: 'Python restarted, so nothing was checked.',
  crashed: 'Python has crashed, so nothing was checked.',
  failed: 'There is no Python to check it.',
};

/**
 * Events: `show` (detail: the values that Python gave to the picture), `ready` when the cells of the picture have
 * run, `plot` (detail: a message of `plot`), `wrong` when a call of the picture has not ended well, `lost`
 * when the cells of the picture run again, in another Python or on the GPU opened anew.
 */
export class Lesson extends EventTarget {
  /** @param {string} folder of the lesson's files, from the page */
  constructor(folder) {
    super();
    this.name = folder;
    this._folder = new URL(`${folder}/`, document.baseURI);
    this._session = new Session();
    this._turns = new Turns(this._session);
    this._status = new Status({
      line: part('status'), text: part('status-text'), bar: part('status-bar'),
      device: part('device'), detail: part('device-detail'), live: part('live'),
    });
    this.cells = new Map();
    this._controls = [];
    this._starting = null; // the start that runs the cells of the picture
    asWritten();
    this._listen();
    isolate().then((reloads) => {
      if (reloads) return;
      this._tellLimits();
      this._session.start();
    });
  }

  /** Loads the code of the cells and the exercises, and runs those that the picture needs. */
  async open() {
    const roots = [...document.querySelectorAll('[data-code]')];
    const made = roots.map((root) => {
      const cell = new Cell(root, {
        run: (cell, source) => this._runCell(cell, source),
        stop: () => this._stop(),
        complete: (line, source) => this._session.complete(line, source),
        describe: (expression, source) => this._session.describe(expression, source),
        say: (text) => this.say(text),
        busy: () => [...this.cells.values()].find((other) => other.busy),
        edited: (cell) => this._edited(cell),
      });
      this.cells.set(root.dataset.code, cell);
      if (root.dataset.check) this._addCheck(cell, root.dataset.check);
      return cell;
    });
    await Promise.all(made.map((cell) => cell.root.dataset.written === undefined && this._load(cell)));
    await this._start();
  }

  /** @param {HTMLButtonElement[]} controls that work only while the picture's cells are there */
  govern(controls) {
    this._controls = controls;
    this._enable(false);
  }

  cell(name) {
    return this.cells.get(name);
  }

  async text(file) {
    const response = await fetch(new URL(file, this._folder));
    if (!response.ok) throw new Error(`${file}: ${response.status} ${response.statusText}`);
    return response.text();
  }

  /**
   * Runs Python when what was asked for before has ended.
   * @param {string | (() => string)} source or what gives it when its turn has come
   * @param {import('../../js/turns.js').Sink | null} sink takes the output
   */
  run(source, sink = null) {
    return this._turns.run(source, sink);
  }

  /**
   * Runs code of the picture, which calls functions of a cell; event `wrong` where it does not end well.
   * @param {string} source @param {Cell} cell @returns {Promise<boolean>} whether it ended well
   */
  async call(source, cell) {
    const answer = await this.run(source, cell.sink);
    if (answer.status !== 'ok') {
      if (answer.status !== 'restarted') this.note('The code raised an error, or was stopped: it stands below its cell.', 'error');
      this.dispatchEvent(new CustomEvent('wrong'));
    }
    this._mend(answer);
    return answer.status === 'ok';
  }

  /** Puts a file into Python's working folder. @param {Uint8Array} bytes */
  async put(name, bytes) {
    await this._turns.started;
    return this._session.put(name, bytes);
  }

  /** Beside the picture, in words. @param {'' | 'recorded' | 'error'} kind */
  note(text, kind = '') {
    part('note').textContent = text;
    part('note').dataset.kind = kind;
  }

  say(text) {
    this._status.say(text);
  }

  /** Runs the cells of the picture. A later start, in another Python, takes the place of one that has not ended. */
  async _start() {
    const start = (this._starting = {});
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      const { status, lost } = await this._runAll(start);
      if (start !== this._starting) return;
      if (lost) continue;
      this._starting = null;
      if (status === 'failed') return this.note(`Python did not start, so nothing runs here. ${AGAIN}`, 'error');
      if (status === 'crashed') return this.note(`Python has crashed. ${AGAIN}`, 'error');
      this.dispatchEvent(new CustomEvent('ready'));
      return this._enable(true); // what the controls run comes after what `ready` does
    }
    this._starting = null;
    return this.note(`The browser takes the GPU away again and again. ${AGAIN}`, 'error');
  }

  _enable(there) {
    for (const control of this._controls) control.disabled = !there;
  }

  /** @returns {Promise<object>} the answer of the last that ran; an error of one does not keep the others from it */
  async _runAll(start) {
    let answer = {};
    for (const cell of this.cells.values()) {
      if (cell.root.dataset.auto === undefined) continue;
      answer = await this.run(() => cell.code.text, cell); // with what was changed while Python loaded
      if (start !== this._starting || answer.lost || answer.status === 'crashed') return answer;
    }
    return answer;
  }

  /** The lesson's code, or the reader's of an earlier visit, as long as the lesson's is the one that they changed. */
  async _load(cell) {
    const { original, text } = loadObject(this._key(cell));
    cell.set(await this.text(cell.root.dataset.code));
    if (original === cell.original) cell.recall(text);
  }

  _key(cell) {
    return `tensorgrad.cell.${this.name}.${cell.root.dataset.code}`;
  }

  async _runCell(cell, source) {
    cell.waiting();
    const answer = await this.run(source, cell);
    this._mend(answer);
    return answer;
  }

  /** Compiling opens a lost GPU anew; a Python that has crashed is replaced. */
  _mend({ status, lost }) {
    if (status === 'crashed') this._restart('Python has crashed and starts anew');
    else if (lost && !this._starting) this._again('The browser took the GPU away');
  }

  _again(what) {
    this._enable(false);
    this.note(`${what}: the cells run again.`);
    this.dispatchEvent(new CustomEvent('lost'));
    this._start();
  }

  /** A check runs the cell first: what is on the screen is what is looked at. */
  _addCheck(cell, name) {
    const button = make('button', { type: 'button' }, 'Check');
    const verdict = make('p', { className: 'verdict' });
    verdict.setAttribute('role', 'status');
    cell.buttons.append(button);
    cell.root.append(verdict);
    button.addEventListener('click', async () => {
      const source = cell.code.text;
      const { status } = await this._runCell(cell, source);
      if (status !== 'ok') return this._verdict(verdict, false, NOT_CHECKED[status] ?? NOT_CHECKED.error);
      const found = await this._check(name, cell);
      this._verdict(verdict, found.passed, found.text);
      if (cell.code.text !== source) this._edited(cell);
    });
  }

  /** The browser keeps what the reader has written. What was said of another text is not said any more. */
  _edited(cell) {
    if (!cell.edited) remove(this._key(cell));
    else if (cell.root.dataset.written === undefined) save(this._key(cell), JSON.stringify({ original: cell.original, text: cell.code.text }));
    const verdict = cell.root.querySelector('.verdict');
    if (!verdict?.textContent) return;
    delete verdict.dataset.passed;
    verdict.textContent = 'Edited since it was checked.';
  }

  async _check(name, cell) {
    this._checks ??= this.text('checks.py').then((text) => this.put('checks.py', new TextEncoder().encode(text)));
    await this._checks;
    let found = { passed: false, text: 'The check gave no answer; Stop ended it, or Python restarted.' };
    const take = ({ detail }) => (found = detail.check ?? found);
    this.addEventListener('show', take);
    const source = `import checks, tensorgrad_page.checking\nshow(check=await tensorgrad_page.checking.check(checks.${name}, globals()))`;
    const answer = await this.run(source, cell.sink);
    this.removeEventListener('show', take);
    this._mend(answer);
    if (answer.lost) found.text = 'The browser took the GPU away before it was checked. Check again.';
    return found;
  }

  _verdict(place, passed, text) {
    place.dataset.passed = passed;
    place.textContent = `${passed ? '✓ ' : '✗ '}${text}`;
  }

  _listen() {
    const on = (type, handler) => this._session.addEventListener(type, ({ detail }) => handler(detail));
    on('progress', (detail) => this._status.progress(detail));
    on('device', ({ device }) => this._status.device(device));
    on('ready', ({ versions }) => this._status.ready(versions));
    this._session.addEventListener('ready', async () => this._status.kept(await keepOffline()), { once: true });
    on('failed', ({ message }) => this._status.failed(message));
    on('state', (state) => {
      this._status.state(state);
      this._stuck = false; // whether Stop was not heard
      if (state !== 'loading') for (const cell of this.cells.values()) cell.code.upgrade();
    });
    on('plot', ({ text }) => this.dispatchEvent(new CustomEvent('plot', { detail: text })));
    on('show', ({ text }) => this.dispatchEvent(new CustomEvent('show', { detail: values(text) })));
    on('stuck', ({ canRestartOnly }) => {
      if (canRestartOnly) this._restart('Python restarted'); // a busy loop that nothing else ends
      else this.note('Python has not stopped yet: it stops when the call that it is in returns. Stop again restarts it.');
      this._stuck = !canRestartOnly;
    });
  }

  _stop() {
    if (this._stuck) this._restart('Python restarted');
    else this._session.interrupt();
  }

  /** Another Python, which runs the cells of the picture again. */
  _restart(why) {
    this._checks = undefined;
    this._session.restart();
    this._again(why);
  }

  /** What is missing here, above the lesson; of the GPU the status strip tells. */
  _tellLimits() {
    const kept = 'What was trained and what you have written is kept.';
    const suspends = 'Suspending' in WebAssembly;
    const remarks = limitsOf({ isolated: this._session.isolated, suspends, memory: navigator.deviceMemory, kept });
    document.querySelector('.lead').after(...remarks.map((remark) => make('p', { className: 'entry-note' }, remark)));
  }
}

/** Firefox keeps what controls were before a reload, and Python starts anew. */
function asWritten() {
  for (const control of document.querySelectorAll('.stage input, .stage select')) {
    if (control.type === 'checkbox') control.checked = control.defaultChecked;
    else if (control.options) control.selectedIndex = Math.max(0, [...control.options].findIndex((option) => option.defaultSelected));
    else control.value = control.defaultValue;
  }
}
