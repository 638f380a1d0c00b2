// The program beside the console: its text, where it comes from, and where it is kept.

import { CodeField } from './code_field.js';
import { linkTo, programIn } from './share.js';
import { load, save } from './storage.js';

const KEY = 'tensorgrad.program';
const FIRST = 'first.py';

export class Program {
  /**
   * @param {object} parts elements: area, completions, lines, note, examples, share, run
   * @param {object} host
   * @param {(source: string) => Promise<{line?: number} | undefined>} host.run
   * @param {(line: string, program: string) => Promise<{items: string[], start: number}>} host.complete
   * @param {(expression: string, program: string) => Promise<{signature: string, doc: string} | null>} host.describe
   * @param {(text: string) => void} host.say
   */
  constructor(parts, host) {
    this._parts = parts;
    this._host = host;
    this.code = new CodeField(parts, { ...host, submit: (source) => this.run(source), changed: () => this._note('') });
    // Only what the person types or takes: a link that is looked at replaces nothing.
    parts.area.addEventListener('input', () => save(KEY, this.code.text));
    parts.run.addEventListener('click', () => this.run(this.code.text));
    parts.share.addEventListener('click', () => this._share());
    parts.examples.addEventListener('change', () => this._example());
    addEventListener('hashchange', () => this._fromLink());
  }

  /**
   * Fills the editor: from the link, from the last visit, or with the first example.
   * @returns {Promise<boolean>} whether it begins with the first example: no link and no last visit gave another
   */
  async start() {
    if (await this._fromLink()) return false;
    const kept = load(KEY);
    const text = kept ?? (await this._fetch(FIRST));
    if (!this.code.text) this.code.text = text; // typed meanwhile
    return kept === null;
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

  async _fromLink() {
    try {
      const text = await programIn(location.hash);
      if (text === null) return false;
      this.code.text = text;
      this._note('This program came with the link. It runs when you press Run: read it first.');
      return true;
    } catch {
      this._note('The link is damaged: the program in it cannot be read.');
      return false;
    }
  }

  async _share() {
    const link = await linkTo(this.code.text);
    history.replaceState(null, '', link);
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
    const text = await this._fetch(file);
    if (!text) return;
    this.code.replace(text);
    this._note('Ctrl+Z brings back what was here.');
  }

  async _fetch(file) {
    try {
      const response = await fetch(new URL(`../examples/${file}`, import.meta.url));
      if (!response.ok) throw new Error(`${response.status} ${response.statusText}`);
      return await response.text();
    } catch (error) {
      this._note(`The example could not be loaded: ${error.message}`);
      return '';
    }
  }

  _note(text) {
    this._parts.note.textContent = text;
  }
}
