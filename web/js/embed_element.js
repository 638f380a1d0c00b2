// <tensor-grad>: a cell of Python that a reader of somebody's page can change and run. Its text is the code, so that it
// can be read where no script runs.

import { Cell } from '../lessons/js/cell.js';
import { make } from '../lessons/js/make.js';
import { pythonOf } from './embed_python.js';
import { styles } from './embed_styles.js';
import { cleanPaste } from './indent.js';
import { linkTo } from './share.js';
import { Status } from './status.js';

const PLAYGROUND = new URL('../', import.meta.url);

let made = 0; // cells

/**
 * Attributes: `label` names the cell; `src` is a file with its code; `lines` is how many lines of output there is room for
 * from the start, and `height` the height of all of it; `autorun` runs it when it is scrolled into view; `needs` are ids of
 * cells that run before it, where they have not yet; `isolated` gives it a Python of its own.
 * Event `done` (detail: {status}) after each run.
 */
export class TensorGrad extends HTMLElement {
  async connectedCallback() {
    if (this._python) return; // moved within its page
    this._python = pythonOf(this.hasAttribute('isolated'));
    this._chartName = `cell ${++made}`;
    this._made = this._make();
    await this._made.catch((error) => console.error(`<tensor-grad>: ${error.message}`));
  }

  disconnectedCallback() {
    // One that is only moved is connected again by then. A Python that others share goes on.
    queueMicrotask(() => !this.isConnected && this.hasAttribute('isolated') && this._python.end());
  }

  /** Runs the code as it is on the screen, after what it needs. @returns {Promise<{status: string}>} */
  async run() {
    await this._made;
    return this._cell.run();
  }

