// Python code that can be edited: in a plain text area at first, in CodeMirror as soon as that is there.

import { ProgramArea } from './program_area.js';

export class CodeField {
  /**
   * @param {{area: HTMLTextAreaElement, completions: HTMLElement, lines: HTMLElement}} parts of a `code-frame`
   * @param {object} host
   * @param {(source: string) => void} host.submit
   * @param {(line: string, program: string) => Promise<{items: string[], start: number}>} host.complete
   * @param {(expression: string, program: string) => Promise<{signature: string, doc: string} | null>} host.describe
   * @param {(text: string) => void} host.say announces to screen readers
   * @param {() => void} host.changed called at every change of the text, whoever makes it
   */
  constructor(parts, host) {
    this._parts = parts;
    this._host = host;
    this._editor = new ProgramArea(parts.area, parts.completions, parts.lines, host);
    parts.area.addEventListener('focus', () => this.upgrade());
  }

  get text() {
    return this._editor.value;
  }

  set text(text) {
    this._editor.value = text;
  }

  /** Shows another program: undo does not reach back to the one before. */
  open(text) {
    this._editor.open(text);
  }

  focus() {
    this._editor.focus();
  }

  /** Puts another text in its place, as the person's own doing; undo brings the old one back. */
  replace(text) {
    this._editor.replace(text);
  }

  /** Selects a line and shows it. */
  select(line) {
    this._editor.select(line);
  }

  /** Marks the line that raised an error, until the text changes; null marks none. */
  mark(line) {
    this._editor.mark(line);
    if (line) this._host.say(`Line ${line} raised an error.`);
  }

  /** From the plain text area to CodeMirror; where that does not load, the text area stays. */
  async upgrade() {
    if (this._upgrading) return;
    this._upgrading = true;
    try {
      const { CodeEditor } = await import('./code_editor.js');
      const wrong = this._editor.marked;
      this._editor = new CodeEditor(this._parts.area, this._host);
      this._parts.lines.hidden = true;
      if (wrong) this._editor.mark(wrong);
    } catch (error) {
      console.warn(`The code stays in a plain text area: ${error.message}`);
      this._upgrading = false; // a later visit to it tries again
    }
  }
}
