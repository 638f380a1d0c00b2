// A block of streamed text as a terminal shows it: "\r" goes back to the start of the line, so
// that progress bars stay in place; colour codes are left out.

const ESCAPES = /\x1b\[[0-9;?]*([A-Za-z])/g;
const MOST = 200_000;

export class TextBlock {
  /** @param {HTMLElement} element where the text goes */
  constructor(element) {
    this._settled = document.createTextNode('');
    this._current = document.createTextNode('');
    element.append(this._settled, this._current);
    this._line = '';
    this._column = 0;
    this._breaks = 0;
  }

  /** Whether it has several lines, so that they may be a table. */
  get columns() {
    return this._breaks + (this._line ? 1 : 0) > 1;
  }

  write(text) {
    let settled = '';
    // Erasing to the end of the line is the one code that progress bars need.
    const plain = text.replace(ESCAPES, (_, letter) => (letter === 'K' ? '\x1b' : ''));
    for (const part of plain.split(/(\r\n|\n|\r|\x1b)/)) {
      if (part === '\n' || part === '\r\n') {
        settled += `${this._line}\n`;
        this._breaks += 1;
        this._line = '';
        this._column = 0;
      } else if (part === '\r') {
        this._column = 0;
      } else if (part === '\x1b') {
        this._line = this._line.slice(0, this._column);
      } else if (part) {
        this._line = this._line.slice(0, this._column) + part + this._line.slice(this._column + part.length);
        this._column += part.length;
      }
    }
    if (settled) this._settle(settled);
    this._current.data = this._line;
  }

  _settle(text) {
    this._settled.appendData(text);
    if (this._settled.length > MOST) {
      const kept = this._settled.data.slice(-MOST / 2);
      this._settled.data = `(earlier output was dropped)\n${kept.slice(kept.indexOf('\n') + 1)}`;
    }
  }
}
