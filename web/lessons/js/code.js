// Python code that can be edited: a text area that indents, over the same text in colours.

import { highlighted } from './highlight.js';
import { indentAfter, STEP } from '../../js/indent.js';

export class Code {
  /**
   * @param {HTMLTextAreaElement} area
   * @param {HTMLElement} colours lies below it
   * @param {() => void} submit called by Ctrl+Enter and Shift+Enter
   */
  constructor(area, colours, submit) {
    this._area = area;
    this._colours = colours;
    this._submit = submit;
    this._leaving = false;
    area.addEventListener('keydown', (event) => this._key(event));
    area.addEventListener('input', () => this._changed());
    area.addEventListener('scroll', () => (colours.style.transform = `translateX(${-area.scrollLeft}px)`));
  }

  get text() {
    return this._area.value;
  }

  set text(text) {
    this._area.value = text.replace(/\s+$/, '');
    this._changed();
  }

  _key(event) {
    if (event.isComposing) return;
    const leaving = this._leaving;
    this._leaving = event.key === 'Escape';
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey || event.shiftKey)) {
      event.preventDefault();
      this._submit();
    } else if (event.key === 'Enter') {
      event.preventDefault();
      this._insert(`\n${indentAfter(this._lineBefore())}`);
    } else if (event.key === 'Tab' && !event.ctrlKey && !event.altKey && !event.shiftKey && !leaving) {
      event.preventDefault(); // after Escape, Tab leaves
      this._insert(STEP.slice(this._lineBefore().length % STEP.length));
    } else if (event.key === 'Backspace' && this._onlyBlanksBefore()) {
      event.preventDefault();
      const { selectionStart } = this._area;
      const size = ((this._lineBefore().length - 1) % STEP.length) + 1;
      this._area.setSelectionRange(selectionStart - size, selectionStart);
      this._insert('');
    }
  }

  _insert(text) {
    // execCommand keeps the browser's undo; setRangeText is for browsers that drop it.
    const done = text ? document.execCommand('insertText', false, text) : document.execCommand('delete', false);
    if (done) return;
    const { selectionStart, selectionEnd } = this._area;
    this._area.setRangeText(text, selectionStart, selectionEnd, 'end');
    this._changed();
  }

  _lineBefore() {
    const before = this._area.value.slice(0, this._area.selectionStart);
    return before.slice(before.lastIndexOf('\n') + 1);
  }

  _onlyBlanksBefore() {
    const { selectionStart, selectionEnd } = this._area;
    const line = this._lineBefore();
    return selectionStart === selectionEnd && line !== '' && !line.trim();
  }

  _changed() {
    this._area.rows = this._area.value.split('\n').length;
    this._colours.replaceChildren(...highlighted(this._area.value));
  }
}
