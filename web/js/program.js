// The program beside the console: its text, where it comes from, and where it is kept.

import { CodeField } from './code_field.js';
import { forget, keep, kept, keyOf, last, use } from './programs.js';
import { isLink, linkTo, programIn } from './share.js';

const FIRST = 'first.py';
const FROM_LINK = 'This program came with the link. It runs when you press Run: read it first.';

export class Program {
  /**
   * @param {object} parts elements: area, completions, lines, note, examples, share, run, own, asItCame
   * @param {object} host
   * @param {(source: string) => Promise<{line?: number} | undefined>} host.run
   * @param {(line: string, program: string) => Promise<{items: string[], start: number}>} host.complete
   * @param {(expression: string, program: string) => Promise<{signature: string, doc: string} | null>} host.describe
   * @param {(text: string) => void} host.say
   */
  constructor(parts, host) {
    this._parts = parts;
    this._host = host;
    this._place = null; // of the program that is shown, as `programs.js` has them: none yet
    this._original = null; // how it came
    this._opening = null;
    this.code = new CodeField(parts, { ...host, submit: (source) => this.run(source), changed: () => this._note('') });
    parts.area.addEventListener('input', () => this._typed());
    parts.run.addEventListener('click', () => this.run(this.code.text));
    parts.share.addEventListener('click', () => this._share());
    parts.examples.addEventListener('change', () => this._example());
    parts.own.addEventListener('click', () => this._toOwn());
    parts.asItCame.addEventListener('click', () => this._toOriginal());
    addEventListener('popstate', () => this._follow());
    addEventListener('storage', (event) => this._elsewhere(event));
  }

  /**
   * Fills the editor: as before a reload, from the link, as at the last visit, or with the first example.
   * @returns {Promise<boolean>} whether it begins with the first example
   */
  async start() {
    let why = '';
    for (const place of [placeNow() ?? last(), last(), '']) {
      if ((await this._open(place)) || this._place !== null) break;
      why ||= this._parts.note.textContent;
    }
    if (why) this._note(why);
    history.replaceState({ place: this._place }, '');
    return !this._place && kept('') === null;
  }

  async run(source) {
    this.code.mark(null);
    const answer = await this._host.run(source);
    if (answer?.status === 'error' && answer.line && source === this.code.text) this.code.mark(answer.line);
  }

  /** Selects the line that has this text, the one of this number if several have. @returns {boolean} whether one has */
  select(line, text) {
    const lines = this.code.text.split('\n').map((one) => one.trim());
    const found = lines[line - 1] === text ? line : lines.indexOf(text) + 1;
    if (found && text) this.code.select(found);
    return Boolean(found && text);
  }

  /** Shows the program of a place, as it was changed or as it came. @returns {Promise<boolean>} whether there is one */
  async _open(place) {
    this._opening = place;
    let original;
    try {
      original = place || kept('') === null ? await originalOf(place || FIRST) : null;
    } catch (error) {
      this._note(isLink(place) ? 'The link is damaged: the program in it cannot be read.' : error.message);
      return false;
    }
    if (this._opening !== place) return false; // another was asked for meanwhile
    if (this._place === null && !place && this.code.text) keep('', this.code.text); // typed meanwhile
    this._place = place;
    this._original = original;
    const text = kept(place) ?? original;
    if (this.code.text !== text) this.code.open(text);
    this._showWays();
    const whose = isLink(place) ? 'This program came with a link' : 'This is an example';
    if (place && kept(place) !== null) this._note(`${whose}, with your changes.`);
    else this._note(isLink(place) ? FROM_LINK : '');
    return true;
  }

  /** Keeps what the person types or takes, and never in another program's place. */
  _typed() {
    if (this._place === null) return;
    const { text } = this.code;
    const first = kept('') === null; // who has no program of their own begins it with this one
    if (this._place && text === this._original) forget(this._place);
    else keep(first ? '' : this._place, text);
    if (first && kept('') !== null) {
      this._place = '';
      history.replaceState({ place: '' }, '');
    }
    this._showWays();
  }

  /** Another tab changed what this one shows. */
  _elsewhere({ key, oldValue, newValue }) {
    const same = key === keyOf(this._place) && this.code.text === (oldValue ?? this._original);
    if (same && (newValue ?? this._original) !== null) this.code.open(newValue ?? this._original);
    this._showWays();
  }

  /** The address was changed, or the browser went back in its history. */
  _follow() {
    const place = placeNow();
    if (place !== null && place !== this._place) this._open(place);
  }

  async _go(place) {
    if (!(await this._open(place))) return false;
    history.pushState({ place }, '', location.pathname + location.search); // the browser's Back goes to what was here
    this.code.focus();
    return true;
  }

  async _toOwn() {
    if (await this._go('')) use('');
  }

  _toOriginal() {
    this.code.replace(this._original);
    this._note('Ctrl+Z brings your changes back.');
  }

  /** The buttons that lead to another program than the one shown. */
  _showWays() {
    this._parts.own.hidden = !this._place || kept('') === null;
    this._parts.asItCame.hidden = !this._place || kept(this._place) === null;
  }

  async _share() {
    const link = await linkTo(this.code.text);
    history.replaceState({ place: this._place }, '', link); // a reload shows the program that goes on, not the link's
    try {
      await navigator.clipboard.writeText(link);
      this._note(`The link with this program is copied, ${link.length} characters.`);
    } catch {
      this._note('The address of this page now holds the program: copy it from the address bar.');
    }
  }

  async _example() {
    const file = this._parts.examples.value;
    this._parts.examples.value = '';
    if (file) await this._go(file);
  }

  _note(text) {
    this._parts.note.textContent = text;
  }
}

/** @returns {string | null} the place that this entry of the tab's history shows: null where it says none */
function placeNow() {
  return history.state?.place ?? (isLink(location.hash) ? location.hash : null);
}

/** How the program of a link or an example came. */
async function originalOf(place) {
  if (isLink(place)) return programIn(place);
  const response = await fetch(new URL(`../examples/${place}`, import.meta.url)).catch((error) => error);
  if (!response.ok) throw new Error(`The example could not be loaded: ${response.message ?? `${response.status} ${response.statusText}`}`);
  return response.text();
}
