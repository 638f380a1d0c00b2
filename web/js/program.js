// The program beside the console: its text, where it comes from, and where it is kept.

import { Editor } from './editor.js';
import { STEP } from './indent.js';
import { linkTo, programIn } from './share.js';
import { load, save } from './storage.js';

const KEY = 'tensorgrad.program';
const FIRST = 'first.py';

/** A text area for many lines: Enter is a new line, and what is typed runs by Ctrl+Enter or Shift+Enter. */
class ProgramEditor extends Editor {
  /** Puts another text in its place; the browser's undo brings the old one back. */
  replace(text) {
    this.focus();
    this._area.select();
    this._insert(text);
    this._area.setSelectionRange(0, 0);
    this._area.scrollTop = 0;
  }

  /** Selects a line and shows it. */
  select(line) {
    const before = this.value.split('\n').slice(0, line - 1);
    const start = before.join('\n').length + (line > 1);
    const end = this.value.indexOf('\n', start);
    this._area.focus({ preventScroll: true });
    this._area.setSelectionRange(start, end < 0 ? this.value.length : end);
    const height = parseFloat(getComputedStyle(this._area).lineHeight);
    this._area.scrollTop = Math.max(0, before.length * height - this._area.clientHeight / 3);
  }

  _enter(event) {
    event.preventDefault();
    if (this._completions.picked) this._accept(this._completions.picked);
    else if (event.ctrlKey || event.metaKey || event.shiftKey) this._host.submit(this.value);
    else this.newLine();
  }

  _vertical(event, step) {
    if (!this._completions.open) return;
    event.preventDefault();
    this._completions.move(step);
  }

  /** Moves the selected lines; Shift+Tab in a line without indentation leaves. */
  _tab(event) {
    const { selectionStart, selectionEnd, value } = this._area;
    const several = value.slice(selectionStart, selectionEnd).includes('\n');
    const dents = event.shiftKey && this._selectedLines().some((line) => line.startsWith(' '));
    if (this._leaving || this._completions.open || !(several || dents)) super._tab(event);
    else {
      event.preventDefault();
      this._shift(event.shiftKey);
    }
  }

  _selectedLines() {
    const { start, end } = this._lineSpan();
    return this._area.value.slice(start, end).split('\n');
  }

  _lineSpan() {
    const { selectionStart, selectionEnd, value } = this._area;
    const start = value.lastIndexOf('\n', selectionStart - 1) + 1;
    // A selection that ends at the start of a line does not hold that line.
    const last = selectionEnd > selectionStart && value[selectionEnd - 1] === '\n' ? selectionEnd - 1 : selectionEnd;
    const end = value.indexOf('\n', last);
    return { start, end: end < 0 ? value.length : end };
  }

  _shift(back) {
    const { start, end } = this._lineSpan();
    const moved = this._selectedLines().map((line) => (back ? line.replace(/^ {1,4}/, '') : line && STEP + line));
    this._area.setSelectionRange(start, end);
    this._insert(moved.join('\n'));
    this._area.setSelectionRange(start, start + moved.join('\n').length);
  }

  _grow() {
    this._host.changed();
  }
}

export class Program {
  /**
   * @param {object} parts elements: area, completions, lines, note, examples, share, run
   * @param {object} host
   * @param {(source: string) => Promise<{line?: number} | undefined>} host.run
   * @param {(line: string) => Promise<{items: string[], start: number}>} host.complete
   * @param {(text: string) => void} host.say
   */
  constructor(parts, host) {
    this._parts = parts;
    this._host = host;
    this._editor = null;
    this._wrong = null;
    this._editor = new ProgramEditor(parts.area, parts.completions, {
      submit: (source) => this.run(source),
      complete: host.complete,
      say: host.say,
      changed: () => this._changed(),
    });
    // Only what the person types or takes: a link that is looked at replaces nothing.
    parts.area.addEventListener('input', () => save(KEY, parts.area.value));
    parts.area.addEventListener('scroll', () => this._number());
    parts.run.addEventListener('click', () => this.run(parts.area.value));
    parts.share.addEventListener('click', () => this._share());
    parts.examples.addEventListener('change', () => this._example());
    addEventListener('hashchange', () => this._fromLink());
  }

  /** Fills the editor: from the link, from the last visit, or with the first example. */
  async start() {
    if (await this._fromLink()) return;
    const kept = load(KEY);
    const text = kept ?? (await this._fetch(FIRST));
    if (!this._editor.value) this._editor.value = text; // typed meanwhile
  }

  async run(source) {
    this._mark(null);
    const answer = await this._host.run(source);
    if (answer?.status === 'error' && answer.line && source === this._parts.area.value) this._mark(answer.line);
  }

  /** Selects the line that has this text, the one of this number if several have. @returns {boolean} whether one has */
  select(line, text) {
    const lines = this._editor.value.split('\n').map((one) => one.trim());
    const found = lines[line - 1] === text ? line : lines.indexOf(text) + 1;
    if (found && text) this._editor.select(found);
    return Boolean(found && text);
  }

  async _fromLink() {
    try {
      const text = await programIn(location.hash);
      if (text === null) return false;
      this._editor.value = text;
      this._note('This program came with the link. It runs when you press Run: read it first.');
      return true;
    } catch {
      this._note('The link is damaged: the program in it cannot be read.');
      return false;
    }
  }

  async _share() {
    const link = await linkTo(this._parts.area.value);
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
    this._editor.replace(text);
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

  _changed() {
    if (!this._editor) return; // while it is made
    this._wrong = null;
    this._number();
    this._note('');
  }

  _note(text) {
    this._parts.note.textContent = text;
  }

  _mark(line) {
    this._wrong = line;
    this._number();
    if (line) this._host.say(`Line ${line} of the program raised an error.`);
  }

  /** The line numbers, and a mark at the line that raised an error. */
  _number() {
    const { area, lines } = this._parts;
    const count = area.value.split('\n').length;
    const numbers = Array.from({ length: count }, (_, i) => (i + 1 === this._wrong ? `✗ ${i + 1}` : String(i + 1)));
    if (lines.textContent !== numbers.join('\n')) {
      lines.replaceChildren(...numbers.flatMap((text, i) => [i ? '\n' : '', this._wrong === i + 1 ? wrong(text) : text]));
    }
    lines.style.transform = `translateY(${-area.scrollTop}px)`;
  }
}

function wrong(text) {
  const mark = document.createElement('strong');
  mark.className = 'wrong-line';
  mark.textContent = text;
  return mark;
}
