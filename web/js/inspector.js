// The inspector: what was compiled, seen through tabs. It asks Python only while it is open.

import { Graph } from './inspector_graph.js';
import { Kernels } from './inspector_kernels.js';
import { Memory } from './inspector_memory.js';
import { Parameters } from './inspector_parameters.js';
import { make } from './inspector_parts.js';

const SECONDS_BETWEEN_LOOKS = 1;
const TABS = [['Kernels', Kernels], ['Memory', Memory], ['Parameters', Parameters], ['Graph', Graph]];

export class Inspector {
  /**
   * @param {HTMLElement} panel
   * @param {HTMLButtonElement} button opens it
   * @param {object} host
   * @param {import('./session.js').Session} host.session
   * @param {(line: number, text: string) => boolean} host.select marks a line of the program, if it has it
   * @param {(text: string) => void} host.say
   */
  constructor(panel, button, host) {
    this._panel = panel;
    this._button = button;
    this._host = host;
    this._shown = { program: 0, version: 0 };
    this._newest = 0;
    this._looking = null;
    this._build();
    host.session.addEventListener('state', ({ detail }) => {
      if (detail === 'ready') this._follow();
    });
    panel.addEventListener('keydown', (event) => {
      if (event.key === 'Escape' && !event.defaultPrevented) this.toggle();
    });
  }

  get open() {
    return !this._panel.hidden;
  }

  /** Opens it, and closes it again. */
  toggle() {
    this._panel.hidden = this.open;
    this._button.setAttribute('aria-expanded', String(this.open));
    document.querySelector('.workbench').classList.toggle('inspecting', this.open);
    if (this.open) {
      this._panel.scrollIntoView(); // on a phone it is below the rest, and still empty
      this._tabs[this._tab].button.focus();
      this._look();
      this._later();
    } else {
      this._button.focus();
    }
  }

  /** Asks about the program that is shown. @returns {Promise<object>} */
  async ask(what, more = {}) {
    return this._host.session.inspect({ what, program: this._shown.program, ...more });
  }

  _build() {
    this._choice = make('select');
    this._choice.setAttribute('aria-label', 'Program that is inspected');
    this._choice.addEventListener('change', () => this._show(Number(this._choice.value)));
    const close = make('button', '', 'Close');
    close.type = 'button';
    close.addEventListener('click', () => this.toggle());
    const list = make('div', 'tabs');
    list.setAttribute('role', 'tablist');
    list.setAttribute('aria-label', 'What to see of the program');
    list.addEventListener('keydown', (event) => this._arrow(event));
    this._tabs = TABS.map(([name, Tab], i) => this._makeTab(name, Tab, i));
    list.append(...this._tabs.map(({ button }) => button));
    const head = make('div', 'panel-head', make('h2', '', 'Inspector'), list, make('div', 'buttons', this._choice, close));
    this._note = make('p', 'inspector-note');
    this._note.setAttribute('role', 'status');
    this._panel.append(head, this._note, ...this._tabs.map(({ box }) => box));
    this._select(0);
  }

  _makeTab(name, Tab, i) {
    const button = make('button', 'tab', name);
    const box = make('div', 'inspector-tab');
    button.type = 'button';
    button.id = `inspect-tab-${i}`;
    box.id = `inspect-box-${i}`;
    for (const [element, part] of [[button, 'tab'], [box, 'tabpanel']]) element.setAttribute('role', part);
    button.setAttribute('aria-controls', box.id);
    box.setAttribute('aria-labelledby', button.id);
    box.tabIndex = 0;
    button.addEventListener('click', () => {
      if (this._tabs[i].failed) this._tabs[i].filled = ''; // pressed again, it asks again
      this._select(i);
      this._fill();
    });
    const host = { ...this._host, ask: (what, more) => this.ask(what, more) };
    return { button, box, view: new Tab(box, host), filled: '', note: '', failed: false };
  }

  _arrow(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    this._select((this._tab + step + this._tabs.length) % this._tabs.length);
    this._tabs[this._tab].button.focus();
    this._fill();
  }

  _select(index) {
    this._tab = index;
    this._tabs.forEach(({ button, box }, i) => {
      button.setAttribute('aria-selected', String(i === index));
      button.tabIndex = i === index ? 0 : -1;
      box.hidden = i !== index;
    });
  }

  /** What there is to see now; of the programs that are new one is shown, a training step first; others stay in the list. */
  async _look() {
    this._looking ??= this._host.session.inspect({ what: 'programs' });
    const { programs = [], error } = await this._looking;
    this._looking = null;
    this._missing = error ?? 'Nothing is compiled yet. Run a program with tg.compile, attach or tg.jit.';
    const listed = JSON.stringify(programs.map(({ program, title }) => [program, title]));
    if (listed !== this._listed) {
      this._choice.replaceChildren(...programs.map(({ program, title }) => option(program, `${program}: ${title}`)));
      this._listed = listed;
    }
    this._choice.hidden = !programs.length;
    const fresh = programs.filter(({ program }) => program > this._newest);
    const kept = programs.find(({ program }) => program === this._shown.program);
    this._newest = programs[0]?.program ?? 0;
    const shown = fresh.length || !kept ? first(fresh.length ? fresh : programs) : kept;
    this._choice.value = String(shown.program);
    this._show(shown.program, shown.version);
  }

  _show(program, version = this._shown.version) {
    this._shown = { program, version };
    this._fill();
  }

  /** Has the tab that is seen show the program, if it shows another one. */
  async _fill() {
    const tab = this._tabs[this._tab];
    const wanted = `${this._shown.program} ${this._shown.version}`;
    if (!this.open) return;
    if (tab.filled !== wanted) {
      tab.filled = wanted;
      tab.box.replaceChildren();
      tab.note = 'Python is asked for it …';
      this._say(this._shown.program ? tab.note : this._missing);
      if (!this._shown.program) return;
      const problem = await tab.view.show();
      if (tab.filled !== wanted) return; // another one by now
      tab.note = problem ?? '';
      tab.failed = Boolean(problem);
    }
    if (tab === this._tabs[this._tab]) this._say(this._shown.program ? tab.note : this._missing);
  }

  _say(text) {
    if (this._note.textContent !== text) this._note.textContent = text;
  }

  async _follow() {
    if (!this.open) return;
    await this._look();
    await this._tabs[this._tab].view.tick?.();
  }

  /** While it is open and something runs, it looks again each second; a tab may follow the training. */
  _later() {
    clearTimeout(this._timer);
    this._timer = setTimeout(async () => {
      if (!this.open) return;
      if (this._host.session.state === 'running') await this._follow();
      this._later();
    }, SECONDS_BETWEEN_LOOKS * 1000);
  }
}

/** The last compiled training step, for which there is most to see; else what was compiled last. */
function first(programs) {
  return programs.find(({ trains }) => trains) ?? programs[0] ?? { program: 0, version: 0 };
}

function option(value, text) {
  const made = make('option', '', text);
  made.value = value;
  return made;
}
