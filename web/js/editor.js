// The prompt: a text area that knows Python's indentation, history and completion.

import { commonPrefix, CompletionList } from './completion.js';
import { cleanPaste, indentAfter, STEP } from './indent.js';

export class Editor {
  /**
   * @param {HTMLTextAreaElement} area
   * @param {HTMLElement} list where completions are shown
   * @param {object} host
   * @param {import('./history.js').History} host.history
   * @param {(source: string, force: boolean) => void} host.submit
   * @param {(line: string) => Promise<{items: string[], start: number}>} host.complete
   * @param {(text: string) => void} host.say announces to screen readers and the status line
   */
  constructor(area, list, host) {
    this._area = area;
    this._host = host;
    this._completions = new CompletionList(list, area, (item) => this._accept(item));
    this._start = 0;
    this._leaving = false;
    this._recalled = null;
    area.addEventListener('keydown', (event) => this._key(event));
    area.addEventListener('input', () => this._changed());
    area.addEventListener('paste', (event) => this._paste(event));
    area.addEventListener('blur', () => this._completions.hide());
    this._grow();
  }

  get value() {
    return this._area.value;
  }

  set value(text) {
    this._area.value = text;
    this._area.setSelectionRange(text.length, text.length);
    this._completions.hide();
    this._grow();
  }

  focus() {
    this._area.focus({ preventScroll: true });
  }

  /** Starts the next line, indented for what stands before it. */
  newLine() {
    this._insert(`\n${indentAfter(this._lineBefore())}`);
  }

  _key(event) {
    if (event.isComposing) return;
    const plain = !event.ctrlKey && !event.metaKey && !event.altKey;
    if (event.key === 'Enter') this._enter(event);
    else if (event.key === 'Tab' && plain) this._tab(event);
    else if (event.key === 'Escape') this._escape(event);
    else if (event.key === 'ArrowUp' && plain && !event.shiftKey) this._vertical(event, -1);
    else if (event.key === 'ArrowDown' && plain && !event.shiftKey) this._vertical(event, 1);
    else if (event.key === 'Backspace' && plain) this._backspace(event);
    if (event.key !== 'Escape' && event.key !== 'Shift') this._leaving = false;
  }

  _enter(event) {
    event.preventDefault();
    if (this._completions.picked) this._accept(this._completions.picked);
    else if (event.ctrlKey || event.metaKey) this._host.submit(this.value, true);
    else if (event.shiftKey || !this._atEnd()) this.newLine();
    else this._host.submit(this.value, false);
  }

  /** Completes; indents where nothing stands before; leaves an empty prompt, or any after Escape. */
  _tab(event) {
    if (this._leaving || (!this.value && !event.shiftKey)) return;
    if (this._completions.open) {
      event.preventDefault();
      this._completions.move(event.shiftKey ? -1 : 1);
    } else if (!event.shiftKey) {
      event.preventDefault();
      const before = this._lineBefore();
      if (before.trim()) this._complete(true);
      else this._insert(STEP.slice(before.length % STEP.length));
    }
  }

  _escape(event) {
    if (this._completions.open) event.preventDefault();
    else this._leaving = true;
    this._completions.hide();
  }

  _vertical(event, step) {
    if (this._completions.open) {
      event.preventDefault();
      this._completions.move(step);
      return;
    }
    const { selectionStart, selectionEnd, value } = this._area;
    const edge = step < 0 ? value.lastIndexOf('\n', selectionStart - 1) : value.indexOf('\n', selectionEnd);
    // A recalled block is passed over at once, both ways, until the cursor is moved in it.
    const recalled = this._recalled?.entry === value && this._recalled.at === selectionStart;
    if (selectionStart !== selectionEnd || (edge !== -1 && value && !recalled)) return;
    const entry = this._host.history.move(step, value);
    if (entry === null) return;
    event.preventDefault();
    this.value = entry;
    this._recalled = { entry, at: entry.length };
  }

  _backspace(event) {
    const before = this._lineBefore();
    const { selectionStart, selectionEnd } = this._area;
    if (selectionStart !== selectionEnd || !before || before.trim()) return;
    event.preventDefault();
    const size = (before.length - 1) % STEP.length + 1;
    this._area.setSelectionRange(selectionStart - size, selectionStart);
    this._insert('');
  }

  _paste(event) {
    const text = event.clipboardData?.getData('text/plain') ?? '';
    const cleaned = cleanPaste(text, this._lineBefore());
    if (cleaned === text) return;
    event.preventDefault();
    this._insert(cleaned);
  }

  async _complete(insert) {
    const line = this._lineBefore();
    const { items, start } = await this._host.complete(line);
    if (this._lineBefore() !== line) return; // typed on meanwhile
    this._start = start;
    const typed = line.slice(start);
    if (!items.length) {
      this._completions.hide();
      if (insert) this._host.say('No completions');
    } else if (items.length === 1 && insert) {
      this._accept(items[0]);
    } else {
      const prefix = commonPrefix(items);
      if (insert && prefix.length > typed.length) this._replaceWord(prefix);
      this._completions.show(items);
      if (insert) this._host.say(`${items.length} completions. Tab or arrows choose, Enter takes, Escape closes.`);
    }
  }

  _accept(item) {
    this._replaceWord(item);
    this._completions.hide();
  }

  _replaceWord(text) {
    const end = this._area.selectionStart;
    const lineStart = end - this._lineBefore().length;
    this._area.setSelectionRange(lineStart + this._start, end);
    this._insert(text);
  }

  /** Typing narrows an open list down. */
  _changed() {
    this._grow();
    if (!this._completions.open || this._inserting) return;
    if (/[\w.]$/.test(this._lineBefore())) this._complete(false);
    else this._completions.hide();
  }

  _insert(text) {
    this._inserting = true;
    // execCommand keeps the browser's undo; setRangeText is for browsers that drop it.
    const done = text
      ? document.execCommand('insertText', false, text)
      : document.execCommand('delete', false);
    if (!done) {
      const { selectionStart, selectionEnd } = this._area;
      this._area.setRangeText(text, selectionStart, selectionEnd, 'end');
    }
    this._inserting = false;
    this._grow();
  }

  _lineBefore() {
    const before = this._area.value.slice(0, this._area.selectionStart);
    return before.slice(before.lastIndexOf('\n') + 1);
  }

  _atEnd() {
    const { selectionStart, value } = this._area;
    return !value.includes('\n') || value.slice(selectionStart).trim() === '';
  }

  _grow() {
    this._area.rows = Math.min(12, this._area.value.split('\n').length);
  }
}
