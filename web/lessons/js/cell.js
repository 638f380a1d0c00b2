// A cell: Python code that can be edited and run, what it printed, and how long it took.

import { CodeField } from '../../js/code_field.js';
import { shown } from '../../js/display.js';
import { TextBlock } from '../../js/text.js';
import { make, set } from './make.js';

const MOST_SHOWN = 12; // pictures and tables
const WAITS = 2000; // ms until a cell says what it waits for
const STOPS_AFTER = 600; // ms that what the picture runs may take before it can be stopped; less would flicker

let made = 0; // cells

export class Cell {
  /**
   * @param {HTMLElement} root is filled. `data-title` names the cell; `data-lines` is how many lines of output
   *   there is room for from the start, so that the text below stays where it is.
   * @param {object} host
   * @param {(cell: Cell, source: string) => Promise<object>} host.run
   * @param {() => void} host.stop
   * @param {() => Cell | undefined} [host.busy] the cell whose code runs
   * @param {(cell: Cell) => void} [host.edited] and what `CodeField` asks of its host
   */
  constructor(root, host) {
    this.root = root;
    this.original = '';
    this.ran = null; // what ran last
    this._host = host;
    const title = (this.title = root.dataset.title ?? 'Code');
    root.classList.add('cell');
    root.setAttribute('role', 'group');
    root.setAttribute('aria-label', title);
    this._button = make('button', { type: 'button', className: 'primary', title: 'Ctrl+Enter' }, 'Run');
    this._stop = make('button', { type: 'button', disabled: true }, 'Stop');
    this._restore = make('button', { type: 'button', disabled: true, title: 'Back to the code as it was' }, 'Reset');
    this._time = make('span', { className: 'cell-time' });
    this._state = make('span', { className: 'cell-state' });
    this._state.setAttribute('role', 'status');
    this.buttons = make('div', { className: 'buttons' }, this._restore, this._stop, this._button);
    this._output = make('div', { className: 'cell-output', tabIndex: 0 });
    this._output.setAttribute('role', 'log');
    this._output.setAttribute('aria-label', `${title}: output`);
    this._output.style.minHeight = `calc(${root.dataset.lines ?? 1} * 1.5em + 1rem + 1px)`;
    const head = make('div', { className: 'cell-head' }, make('span', { className: 'cell-title' }, title));
    head.append(this._state, this._time, this.buttons);
    this._frame = make('div', { className: 'code-frame' });
    root.append(head, this._frame, this._output);
    this.code = new CodeField(codeParts(this._frame, title), { ...host, submit: () => this.run(), changed: () => this._edited() });
    this._button.addEventListener('click', () => this.run());
    this._stop.addEventListener('click', host.stop);
    this._restore.addEventListener('click', () => this.set(this.original));
  }

  /** The code of the lesson: what Reset brings back. */
  set(source) {
    this.original = source.replace(/\s+$/, '');
    this.code.text = this.original;
    this._edited();
  }

  /** The reader's code of an earlier visit. */
  recall(source) {
    this.code.text = source;
    this._edited();
    this._state.textContent = 'as you left it';
  }

  get edited() {
    return this.code.text !== this.original;
  }

  run() {
    return this._host.run(this, this.code.text);
  }

  /** Whether its code runs, or the picture's that calls it. */
  get busy() {
    return !this._stop.disabled;
  }

  /** The run waits for its turn; where that takes long, it says for what: it may wait for ever. */
  waiting() {
    this._state.textContent = 'waits for Python';
    clearTimeout(this._wait);
    this._wait = setTimeout(() => {
      const other = this._host.busy?.();
      if (!other || other === this) return;
      const what = `Waits until “${other.title}” has ended: one Python runs one cell after the other. `;
      this.write('note', `${what}If that waits for this one, neither ends, until you stop it there.\n`);
    }, WAITS);
  }

  begin(source) {
    clearTimeout(this._wait);
    this.ran = source;
    this.clear();
    this.code.mark(null);
    this._state.textContent = 'running';
    this._stop.disabled = false;
    this.root.dataset.state = 'running';
  }

  /** Takes what the picture runs: its output goes below the code, and where it goes on for long, Stop ends it. */
  get sink() {
    let timer;
    return {
      begin: () => (timer = setTimeout(() => (this._stop.disabled = false), STOPS_AFTER)),
      finish: (answer) => {
        clearTimeout(timer);
        this._stop.disabled = true;
        if (answer.status !== 'ok') this._tell(answer);
      },
      write: (kind, text) => this.write(kind, text),
      display: (text) => this.display(text),
    };
  }

  finish(answer) {
    const { status, milliseconds, line } = answer;
    this._stop.disabled = true;
    this.root.dataset.state = status;
    this.root.dataset.runs = Number(this.root.dataset.runs ?? 0) + 1;
    this._state.textContent = { ok: '✓ done', error: '✗ error', interrupted: '◼ stopped', failed: '✗ no Python', restarted: '↻ restarted', crashed: '✗ crashed' }[status] ?? status;
    this._time.textContent = milliseconds === undefined ? '' : seconds(milliseconds);
    this._tell(answer);
    if (status === 'error' && line) this.code.mark(line);
  }

  /** What came of a run; a lost GPU is opened anew, and needs no advice. */
  _tell({ status, text, hint, lost }) {
    if (text) this.write(status === 'ok' ? 'value' : 'trace', text);
    if (hint && !lost) this.write('note', hint);
  }

  clear() {
    this._output.replaceChildren();
    this._block = null;
  }

  write(kind, text) {
    if (this._block?.kind !== kind) {
      const pre = make('pre', { className: `entry-text ${kind}` });
      this._output.append(pre);
      this._block = { kind, text: new TextBlock(pre) };
    }
    this._block.text.write(text);
  }

  /** @param {string} text a message of `display` */
  display(text) {
    this._output.append(shown(text));
    this._block = null;
    while (this._output.childElementCount > MOST_SHOWN) this._output.firstElementChild.remove();
  }

  _edited() {
    this._frame.style.setProperty('--lines', this.code.text.split('\n').length);
    this._restore.disabled = !this.edited;
    this._host.edited?.(this);
  }
}

/** Fills a `code-frame`, and gives its parts by name. */
function codeParts(frame, title) {
  const completions = make('ul', { className: 'completions', id: `completions-${(made += 1)}`, tabIndex: 0, hidden: true });
  set(completions, { role: 'listbox', 'aria-label': 'Completions' });
  const area = make('textarea', { wrap: 'off', spellcheck: false, autocapitalize: 'off', autocomplete: 'off' });
  set(area, { 'aria-label': `${title}: Python code. Tab indents or completes; Escape, then Tab, leaves.` });
  set(area, { 'aria-autocomplete': 'list', 'aria-controls': completions.id });
  const lines = make('pre', { className: 'line-numbers' }, '1');
  set(lines, { 'aria-hidden': 'true' });
  frame.append(lines, area, completions);
  return { area, completions, lines };
}

function seconds(milliseconds) {
  return milliseconds < 1000 ? `${Math.max(1, Math.round(milliseconds))} ms` : `${(milliseconds / 1000).toFixed(1)} s`;
}