  async _make() {
    if (document.readyState === 'loading') {
      await new Promise((resolve) => addEventListener('DOMContentLoaded', resolve, { once: true }));
    }
    const [sheets, { code, problem }] = await Promise.all([styles(), this._code()]);
    const shadow = this.attachShadow({ mode: 'open', delegatesFocus: true });
    shadow.adoptedStyleSheets = sheets;
    const root = make('div');
    const { lines, height, label } = this._options();
    Object.assign(root.dataset, { title: label, lines });
    const frame = make('div', { className: 'embed' }, root);
    shadow.append(frame);
    this._live = make('p', { className: 'visually-hidden' });
    this._live.setAttribute('role', 'status');
    this._cell = new Cell(root, this._host());
    this._cell.set(code);
    if (problem) this._cell.write('error', problem);
    if (height) {
      frame.dataset.fixed = '';
      frame.style.height = /^\d+$/.test(height) ? `${height}px` : height;
    }
    this._curves = make('div', { className: 'embed-curves', hidden: !/\bplot\(|\.fit\(/.test(code) });
    root.append(this._curves, this._foot(), this._live);
    this._drawCurves();
    this._watch();
  }

  /** What the cell asks for. */
  _host() {
    const { session } = this._python;
    return {
      run: (cell, source) => this._run(cell, source),
      stop: () => this._python.stop((text) => this._cell.write('note', `${text}\n`)),
      complete: (line, source) => session.complete(line, source),
      describe: (expression, source) => session.describe(expression, source),
      say: (text) => (this._live.textContent = text),
    };
  }

  _options() {
    const of = (name, otherwise) => this.getAttribute(name) ?? otherwise;
    return { label: of('label', 'Python'), lines: of('lines', '3'), height: of('height', '') };
  }

  /** @returns {Promise<{code: string, problem: string}>} that of its file, or where there is none, its text */
  async _code() {
    const holder = this.querySelector('pre, script') ?? this;
    const code = cleanPaste(holder.textContent.replace(/^\s*\n/, ''));
    if (!this.hasAttribute('src')) return { code, problem: '' };
    const url = new URL(this.getAttribute('src'), document.baseURI);
    try {
      const response = await fetch(url);
      if (!response.ok) throw new Error(`${response.status} ${response.statusText}`);
      return { code: await response.text(), problem: '' };
    } catch (error) {
      return { code, problem: `${url} could not be loaded: ${error.message}\n` };
    }
  }

  _run(cell, source) {
    cell.waiting();
    const run = this._runAfterNeeds(cell, source);
    this._last = { run, life: this._python.life };
    run.then(({ status }) => this.dispatchEvent(new CustomEvent('done', { detail: { status } })));
    return run;
  }

  /** Its last run, or one now where it has not run in the Python that there is. */
  _once() {
    return this._last?.life === this._python.life ? this._last.run : this.run();
  }

  async _runAfterNeeds(cell, source) {
    const wrong = await this._needed();
    if (!wrong) return this._python.run(source, this._sink(cell));
    cell.begin(source);
    cell.finish(wrong);
    return wrong;
  }

  /** Runs what this one needs, where it has not run in this Python. @returns {Promise<object | null>} what went wrong */
  async _needed() {
    for (const id of this._needs) {
      const circle = this._circle(id);
      if (circle) return { status: 'error', text: `This cell needs ${circle}, and that is this cell: none of them can be the first.\n` };
      const other = document.getElementById(id);
      if (!(other instanceof TensorGrad)) return { status: 'error', text: `This cell needs "${id}", and no cell has this id.\n` };
      const { status } = await other._once();
      if (status !== 'ok') return { status: 'error', text: `This cell needs "${id}", which did not end well.\n` };
    }
    return null;
  }

  /** Ids of the cells that have to run before this one. */
  get _needs() {
    return (this.getAttribute('needs') ?? '').split(/\s+/).filter(Boolean);
  }

  /** All that it needs, and that those need. @returns {Set<TensorGrad>} */
  _allNeeds(found = new Set()) {
    for (const other of this._needs.map((id) => document.getElementById(id))) {
      if (!(other instanceof TensorGrad) || found.has(other)) continue;
      found.add(other);
      other._allNeeds(found);
    }
    return found;
  }

  /** For the playground: its code after that of the cells which share its Python and come before it or are needed. */
  _program() {
    const needed = this._allNeeds();
    const before = (cell) => needed.has(cell) || cell.compareDocumentPosition(this) & Node.DOCUMENT_POSITION_FOLLOWING;
    const others = [...document.querySelectorAll(this.localName)].filter(
      (cell) => cell !== this && cell._cell && cell._python === this._python && before(cell),
    );
    if (!others.length) return this._cell.code.text;
    const titled = (cell) => (cell.hasAttribute('label') ? `# ${cell.getAttribute('label')}\n` : '');
    return [...others, this].map((cell) => `${titled(cell)}${cell._cell.code.text.trim()}\n`).join('\n');
  }

  /** @returns {string} how this cell needs itself by way of another, in words; empty where it does not */
  _circle(id, way = []) {
    const other = document.getElementById(id);
    const names = [...way, JSON.stringify(id)];
    if (other === this) return names.join(', which needs ');
    if (!(other instanceof TensorGrad) || names.length !== new Set(names).size) return '';
    return other._needs.map((next) => this._circle(next, names)).find(Boolean) ?? '';
  }

  _sink(cell) {
    return {
      begin: (source) => cell.begin(source),
      write: (kind, text) => cell.write(kind, text),
      display: (text) => cell.display(text),
      plot: (text) => this._plot(text),
      chart: this._chartName,
      finish: (answer) => cell.finish(answer),
    };
  }

  /** In sight, the code is shown in colours, and runs where the page wants that. */
  _watch() {
    const watch = new IntersectionObserver((entries) => {
      if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
      watch.disconnect();
      this._cell.code.upgrade();
      if (this.hasAttribute('autorun')) this.run();
    });
    watch.observe(this);
  }

  async _plot(text) {
    if (this._curves.hidden && JSON.parse(text).kind !== 'points') return;
    this._curves.hidden = false;
    (await this._drawCurves()).receive(text);
  }

  /** Curves have a frame from the start where the code draws some, so that nothing moves when it does. */
  _drawCurves() {
    if (this._curves.hidden) return null;
    this._chart ??= import('./chart.js').then(({ Chart }) => {
      const log = make('input', { type: 'checkbox' });
      const plot = make('div', { className: 'plot' });
      plot.setAttribute('role', 'img');
      const empty = make('p', { className: 'plot-empty' }, make('span', {}, 'The curves of plot(value) are drawn here'));
      const legend = make('ul', { className: 'legend' });
      legend.setAttribute('aria-label', 'Latest values');
      const frame = make('div', { className: 'plot-frame' }, plot, empty);
      this._curves.append(make('label', { className: 'check' }, log, 'Log scale'), frame, legend);
      return new Chart({ plot, legend, empty, log });
    });
    return this._chart;
  }

  /** What Python is doing, the device, and the way to the playground. */
  _foot() {
    const [text, detail, device] = ['', 'visually-hidden', ''].map((className) => make('span', { className }));
    const bar = make('progress', { className: 'status-progress', hidden: true });
    bar.setAttribute('aria-label', 'Loading');
    const dot = make('span', { className: 'status-dot' });
    dot.setAttribute('aria-hidden', 'true');
    const line = make('div', { className: 'status' }, dot, text, bar);
    const link = make('a', { target: '_blank', rel: 'noopener' }, 'Open in the playground');
    const point = async () => (link.href = await linkTo(this._program(), PLAYGROUND));
    for (const type of ['pointerenter', 'focus']) link.addEventListener(type, point);
    point();
    text.textContent = this._python.session.loaded ? 'Python is ready' : 'Python is loaded into this page at the first run';
    this._follow({ line, text, bar, device, detail, live: make('p') });
    const where = make('div', { className: 'device' }, make('span', { className: 'device-name' }, device), detail);
    return make('div', { className: 'embed-foot' }, line, where, link);
  }

  _follow(parts) {
    const status = new Status(parts);
    const on = (type, handler) => this._python.session.addEventListener(type, ({ detail }) => handler(detail));
    on('progress', (detail) => status.progress(detail));
    on('device', ({ device }) => {
      status.device(device);
      parts.device.title = device.detail;
    });
    on('ready', ({ versions }) => status.ready(versions));
    on('failed', ({ message }) => status.failed(message));
    on('state', (state) => status.state(state));
  }
}
