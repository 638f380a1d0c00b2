// The program in a plain text area: until CodeMirror is there, and where it cannot be.

import { Editor } from './editor.js';
import { STEP } from './indent.js';

/** Enter is a new line; what is typed runs by Ctrl+Enter or Shift+Enter; the lines are numbered. */
export class ProgramArea extends Editor {
  /**
   * @param {HTMLTextAreaElement} area
   * @param {HTMLElement} list where completions are shown
   * @param {HTMLElement} lines where line numbers are shown
   * @param {object} host
   * @param {(source: string) => void} host.submit
   * @param {(line: string, program: string) => Promise<{items: string[], start: number}>} host.complete
   * @param {(text: string) => void} host.say
   * @param {() => void} host.changed
   */
  constructor(area, list, lines, host) {
    super(area, list, { ...host, complete: (line) => host.complete(line, area.value) });
    this._lines = lines;
    this.marked = null;
    area.addEventListener('scroll', () => this._number());
    this._number();
  }

  get value() {
    return super.value;
  }

  /** From its beginning: whoever gets here by Tab reads it from the top, in CodeMirror too. */
  set value(text) {
    super.value = text;
    this._area.setSelectionRange(0, 0);
    this._area.scrollTop = 0;
  }

  /** Another program: a value that is set ends the browser's undo. */
  open(text) {
    this.value = text;
  }

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

  /** Marks the line that raised an error, until the text changes; null marks none. */
  mark(line) {
    this.marked = line;
    this._number();
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
    if (!this._lines) return; // while it is made
    this.mark(null);
    this._host.changed();
  }

  _number() {
    const count = this._area.value.split('\n').length;
    const numbers = Array.from({ length: count }, (_, i) => (i + 1 === this.marked ? `✗ ${i + 1}` : String(i + 1)));
    if (this._lines.textContent !== numbers.join('\n')) {
      this._lines.replaceChildren(
        ...numbers.flatMap((text, i) => [i ? '\n' : '', this.marked === i + 1 ? wrong(text) : text]),
      );
    }
    this._lines.style.transform = `translateY(${-this._area.scrollTop}px)`;
  }
}

function wrong(text) {
  const mark = document.createElement('strong');
  mark.className = 'wrong-line';
  mark.textContent = text;
  return mark;
}
