// The frame of a lesson: one Python, the cells that run in it one after the other, exercises with their checks.

import { isolate, keepOffline } from '../../js/offline.js';
import { Session } from '../../js/session.js';
import { Status } from '../../js/status.js';
import { Turns } from '../../js/turns.js';
import { Cell } from './cell.js';
import { make, part } from './make.js';
import { values } from './values.js';

const NOT_CHECKED = {
  error: 'The cell raised an error: see above.',
  interrupted: 'The cell was stopped before its end, so nothing was checked.',
  restarted: 'Python restarted, so nothing was checked.',
  failed: 'There is no Python to check it.',
};

/**
 * Events: `show` (detail: the values that Python gave to the picture), `ready` when the cells of the picture have
 * run, `plot` (detail: a message of `plot`), `wrong` when a call of the picture has not ended well, `lost`
 * (detail: what happened, in words) when the cells of the picture run again, in another Python or on the GPU opened anew.
 */
export class Lesson extends EventTarget {
  /** @param {string} folder of the lesson's files, from the page */
  constructor(folder) {
    super();
    this._folder = new URL(`${folder}/`, document.baseURI);
    this._session = new Session();
    this._turns = new Turns(this._session);
    this._status = new Status({
      line: part('status'), text: part('status-text'), bar: part('status-bar'),
      device: part('device'), detail: part('device-detail'), live: part('live'),
    });
    this.cells = new Map();
    this._listen();
    isolate().then((reloads) => reloads || this._session.start());
  }

  /** Loads the code of the cells and the exercises, and runs those that the picture needs. */
  async open() {
    const roots = [...document.querySelectorAll('[data-code]')];
    const made = roots.map((root) => {
      const cell = new Cell(root, {
        run: (cell, source) => this._runCell(cell, source),
        stop: () => this._session.interrupt(),
        complete: (line, source) => this._session.complete(line, source),
        describe: (expression, source) => this._session.describe(expression, source),
        say: (text) => this.say(text),
      });
      this.cells.set(root.dataset.code, cell);
      if (root.dataset.check) this._addCheck(cell, root.dataset.check);
      return cell;
    });
    await Promise.all(made.map((cell) => cell.root.dataset.written === undefined && this._load(cell)));
    await this._start();
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
   * @param {string} source
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
    if (answer.status !== 'ok') this.dispatchEvent(new CustomEvent('wrong'));
    this._mend(answer);
    return answer.status === 'ok';
  }

  /** Puts a file into Python's working folder. @param {Uint8Array} bytes */
  async put(name, bytes) {
    await this._turns.started;
    return this._session.put(name, bytes);
  }

  say(text) {
    this._status.say(text);
  }

  async _start() {
    for (const cell of this.cells.values()) {
      if (cell.root.dataset.auto !== undefined) await this.run(cell.code.text, cell);
    }
    this.dispatchEvent(new CustomEvent('ready'));
  }

  async _load(cell) {
    cell.set(await this.text(cell.root.dataset.code));
  }

  async _runCell(cell, source) {
    cell.waiting();
    const answer = await this.run(source, cell);
    this._mend(answer);
    return answer;
  }

  /** Compiling opens a lost GPU anew. */
  _mend({ lost }) {
    if (!lost) return;
    this.dispatchEvent(new CustomEvent('lost', { detail: 'The browser took the GPU away' }));
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
      const { status } = await this._runCell(cell, cell.code.text);
      if (status !== 'ok') return this._verdict(verdict, false, NOT_CHECKED[status] ?? NOT_CHECKED.error);
      const found = await this._check(name, cell);
      return this._verdict(verdict, found.passed, found.text);
    });
  }

  async _check(name, cell) {
    this._checks ??= this.text('checks.py').then((text) => this.put('checks.py', new TextEncoder().encode(text)));
    await this._checks;
    let found = { passed: false, text: 'The check gave no answer; Stop ended it, or Python restarted.' };
    const take = ({ detail }) => (found = detail.check ?? found);
    this.addEventListener('show', take);
    const source = `import checks, tensorgrad_page.checking\nshow(check=await tensorgrad_page.checking.check(checks.${name}, globals()))`;
    await this.run(source, cell.sink);
    this.removeEventListener('show', take);
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
      if (state !== 'loading') for (const cell of this.cells.values()) cell.code.upgrade();
    });
    on('plot', ({ text }) => this.dispatchEvent(new CustomEvent('plot', { detail: text })));
    on('show', ({ text }) => this.dispatchEvent(new CustomEvent('show', { detail: values(text) })));
    on('stuck', ({ canRestartOnly }) => canRestartOnly && this._restart());
  }

  /** A busy loop that nothing else ends: another Python, which runs the cells of the picture again. */
  _restart() {
    this._checks = undefined;
    this._session.restart();
    this.dispatchEvent(new CustomEvent('lost', { detail: 'Python restarted' }));
    this._start();
  }
}
